// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
)

// namesInMessage is how many objects a message names before it counts the rest.
const namesInMessage = 5

func evicted(pod *corev1.Pod, reason string) events.Event {
	message := "Evicted pod"
	if reason != "" {
		message += ": " + reason
	}
	return events.Event{Object: pod, Type: corev1.EventTypeNormal, Reason: "Evicted", Message: message}
}

func evictionRequested(pod *corev1.Pod, reason string) events.Event {
	message := "Requested eviction of the pod by an EvictionRequest"
	if reason != "" {
		message += ": " + reason
	}
	return events.Event{Object: pod, Type: corev1.EventTypeNormal, Reason: "EvictionRequested", Message: message}
}

func disrupted(pod *corev1.Pod, deadline time.Time, grace time.Duration) events.Event {
	own := "none"
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		own = inSeconds(*s).String()
	}
	return events.Event{
		Object: pod, Type: corev1.EventTypeNormal, Reason: "Disrupted",
		Message: fmt.Sprintf("Deleted the pod, as its node terminates at %s: granted %s of grace (its own: %s), bypassing its PodDisruptionBudget and the %s annotation",
			deadline.UTC().Format(time.RFC3339), grace, own, v1.DoNotDisruptAnnotationKey),
	}
}

func drainWaits(node *corev1.Node, waiting []*corev1.Pod) events.Event {
	var names []string
	for _, p := range waiting {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return events.Event{
		Object: node, Type: corev1.EventTypeWarning, Reason: "FailedDraining",
		Message: fmt.Sprintf("Failed to drain node, pods waiting to be evicted: %d (%s)", len(names), named(names)),
	}
}

func podStays(node *corev1.Node, pod *corev1.Pod, why string) events.Event {
	return events.Event{
		Object: node, Type: corev1.EventTypeWarning, Reason: "FailedDraining",
		Message: fmt.Sprintf("Failed to evict pod %s/%s: %s", pod.Namespace, pod.Name, why),
		Dedupe:  []string{string(node.UID), string(pod.UID)},
	}
}

func volumesRemain(node *corev1.Node, attachments []string) events.Event {
	return events.Event{
		Object: node, Type: corev1.EventTypeNormal, Reason: "AwaitingVolumeDetachment",
		Message: "Awaiting deletion of volume attachments " + named(attachments),
	}
}

func deadlineSeen(object client.Object, deadline time.Time) events.Event {
	return events.Event{
		Object: object, Type: corev1.EventTypeWarning, Reason: "TerminationGracePeriodExpiring",
		Message: "All pods will be deleted by " + deadline.UTC().Format(time.RFC3339),
	}
}

func deadlineUnreadable(object client.Object, text string) events.Event {
	return events.Event{
		Object: object, Type: corev1.EventTypeWarning, Reason: "FailedTermination",
		Message: fmt.Sprintf("Annotation %s=%q of the NodeClaim is not an RFC 3339 time: pods are drained without a deadline and the node is kept until the annotation is corrected or removed",
			v1.NodeClaimTerminationTimestampAnnotationKey, text),
		Dedupe: []string{string(object.GetUID()), text},
	}
}

func machineStays(node *corev1.Node, err error) events.Event {
	return events.Event{
		Object: node, Type: corev1.EventTypeWarning, Reason: "FailedTermination",
		Message: "The instance cannot be terminated: " + err.Error(),
		Dedupe:  []string{string(node.UID), "machine"},
	}
}

func named(names []string) string {
	if len(names) <= namesInMessage {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(names[:namesInMessage], ", "), len(names)-namesInMessage)
}
