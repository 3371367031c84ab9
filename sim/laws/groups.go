// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/store"
)

// returnsWithin is how long nodes of a PodGroup have to start, and to be given back then.
const returnsWithin = 30*time.Minute + 6*time.Minute

func newReturned(t terms) *Law {
	empty, tick := since{}, every{period: sampling}
	return &Law{
		name:  "returned",
		means: "No instance that was launched for a PodGroup is without pods for longer than 36 minutes while too few pods of the group run. `consolidateAfter` and budgets are no exceptions.",
		check: func(s *sim.Seen) error {
			if !tick.due(s.Now) {
				return nil
			}
			for c := range store.All[*v1.NodeClaim](s.API) {
				from := empty.so(string(c.UID), c.Status.ProviderID != "" && c.DeletionTimestamp == nil && idleForGroup(s, c), s.Now)
				if s.Now.Sub(t.calm(s, from)) > returnsWithin {
					return fmt.Errorf("claim %s, launched for PodGroup %s, has been without pods since %s", c.Name, c.Annotations[v1.PodGroupsAnnotationKey], from.Sub(s.Started))
				}
			}
			return nil
		},
	}
}

// idleForGroup reports whether the claim was launched for PodGroups of which one waits,
// and runs no pod.
func idleForGroup(s *sim.Seen, c *v1.NodeClaim) bool {
	names := c.Annotations[v1.PodGroupsAnnotationKey]
	if names == "" || !unused(s, c) {
		return false
	}
	return slices.ContainsFunc(strings.Split(names, ","), func(name string) bool {
		least, running := groupOf(s, name)
		return running < least
	})
}

// unused reports whether no pod runs on the claim's node but those of DaemonSets.
func unused(s *sim.Seen, c *v1.NodeClaim) bool {
	return c.Status.NodeName == "" || !slices.ContainsFunc(podsOn(s, c.Status.NodeName), func(p *corev1.Pod) bool { return !ownedByDaemonSet(p) })
}

// groupOf returns how many pods of the PodGroup, namespace/name, must run at the same time, and how many
// are bound and not ending.
func groupOf(s *sim.Seen, name string) (least, running int) {
	for g := range store.All[*schedulingv1beta1.PodGroup](s.API) {
		if g.Namespace+"/"+g.Name == name && g.Spec.SchedulingPolicy.Gang != nil {
			least = int(g.Spec.SchedulingPolicy.Gang.MinCount)
		}
	}
	for p := range store.All[*corev1.Pod](s.API) {
		if memberOf(p) == name && p.Spec.NodeName != "" && !ending(p, s.Now) {
			running++
		}
	}
	return least, running
}

// memberOf returns the PodGroup of the pod, namespace/name; "" if it is of none.
func memberOf(p *corev1.Pod) string {
	if p.Spec.SchedulingGroup == nil || p.Spec.SchedulingGroup.PodGroupName == nil {
		return ""
	}
	return p.Namespace + "/" + *p.Spec.SchedulingGroup.PodGroupName
}

func newTogether(t terms) *Law {
	return &Law{
		name:  "together",
		means: "When the process disrupts a node as Empty, Underutilized or Drifted, it ends no pod of a PodGroup of which fewer than `minCount` pods run then. Exceptions: a `minCount` of one, or a node with a `terminationGracePeriod`.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				p := as[*corev1.Pod](c.Old)
				if p == nil || c.By != Us || !began(c) || memberOf(p) == "" || ending(p, s.Now) {
					continue
				}
				claim := claimOf(s, p.Spec.NodeName)
				if claim == nil || claim.Spec.TerminationGracePeriod != nil {
					continue
				}
				reason := voluntary(claim)
				if reason == "" || reason == model.Unhealthy || boundAt(p).After(conditions.Get(claim, v1.DisruptionReasonCondition).LastTransitionTime.Add(-t.lag)) {
					continue
				}
				if least, running := groupOf(s, memberOf(p)); least > 1 && running < least {
					return fmt.Errorf("pod %s on %s was ended for %s, and %d of the %d pods of its group run", p.Name, p.Spec.NodeName, reason, running, least)
				}
			}
			return nil
		},
	}
}
