// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"fmt"
	"time"

	"karpenter/model"
)

// disruption has the view of the machine say what speaks for and against taking
// its node away, besides what load says, and sees to it that it is asked again
// when time alone changes the answer.
func (w *World) disruption(m *machine, now time.Time) {
	d := &m.view.Disruption
	d.Returned, d.Together = w.returned(m, now), w.together(m)
	d.Blocked, d.Held = w.blocked(m, now), w.held(m, now)
	if m.claim == nil {
		return
	}
	d.Advised = m.claim.Advised
	d.Drifted, d.Deadline, d.Quiet = m.claim.Drifted, m.claim.Deadline, m.claim.QuietSince
	d.Settling = w.settling(m, now)
	d.Consolidatable = m.claim.Consolidatable && !d.Settling
	d.Fresh = w.fresh(m, now)
	d.Since, d.PodsEnd = m.claim.Created, w.podsEnd(m, now)
}

// fresh reports whether pods on the machine have been moved so recently that they
// are not to be moved again: all of them, if it was launched to take them.
func (w *World) fresh(m *machine, now time.Time) bool {
	until := m.claim.FreshUntil
	for _, p := range w.podsOf(m) {
		if p.Reschedulable && !p.moved.IsZero() && p.moved.Add(settled).After(until) {
			until = p.moved.Add(settled)
		}
	}
	if !now.Before(until) {
		return false
	}
	w.changesAt(m, until)
	return true
}

// settling reports whether the machine has not been quiet for as long as its
// pool waits before it consolidates.
func (w *World) settling(m *machine, now time.Time) bool {
	p := w.pools[m.view.Pool]
	if p == nil || p.ConsolidateAfter <= 0 || m.claim.QuietSince.IsZero() || !m.initialized() {
		return false
	}
	ends := m.claim.QuietSince.Add(p.ConsolidateAfter)
	if !now.Before(ends) {
		return false
	}
	w.changesAt(m, ends)
	return true
}

// blocked returns why the machine may not be disrupted now, whatever its pods
// say.
func (w *World) blocked(m *machine, now time.Time) string {
	switch {
	case m.claim == nil:
		return "the node is not managed by a NodeClaim"
	case m.node == nil:
		return "the NodeClaim has no Node yet"
	case len(m.twins) > 0:
		return m.duplicated()
	case m.claim.Rebooting:
		return "the node is rebooting"
	case m.deleting(), m.node.Deleting:
		return "the node is being deleted"
	case !m.initialized() && !m.view.Disruption.Returned:
		return "the node is not initialized"
	case now.Before(m.nominated):
		w.changesAt(m, m.nominated)
		return model.BlockedByNomination
	case w.binding[m.node.Name] > 0:
		return "a pod is being bound to the node, which has devices reserved for it"
	case w.nominee(m):
		return model.BlockedByNomination
	case m.node.DoNotDisrupt:
		return `the node has the annotation karpenter.sh/do-not-disrupt: "true"`
	case m.view.Pool == "":
		return "the node has no label " + model.LabelNodePool
	case w.pools[m.view.Pool] == nil:
		return "there is no NodePool " + m.view.Pool
	case len(w.types[m.view.Pool]) == 0:
		return fmt.Sprintf("NodePool %s has no instance types", m.view.Pool)
	}
	return ""
}

// held returns why the pods of the machine forbid to disrupt it now. Those of a
// machine that no one may disrupt are not asked.
func (w *World) held(m *machine, now time.Time) string {
	if m.claim == nil || m.deleting() || !m.initialized() {
		return ""
	}
	for _, p := range w.podsOf(m) {
		if p.protected(now) {
			w.changesAt(m, p.ProtectedUntil)
			return p.protection()
		}
	}
	for _, p := range w.podsOf(m) {
		if why := cmp.Or(p.budgetBlocks(now), w.holdsTogether(p), p.resizes()); why != "" {
			return why
		}
	}
	return ""
}

// protection says how the pod is protected.
func (p *pod) protection() string {
	if p.ProtectedUntil.IsZero() {
		return fmt.Sprintf("pod %s has the annotation karpenter.sh/do-not-disrupt", p.key)
	}
	return fmt.Sprintf("pod %s has the annotation karpenter.sh/do-not-disrupt, which holds until %s", p.key, p.ProtectedUntil.UTC().Format(time.RFC3339))
}

// resizes returns why the pod is not moved now: what it may use is being changed, after
// which its node is not quiet for a while.
func (p *pod) resizes() string {
	if !p.Resizing || p.Daemon || p.Terminal {
		return ""
	}
	return fmt.Sprintf("pod %s is being resized", p.key)
}

// budgetBlocks returns why the pod's disruption budgets forbid to move it now.
func (p *pod) budgetBlocks(now time.Time) string {
	switch {
	case len(p.budgets) == 0 || !p.evictable(now):
		return ""
	case len(p.budgets) > 1:
		return fmt.Sprintf("pod %s has more than one PodDisruptionBudget: %s and %s", p.key, p.budgets[0].Name, p.budgets[1].Name)
	case p.budgets[0].Allowed <= 0 && !p.budgets[0].exempts(p):
		return fmt.Sprintf("PodDisruptionBudget %s/%s allows no disruption of pod %s", p.Namespace, p.budgets[0].Name, p.key)
	}
	return ""
}
