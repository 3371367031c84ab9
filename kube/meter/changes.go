// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/kube/events"
)

func (k *watchedKind) tells(o client.Object) bool { return k.Tell == nil || k.Tell(o) }

// changed returns the event for a condition whose status has changed. If a
// condition flaps, both changes get an event, and later changes get none for a
// while.
func changed(o client.Object, was, is metav1.Condition) events.Event {
	message := fmt.Sprintf("%s: %s -> %s, %s", is.Type, was.Status, is.Status, is.Reason)
	if is.Message != "" && is.Message != is.Reason {
		message += ": " + is.Message
	}
	return events.Event{
		Object: o, Type: corev1.EventTypeNormal, Reason: is.Type, Message: message,
		Dedupe: []string{string(o.GetUID()), string(was.Status), string(is.Status), is.Reason},
	}
}

// finalized returns an event for each finalizer that the object has lost.
// Finalizers of the garbage collector get no event, because they add nothing to
// the deletion.
func (k *watchedKind) finalized(was, is client.Object) []events.Event {
	if !k.tells(is) {
		return nil
	}
	var out []events.Event
	for _, name := range was.GetFinalizers() {
		if name != metav1.FinalizerDeleteDependents && name != metav1.FinalizerOrphanDependents && !slices.Contains(is.GetFinalizers(), name) {
			out = append(out, events.Event{
				Object: is, Type: corev1.EventTypeNormal, Reason: "Finalized", Message: "finalizer " + name + " was removed",
				Dedupe: []string{string(is.GetUID()), name},
			})
		}
	}
	return out
}
