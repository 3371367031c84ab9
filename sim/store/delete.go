// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (s *Store) delete(by string, o client.Object, options client.DeleteOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, old, err := s.stored(o)
	if err != nil {
		return err
	}
	if err := preconditions(c.resource, old, options.Preconditions); err != nil {
		return err
	}
	s.end(writing{c, by, "delete"}, old, options.GracePeriodSeconds)
	return nil
}

func preconditions(r resource, old client.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != old.GetUID() {
		return apierrors.NewConflict(r.plural, old.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, old.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
		return apierrors.NewConflict(r.plural, old.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match that in record (%s)", *p.ResourceVersion, old.GetResourceVersion()))
	}
	return nil
}

// end begins to delete the object, or finishes it when nothing holds it.
func (s *Store) end(w writing, old client.Object, grace *int64) {
	period := gracePeriod(old, grace)
	if period == 0 && len(old.GetFinalizers()) == 0 {
		s.remove(w, old)
		return
	}
	at := metav1.NewTime(now().Add(time.Duration(period) * time.Second))
	if deleting := old.GetDeletionTimestamp(); deleting != nil {
		if have := old.GetDeletionGracePeriodSeconds(); grace == nil || have == nil || period >= *have {
			return
		}
		begun := deleting.Add(-time.Duration(*old.GetDeletionGracePeriodSeconds()) * time.Second)
		at = metav1.NewTime(begun.Add(time.Duration(period) * time.Second))
	}
	next := old.DeepCopyObject().(client.Object)
	next.SetDeletionTimestamp(&at)
	next.SetDeletionGracePeriodSeconds(&period)
	if old.GetDeletionTimestamp() == nil && next.GetGeneration() > 0 {
		next.SetGeneration(next.GetGeneration() + 1)
	}
	s.put(w, old, next)
}

// gracePeriod is how long the object may take to end, in seconds: only pods
// that have been bound and run get any.
func gracePeriod(o client.Object, asked *int64) int64 {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	if asked != nil {
		return max(*asked, 0)
	}
	if p := pod.Spec.TerminationGracePeriodSeconds; p != nil {
		return max(*p, 0)
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}
