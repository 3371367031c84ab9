// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"time"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/store"
)

type budgets struct {
	terms
	specs  map[string][]past[*v1.NodePool] // by pool
	totals map[string][]past[int]
}

func newBudgets(t terms) *Law {
	b := &budgets{t, map[string][]past[*v1.NodePool]{}, map[string][]past[int]{}}
	return &Law{
		name: "budgets", check: b.check,
		means: "When the process begins to disrupt a node voluntarily, no more nodes of the NodePool are disrupted or being removed, including this one, than the budgets allow for the reason. Exception: an empty node that was launched for a PodGroup of which too few pods run.",
	}
}

func (b *budgets) check(s *sim.Seen) error {
	if !changed[*v1.NodePool](s) && !changed[*v1.NodeClaim](s) {
		return nil
	}
	for p := range store.All[*v1.NodePool](s.API) {
		specs := b.specs[p.Name]
		if len(specs) == 0 || specs[len(specs)-1].what.Generation != p.Generation || specs[len(specs)-1].what.UID != p.UID {
			b.specs[p.Name] = append(specs, past[*v1.NodePool]{s.Now, p})
		}
		total, _ := going(s, p.Name)
		if totals := b.totals[p.Name]; len(totals) == 0 || totals[len(totals)-1].what != total {
			b.totals[p.Name] = append(totals, past[int]{s.Now, total})
		}
	}
	for _, c := range s.Changes {
		claim, old := as[*v1.NodeClaim](c.New), as[*v1.NodeClaim](c.Old)
		if claim == nil || old == nil || c.By != Us || voluntary(claim) == "" || voluntary(old) != "" || voluntary(claim) == model.Empty && idleForGroup(s, claim) {
			continue
		}
		if err := b.within(s, claim); err != nil {
			return err
		}
	}
	return nil
}

func (b *budgets) within(s *sim.Seen, claim *v1.NodeClaim) error {
	pool, reason := claim.Labels[v1.NodePoolLabelKey], voluntary(claim)
	since := s.Now.Add(-b.lag)
	total, gone := going(s, pool)
	for _, c := range claimsOf(s, pool) {
		if unheard(c, since) {
			gone--
		}
	}
	for _, n := range inForce(b.totals[pool], since) {
		total = max(total, n)
	}
	allowed := 0
	for _, p := range inForce(b.specs[pool], since) {
		for _, at := range []time.Time{since, s.Now} {
			if n, err := p.AllowedDisruptions(at, total, v1.DisruptionReason(reason)); err == nil {
				allowed = max(allowed, n)
			}
		}
	}
	if gone > allowed {
		return fmt.Errorf("claim %s is removed as %s, with which %d of the %d nodes of pool %s are going; budgets allow %d", claim.Name, reason, gone, total, pool, allowed)
	}
	return nil
}

// going counts the initialized nodes of a pool whose instance is not ending,
// and those of them that are disrupted or being deleted. The label of the Node says
// that it is initialized; the condition of its claim is written after that.
func going(s *sim.Seen, pool string) (total, gone int) {
	for _, c := range claimsOf(s, pool) {
		labelled := false
		if n := nodeOf(s, c); n != nil {
			labelled = n.Labels[model.LabelInitialized] == "true"
		}
		if !labelled && !conditions.IsTrue(c, v1.InitializedCondition) || conditions.IsTrue(c, v1.InstanceTerminatingCondition) {
			continue
		}
		total++
		if c.DeletionTimestamp != nil || voluntary(c) != "" {
			gone++
		}
	}
	return total, gone
}

// unheard reports whether the claim of an initialized node is being deleted for
// another reason than disruption, and disruption may not have heard of it.
func unheard(c *v1.NodeClaim, since time.Time) bool {
	return c.DeletionTimestamp != nil && c.DeletionTimestamp.After(since) && voluntary(c) == "" &&
		conditions.IsTrue(c, v1.InitializedCondition) && !conditions.IsTrue(c, v1.InstanceTerminatingCondition)
}

// mayGo is how many nodes of the pool may go for the reason now, if none does
// yet.
func mayGo(s *sim.Seen, p *v1.NodePool, reason model.Reason) int {
	total, _ := going(s, p.Name)
	n, err := p.AllowedDisruptions(s.Now, total, v1.DisruptionReason(reason))
	if err != nil {
		return 0
	}
	return n
}
