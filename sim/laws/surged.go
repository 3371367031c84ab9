// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/store"
)

// SurgeTimeout is how long the process waits for the replacement of a pod, in runs in
// which any asks for that.
const SurgeTimeout = 5 * time.Minute

func newSurged(t terms) *Law {
	edited := map[types.UID]time.Time{} // when others last changed a Deployment
	return &Law{
		name:  "surged",
		means: "When the process disrupts a node voluntarily, it does not evict the only ready pod of a Deployment with `karpenter.sh/surge-first` until it has waited for a replacement for the whole timeout.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				if d := as[*appsv1.Deployment](c.Object()); d != nil && c.By != Us {
					edited[d.UID] = s.Now
				}
				p := as[*corev1.Pod](c.Old)
				if p == nil || c.By != Us || c.Verb != "evict" || !began(c) || !t.asksForSurge(s, p) {
					continue
				}
				d := deploymentOf(s, p)
				if d == nil || *d.Spec.Replicas != 1 || s.Now.Sub(edited[d.UID]) < t.lag || replaced(s, p) {
					continue
				}
				if at, err := time.Parse(time.RFC3339, d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]); err == nil && s.Now.Sub(at) >= SurgeTimeout {
					continue
				}
				return fmt.Errorf("pod %s was evicted from %s, and no other pod of its Deployment was ready", p.Name, p.Spec.NodeName)
			}
			return nil
		},
	}
}

// asksForSurge reports whether the pod, which has been ready for long enough for the
// process to know it, is to be replaced before it leaves its node.
func (t terms) asksForSurge(s *sim.Seen, p *corev1.Pod) bool {
	if p.Annotations[v1.SurgeFirstAnnotationKey] != "true" || !pods.Ready(p) || late(s, p) {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && s.Now.Sub(c.LastTransitionTime.Time) < t.lag {
			return false
		}
	}
	claim := claimOf(s, p.Spec.NodeName)
	if claim == nil {
		return false
	}
	reason := voluntary(claim)
	return reason != "" && reason != model.Unhealthy
}

func deploymentOf(s *sim.Seen, p *corev1.Pod) *appsv1.Deployment {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return nil
	}
	for d := range store.All[*appsv1.Deployment](s.API) {
		if d.UID == owner.UID {
			return d
		}
	}
	return nil
}

// replaced reports whether another pod of the same owner is ready and stays.
func replaced(s *sim.Seen, p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	for o := range store.All[*corev1.Pod](s.API) {
		of := metav1.GetControllerOf(o)
		if of != nil && of.UID == owner.UID && o.UID != p.UID && o.DeletionTimestamp == nil && pods.Ready(o) {
			return true
		}
	}
	return false
}
