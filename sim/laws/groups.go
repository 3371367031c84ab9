// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

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
		means: "No instance that was launched for a PodGroup is without pods for longer than 36 minutes while pods of the group exist and too few of them run. `consolidateAfter` and budgets do not excuse it. Exception: as many instances as there are pods of CapacityBuffers.",
		check: func(s *sim.Seen) error {
			if !tick.due(s.Now) {
				return nil
			}
			spare := buffered(s)
			for c := range store.All[*v1.NodeClaim](s.API) {
				from := empty.so(string(c.UID), c.Status.ProviderID != "" && c.DeletionTimestamp == nil && idleForGroup(s, c), s.Now)
				if s.Now.Sub(t.calm(s, from)) <= returnsWithin {
					continue
				}
				if spare--; spare < 0 {
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
		return running < least && exists(s, name)
	})
}

// exists reports whether there is a pod of the PodGroup. The nodes of a group without any
// go by the rules of their NodePool.
func exists(s *sim.Seen, name string) bool {
	for p := range store.All[*corev1.Pod](s.API) {
		if memberOf(p) == name {
			return true
		}
	}
	return false
}

// unused reports whether no pod runs on the claim's node but those of DaemonSets.
func unused(s *sim.Seen, c *v1.NodeClaim) bool {
	return c.Status.NodeName == "" || !slices.ContainsFunc(podsOn(s, c.Status.NodeName), func(p *corev1.Pod) bool { return !ownedByDaemonSet(p) })
}

// groupOf returns how many pods of the PodGroup, namespace/name, must run at the same time, and how many
// are bound and not ending.
func groupOf(s *sim.Seen, name string) (least, running int) {
	if g := podGroup(s, name); g != nil && g.Spec.SchedulingPolicy.Gang != nil {
		least = int(g.Spec.SchedulingPolicy.Gang.MinCount)
	}
	return least, len(runningOf(s, name))
}

// podGroup returns the PodGroup, namespace/name; nil if there is none.
func podGroup(s *sim.Seen, name string) *schedulingv1beta1.PodGroup {
	for g := range store.All[*schedulingv1beta1.PodGroup](s.API) {
		if g.Namespace+"/"+g.Name == name {
			return g
		}
	}
	return nil
}

// runningOf returns the pods of the PodGroup that are bound and not ending.
func runningOf(s *sim.Seen, name string) []*corev1.Pod {
	var out []*corev1.Pod
	for p := range store.All[*corev1.Pod](s.API) {
		if memberOf(p) == name && p.Spec.NodeName != "" && !ending(p, s.Now) {
			out = append(out, p)
		}
	}
	return out
}

// memberOf returns the PodGroup of the pod, namespace/name; "" if it is of none.
func memberOf(p *corev1.Pod) string {
	if p.Spec.SchedulingGroup == nil || p.Spec.SchedulingGroup.PodGroupName == nil {
		return ""
	}
	return p.Namespace + "/" + *p.Spec.SchedulingGroup.PodGroupName
}

// followsWithin is how long the nodes of a PodGroup whose pods are disrupted together have
// until all are being deleted, if the process ends between two of them.
const followsWithin = time.Minute

// together follows which pods must go with others of their PodGroup.
type together struct {
	terms
	follow map[types.UID]time.Time // since when, by pod
}

func newTogether(t terms) *Law {
	l := &together{terms: t, follow: map[types.UID]time.Time{}}
	return &Law{
		name: "together", check: l.check,
		means: "When the process disrupts a node as Empty, Underutilized or Drifted, it ends no pod of a PodGroup if fewer than `minCount` pods run afterwards. With the disruption mode `all`, the nodes of all pods that run when the deletion begins are being deleted within a minute instead. Exceptions: a `minCount` of one without that mode, or a node with a `terminationGracePeriod`.",
	}
}

func (l *together) check(s *sim.Seen) error {
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
		if reason == "" || reason == model.Unhealthy || boundAt(p).After(conditions.Get(claim, v1.DisruptionReasonCondition).LastTransitionTime.Add(-l.lag)) {
			continue
		}
		group := podGroup(s, memberOf(p))
		if group != nil && group.Spec.DisruptionMode != nil && group.Spec.DisruptionMode.All != nil {
			from := s.Now
			if claim.DeletionTimestamp != nil { // pods that have started since then are those that were moved
				from = claim.DeletionTimestamp.Time
			}
			for _, other := range runningOf(s, memberOf(p)) {
				if _, known := l.follow[other.UID]; !known && !leaves(s, other) && from.Sub(boundAt(other)) > l.lag {
					l.follow[other.UID] = s.Now
				}
			}
			continue
		}
		if least, running := groupOf(s, memberOf(p)); least > 1 && running < least {
			return fmt.Errorf("pod %s on %s was ended for %s, and %d of the %d pods of its group run", p.Name, p.Spec.NodeName, reason, running, least)
		}
	}
	if len(l.follow) == 0 {
		return nil
	}
	there := map[types.UID]bool{}
	for p := range store.All[*corev1.Pod](s.API) {
		from, follows := l.follow[p.UID]
		if !follows || ending(p, s.Now) || leaves(s, p) {
			continue
		}
		if there[p.UID] = true; s.Now.Sub(from) > followsWithin {
			return fmt.Errorf("pod %s on %s stays, and others of its group have been ended at %s", p.Name, p.Spec.NodeName, from.Sub(s.Started))
		}
	}
	maps.DeleteFunc(l.follow, func(uid types.UID, _ time.Time) bool { return !there[uid] })
	return nil
}

// leaves reports whether the node of the pod is being deleted or gone.
func leaves(s *sim.Seen, p *corev1.Pod) bool {
	claim := claimOf(s, p.Spec.NodeName)
	return claim == nil || claim.DeletionTimestamp != nil
}
