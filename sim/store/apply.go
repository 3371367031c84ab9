// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nominatedField is the one field whose owner is kept.
const nominatedField = `{"f:status":{"f:nominatedNodeName":{}}}`

// applyStatus is server-side apply of a pod's nominatedNodeName. Nothing else
// is served: no one applies anything else.
func (s *Store) applyStatus(by string, configuration runtime.ApplyConfiguration, options client.SubResourceApplyOptions) error {
	text, err := json.Marshal(configuration)
	if err != nil {
		return err
	}
	applied := &corev1.Pod{}
	if err := json.Unmarshal(text, applied); err != nil {
		return err
	}
	if applied.Kind != "Pod" {
		return apierrors.NewBadRequest(fmt.Sprintf("apply of the status of %s is not served", applied.Kind))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, old, err := s.stored(applied)
	if err != nil {
		return err
	}
	pod := old.(*corev1.Pod)
	if applied.UID != "" && applied.UID != pod.UID {
		return agrees(c.resource, old, applied)
	}
	want, owner := applied.Status.NominatedNodeName, nominationOwner(pod)
	force := options.Force != nil && *options.Force
	next := pod.DeepCopy()
	switch {
	case want == "" && owner == options.FieldManager:
		next.Status.NominatedNodeName = ""
		setNominationOwner(next, "")
	case want == "":
		return nil
	case pod.Status.NominatedNodeName != "" && pod.Status.NominatedNodeName != want && owner != options.FieldManager && !force:
		return apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".status.nominatedNodeName"}},
			fmt.Sprintf("Apply failed with 1 conflict: conflict with %q: .status.nominatedNodeName", owner))
	default:
		next.Status.NominatedNodeName = want
		setNominationOwner(next, options.FieldManager)
	}
	if next.Status.NominatedNodeName == pod.Status.NominatedNodeName && nominationOwner(next) == owner {
		return nil
	}
	s.put(writing{c, by, "apply-status"}, old, next)
	return nil
}

// nominationOwner is who has applied the pod's nomination; "" is anyone who
// has written it otherwise.
func nominationOwner(p *corev1.Pod) string {
	for _, m := range p.ManagedFields {
		if m.Operation == metav1.ManagedFieldsOperationApply {
			return m.Manager
		}
	}
	return ""
}

func setNominationOwner(p *corev1.Pod, owner string) {
	p.ManagedFields = nil
	if owner != "" {
		p.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: owner, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: now(),
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(nominatedField)}, Subresource: "status",
		}}
	}
}

// disown takes the field from who has applied it when another value was
// written.
func disown(p, old *corev1.Pod) {
	if p.Status.NominatedNodeName != old.Status.NominatedNodeName {
		setNominationOwner(p, "")
	}
}
