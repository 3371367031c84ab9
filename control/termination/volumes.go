// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
)

// VolumeAttachmentNodeName is the field index of VolumeAttachments that the
// client must serve.
const VolumeAttachmentNodeName = "spec.nodeName"

// detachVolumes waits until the volumes of the pods that have left are
// detached, so that they can be attached elsewhere. Detaching is the work of
// the attach-detach controller.
func (r *Reconciler) detachVolumes(ctx context.Context, s *scope) (time.Duration, error) {
	attached, err := r.attachments(ctx, s)
	if err != nil {
		return 0, err
	}
	elapsed := s.deadline != nil && s.now.After(*s.deadline)
	if len(attached) > 0 && !elapsed {
		r.Events.Publish(volumesRemain(s.node, attached))
	}
	if s.claim != nil {
		set := s.claim.StatusConditions(s.now)
		switch {
		case len(attached) == 0:
			set.SetTrue(v1.VolumesDetachedCondition)
		case elapsed:
			set.SetFalse(v1.VolumesDetachedCondition, v1.TerminationGracePeriodElapsedReason, "")
		default:
			set.SetUnknownWithReason(v1.VolumesDetachedCondition, v1.AwaitingVolumeDetachmentReason, "")
		}
	}
	if len(attached) > 0 && !elapsed {
		return drainPoll, nil
	}
	return 0, nil
}

// attachments returns the names of the VolumeAttachments to wait for, sorted.
func (r *Reconciler) attachments(ctx context.Context, s *scope) ([]string, error) {
	list := &storagev1.VolumeAttachmentList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{VolumeAttachmentNodeName: s.node.Name}); err != nil {
		return nil, fmt.Errorf("list volume attachments of node %s: %w", s.node.Name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	kept, err := r.keptVolumes(ctx, s)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		volume := list.Items[i].Spec.Source.PersistentVolumeName
		if volume != nil && !kept[*volume] {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// keptVolumes returns the names of the PersistentVolumes of pods that stay on
// the node to its end.
func (r *Reconciler) keptVolumes(ctx context.Context, s *scope) (map[string]bool, error) {
	kept := map[string]bool{}
	for _, p := range s.pods {
		if pods.Drainable(p, s.now) {
			continue
		}
		for _, name := range volumeClaims(p) {
			pvc := &corev1.PersistentVolumeClaim{}
			err := r.Client.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: name}, pvc)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("get persistent volume claim %s/%s: %w", p.Namespace, name, err)
			}
			if err == nil && pvc.Spec.VolumeName != "" {
				kept[pvc.Spec.VolumeName] = true
			}
		}
	}
	return kept, nil
}

// volumeClaims returns the names of the pod's PersistentVolumeClaims.
func volumeClaims(p *corev1.Pod) []string {
	var names []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, p.Name+"-"+v.Name)
		}
	}
	return names
}
