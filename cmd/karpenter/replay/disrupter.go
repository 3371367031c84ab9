// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"
	"time"

	"karpenter/cmd/karpenter/plan"
	"karpenter/model"
)

// disrupter decides about nodes to remove.
type disrupter struct {
	stirred  bool // the cluster has changed since nodes to remove were looked for
	drifting bool // NodePools have changed since nodes were compared with them
	looked   time.Time
	look     time.Time // when nodes to remove are looked for next
	intents  []intent
}

// intent is a command that waits to be confirmed.
type intent struct {
	model.Intent
	due time.Time
}

// command is a command that is being carried out: its nodes are removed when its
// replacements are ready.
type command struct {
	nodes   []*node
	reason  string
	missing int // replacements that are not ready
}

// pace is the time between two looks at nodes to remove.
func (r *run) pace() time.Duration {
	return max(leastLook, (r.h.to.Sub(r.h.from) / mostLooks).Round(time.Second))
}

// lookAt schedules the next search for nodes to remove, unless it is already
// scheduled for an earlier time.
func (r *run) lookAt(at time.Time) {
	if at = later(at, r.now); r.disrupter.look.After(r.now) && !at.Before(r.disrupter.look) {
		return
	}
	r.disrupter.look = at
	r.at(at, func() {
		if r.disrupter.look.Equal(r.now) && !r.disrupter.looked.Equal(r.now) {
			r.disrupt()
		}
	})
}

// disrupt looks for nodes to remove, and begins with those that are confirmed.
func (r *run) disrupt() {
	r.disrupter.looked = r.now
	r.compare()
	s := r.world.Snapshot(r.now)
	for i := range r.disrupter.intents {
		s.Intents = append(s.Intents, r.disrupter.intents[i].Intent)
	}
	p := r.planner.counted(r.planner.Decide(s, r.planner.policy))
	old := r.disrupter.intents
	r.disrupter.intents = nil
	for i := range p.Commands {
		r.confirm(&p.Commands[i], old)
	}
	r.lookAt(r.nextLook(s))
}

// confirm carries the command out if it has been planned for long enough.
func (r *run) confirm(c *model.Command, old []intent) {
	next := intent{Intent: model.Intent{Reason: c.Reason}, due: r.now.Add(delay)}
	for _, t := range c.Nodes {
		next.Claims = append(next.Claims, t.Claim)
	}
	slices.Sort(next.Claims)
	if c.Reason == model.Drifted {
		next.due = r.now
	}
	if i := slices.IndexFunc(old, func(o intent) bool { return o.Reason == next.Reason && slices.Equal(o.Claims, next.Claims) }); i >= 0 {
		next.due = old[i].due
	}
	if r.now.Before(next.due) || !r.start(c) {
		r.disrupter.intents = append(r.disrupter.intents, next)
	}
}

// nextLook is when the answer may be another one although nothing happens.
func (r *run) nextLook(s *model.Snapshot) time.Time {
	next := r.now.Add(mostLook)
	sooner := func(t time.Time) {
		if t.After(r.now) && t.Before(next) {
			next = t
		}
	}
	for i := range r.disrupter.intents {
		sooner(r.disrupter.intents[i].due)
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if p := r.config.pools[n.Pool]; p != nil && n.Disruption.Settling && p.Spec.Disruption.ConsolidateAfter.Duration != nil {
			sooner(n.Disruption.Quiet.Add(*p.Spec.Disruption.ConsolidateAfter.Duration))
		}
	}
	return next
}

// start carries a command out, and reports whether nothing spoke against it.
func (r *run) start(c *model.Command) bool {
	x := &command{reason: string(c.Reason)}
	going := map[*node]bool{}
	for _, t := range c.Nodes {
		n := r.fleet.claims[t.Claim]
		if n == nil || n.leaving || r.awaited(n) {
			return false
		}
		x.nodes, going[n] = append(x.nodes, n), true
	}
	for _, m := range c.Moves {
		if to := r.fleet.node(m.Node); to != nil && (to.leaving || going[to]) {
			return false
		}
	}
	if c.Reboot || len(x.nodes) == 0 {
		return false
	}
	var names []string
	for _, n := range x.nodes {
		n.leaving = true
		names = append(names, n.claim.Name)
	}
	if c.TerminateFirst == "" {
		for i := range c.Launches {
			if n := r.launch(&c.Launches[i], c.Reason); n != nil {
				n.replaces = x
				x.missing++
			}
		}
	}
	for _, m := range c.Moves {
		r.aim(m.Pod, m.Node)
	}
	r.world.MarkForDeletion(names...)
	if x.missing == 0 {
		r.carryOut(x)
	}
	return true
}

// cancel cancels the command and keeps its nodes.
func (r *run) cancel(x *command) {
	var names []string
	for _, n := range x.nodes {
		n.leaving = false
		names = append(names, n.claim.Name)
	}
	r.world.Unmark(names...)
	x.nodes = nil
}

func (r *run) carryOut(x *command) {
	for _, n := range x.nodes {
		r.drain(n, x.reason)
	}
}

// awaited reports whether pods are to move to the node.
func (r *run) awaited(n *node) bool {
	return slices.ContainsFunc(n.expects, func(p *pod) bool { return p.comes(n) })
}

// compare marks nodes that differ from their NodePools as drifted.
func (r *run) compare() {
	if !r.disrupter.drifting {
		return
	}
	r.disrupter.drifting = false
	s := r.world.Snapshot(r.now)
	for i := range s.Nodes {
		n := r.fleet.claims[s.Nodes[i].Claim]
		if n == nil || !n.ready {
			continue
		}
		p := r.config.pools[n.pool]
		at := slices.IndexFunc(s.Pools, func(p model.Pool) bool { return p.Name == n.pool })
		if p == nil || at < 0 {
			continue
		}
		drifted := plan.Mismatch(&s.Nodes[i], &s.Pools[at], r.convert.Requirements(p.Spec.Template.Spec.Requirements)) != ""
		if drifted == !n.claim.Drifted.IsZero() {
			continue
		}
		n.claim.Drifted = time.Time{}
		if drifted {
			n.claim.Drifted = r.now
		}
		r.world.SetClaim(n.claim)
	}
}
