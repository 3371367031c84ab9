// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/store"
)

// rollsWithin is how long drifted nodes of a pool may all stay: a replacement
// that never joins is abandoned after 15 minutes, and waited for until it is gone.
const rollsWithin = 25 * time.Minute

// rolled follows since when no drifted node of a pool has gone, although one may.
type rolled struct {
	terms
	sick time.Duration // since the start: until then users have nodes be unfit
	free since         // by claim
	went map[string]time.Time
	tick every
}

func newRolled(t terms) *Law {
	r := &rolled{terms: t, free: since{}, went: map[string]time.Time{}, tick: every{period: sampling}}
	for _, e := range t.script.Events {
		switch e.Do {
		case script.Sicken, script.Poison, script.Unready, script.Unbound, script.Unstarted:
			r.sick = max(r.sick, t.script.Run+e.For)
		}
	}
	return &Law{
		name: "rolled", check: r.check,
		means: "Rollouts finish. While a drifted node can be removed, the process begins to remove a drifted node of the NodePool within 25 minutes, independent of CapacityBuffers. Exceptions: budgets, a pod on the node, a pending pod, or a lack of places for its pods can keep the node.",
	}
}

func (r *rolled) check(s *sim.Seen) error {
	for _, c := range s.Changes {
		claim, old := as[*v1.NodeClaim](c.Object()), as[*v1.NodeClaim](c.Old)
		if claim != nil && old != nil && (began(c) || voluntary(claim) == model.Drifted && voluntary(old) == "") {
			r.went[claim.Labels[v1.NodePoolLabelKey]] = s.Now
		}
		if p := as[*v1.NodePool](c.Object()); p != nil && c.By != Us {
			r.went[p.Name] = s.Now
		}
	}
	if !r.tick.due(s.Now) {
		return nil
	}
	_, pending := occupied(s)
	for p := range store.All[*v1.NodePool](s.API) {
		for _, c := range claimsOf(s, p.Name) {
			from := r.free.so(string(c.UID), !pending && mayRoll(s, p, c), s.Now)
			if r.went[p.Name].After(from) {
				from = r.went[p.Name]
			}
			if end := s.Started.Add(r.sick); r.sick > 0 && end.After(from) {
				from = end
			}
			if s.Now.Sub(r.calm(s, from)) > rollsWithin {
				return fmt.Errorf("the node of claim %s in pool %s is drifted and may go since %s, and none of the pool has gone since %s",
					c.Name, p.Name, r.free[string(c.UID)].Sub(s.Started), from.Sub(s.Started))
			}
		}
	}
	return nil
}

// mayRoll reports whether the claim's node is drifted and nothing keeps it. Any pod of a PodGroup may.
func mayRoll(s *sim.Seen, p *v1.NodePool, c *v1.NodeClaim) bool {
	if p.DeletionTimestamp != nil || c.DeletionTimestamp != nil || voluntary(c) != "" ||
		!conditions.IsTrue(c, v1.DriftedCondition) || !conditions.IsTrue(c, v1.InitializedCondition) {
		return false
	}
	n := nodeOf(s, c)
	if n == nil || !isReady(n) || n.DeletionTimestamp != nil || keeps(s, n.Name) != "" || !paced(s, p) {
		return false
	}
	if p.IsStatic() {
		return p.Spec.Limits == nil
	}
	unlimited := func(p *v1.NodePool) bool { return len(p.Spec.Limits) == 0 }
	return !slices.ContainsFunc(podsOn(s, n.Name), func(pod *corev1.Pod) bool {
		return !ownedByDaemonSet(pod) && (hostsAmong(s, pod, unlimited) == "" || memberOf(pod) != "")
	})
}

// paced reports whether the pool's budgets let another drifted node go.
func paced(s *sim.Seen, p *v1.NodePool) bool {
	_, gone := going(s, p.Name)
	for _, c := range claimsOf(s, p.Name) {
		if n := nodeOf(s, c); n != nil && !isReady(n) {
			gone++
		}
	}
	return gone < mayGo(s, p, model.Drifted)
}
