// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// maxWays is how many ways to share pods out are held against the scheduler's rules.
const maxWays = 2_000

// Best returns the least price, below the given one, of new nodes for the pods that
// the plan has a place for, by trying the ways to share them out over nodes and new
// ones that the scheduler would follow. It reports whether one of them costs less, and whether it
// tried all of them, not only the first maxWays. Pods that the plan
// leaves where an earlier plan put them stay there. With domains, what could be
// launched counts as a domain for spread, as for the planner until all nodes are
// planned; without, only what is launched does, as for the scheduler. Each pod is launched
// for in the pools of most weight that offer it anything: if limits, reservations or rules
// between pods could push it to others, weights must be equal. Offerings that PodGroups avoid and
// minValues are not looked at. The number of ways grows with the power of the pods: use it for three or
// four.
func Best(s *model.Snapshot, plan *model.Plan, below model.Price, domains bool) (least model.Price, less, all bool) {
	b := &brute{adder: adder{checker: newChecker(s, model.DefaultPolicy()), plan: &model.Plan{}}, best: below}
	b.left = b.reservable()
	if domains {
		b.domains = []*site{{name: "another host", blank: true}}
	}
	places, known := Places(plan), map[string]bool{}
	for i := range b.s.Pending {
		p := &b.s.Pending[i]
		for _, pod := range p.Pods {
			at, placed := places[pod.Key()]
			if !placed {
				continue
			}
			b.pod, b.one = b.pinned(p, pod), pod
			e := errand{pod: pod, pending: b.pod}
			if pod.Planned != "" && at == pod.Planned {
				e.node = at
			} else {
				e.offered = b.offered()
			}
			b.errands = append(b.errands, e)
			for _, m := range e.offered {
				if d := m.site.outcomes[0].Without(model.LabelInstanceType).String(); domains && !known[d] {
					known[d] = true
					b.domains = append(b.domains, m.site)
				}
			}
		}
	}
	b.followWeights()
	for _, e := range b.errands {
		slices.SortStableFunc(e.offered, func(x, y machine) int { return int(x.offer.Price - y.offer.Price) })
	}
	b.assign(0, 0)
	return b.best, b.found, b.ways <= maxWays
}

// brute is the search: errands up to one have a place.
type brute struct {
	adder
	errands []errand
	domains []*site // that could be launched
	bins    []bin
	left    map[string]int64 // what reservations still give, by their ID
	best    model.Price      // less than this is looked for
	found   bool
	ways    int // that were held against the rules
}

// errand is a pod that needs a place.
type errand struct {
	pod     model.Pod
	pending *model.Pending
	node    string    // that it stays on; "" = any, or a new one
	offered []machine // that could be launched for it alone
}

// bin is a new node with the pods on it.
type bin struct {
	machine machine
	labels  model.Requirements
	pods    []errand
}

// pinned returns the pods in the domain in which pods of their PodGroup run, if they
// must be in one.
func (b *brute) pinned(p *model.Pending, pod model.Pod) *model.Pending {
	i := slices.IndexFunc(b.s.Groups, func(g model.PodGroup) bool { return g.Name == pod.Group && g.TopologyKey != "" })
	if i < 0 || len(b.running(b.s.Groups[i])) == 0 {
		return p
	}
	return b.confined(&model.Plan{}, p, pod)
}

// followWeights leaves of what could be launched for a pod the pools of most weight.
func (b *brute) followWeights() {
	for i := range b.errands {
		e := &b.errands[i]
		most := int32(-1)
		for _, m := range e.offered {
			most = max(most, m.pool.Weight)
		}
		e.offered = slices.DeleteFunc(e.offered, func(m machine) bool { return m.pool.Weight < most })
	}
}

// assign puts the pods from k on on nodes, into bins, or into new ones.
func (b *brute) assign(k int, price model.Price) {
	if price >= b.best || b.ways > maxWays {
		return
	}
	if k == len(b.errands) {
		if b.ways++; b.valid() {
			b.best, b.found = price, true
		}
		return
	}
	e := &b.errands[k]
	for i := range b.s.Nodes {
		n := &b.s.Nodes[i]
		if b.pod, b.one = e.pending, e.pod; e.node != "" && e.node != n.Name || !b.onto(n) {
			continue
		}
		b.plan.Placements = append(b.plan.Placements, model.Placement{Pod: e.pod, Node: n.Name})
		b.assign(k+1, price)
		b.plan.Placements = b.plan.Placements[:len(b.plan.Placements)-1]
	}
	for i := range b.bins {
		old := b.bins[i]
		for _, labels := range b.joint(&old, e) {
			b.bins[i] = bin{old.machine, labels, append(old.pods[:len(old.pods):len(old.pods)], *e)}
			b.assign(k+1, price)
		}
		b.bins[i] = old
	}
	for _, m := range e.offered {
		id := m.offer.ReservationID
		if id != "" && b.left[id] <= 0 || !b.withinLimits(m) {
			continue
		}
		b.left[id]--
		b.bins = append(b.bins, bin{m, m.demands, []errand{*e}})
		b.assign(k+1, price+m.offer.Price)
		b.bins = b.bins[:len(b.bins)-1]
		b.left[id]++
	}
}

// withinLimits reports whether the limits of its pool allow one more instance.
func (b *brute) withinLimits(m machine) bool {
	sum := m.pool.Usage.Plus(m.kind.Capacity)
	for _, n := range b.bins {
		if n.machine.pool == m.pool {
			sum = sum.Plus(n.machine.kind.Capacity)
		}
	}
	return !slices.ContainsFunc(m.pool.Limits, func(l model.Limit) bool { return sum.At(l.Resource) > l.Max })
}

// joint returns the labels the node may have when it takes one more pod, which could be
// launched for there alone: a label that no one defines does not come with another pod that
// merely excludes some of its values.
func (b *brute) joint(n *bin, e *errand) []model.Requirements {
	alone := func(m machine) bool { return m.pool == n.machine.pool && m.offer == n.machine.offer }
	if e.node != "" || !slices.ContainsFunc(e.offered, alone) {
		return nil
	}
	shapes := []*model.Shape{e.pending.Shape}
	var others []model.Pod
	for _, o := range n.pods {
		shapes, others = append(shapes, o.pending.Shape), append(others, o.pod)
	}
	b.pod, b.one = e.pending, e.pod
	if !b.holds(outcome{kind: n.machine.kind, offer: n.machine.offer}, n.machine.pool, shapes) || !b.supplies(n.machine.kind.Devices, others) {
		return nil
	}
	var out []model.Requirements
	for _, alt := range e.pending.Shape.Alternatives() {
		if _, ok := n.labels.Compatible(alt, b.s.WellKnown); ok {
			out = append(out, n.labels.And(alt...))
		}
	}
	return out
}

// valid reports whether the scheduler would follow.
func (b *brute) valid() bool {
	sites, teams := b.layOut(b.plan)
	where := map[string]*site{}
	for _, p := range b.plan.Placements {
		where[p.Pod.Key()] = sites[slices.IndexFunc(b.s.Nodes, func(n model.Node) bool { return n.Name == p.Node })]
	}
	sites = append(sites, b.domains...)
	together := *b.plan
	for i, n := range b.bins {
		at := &site{name: fmt.Sprint("new node ", i), outcomes: []model.Requirements{numbered(b.s, n.labels)}, taints: n.machine.pool.Taints}
		sites = append(sites, at)
		var pods []model.Pod
		for _, e := range n.pods {
			teams, pods = append(teams, team{pending: e.pending, site: at, left: 1}), append(pods, e.pod)
			where[e.pod.Key()] = at
		}
		together.Launches = append(together.Launches, model.Launch{Pods: pods})
	}
	shared := &checker{s: b.s, shapes: b.shapes}
	shared.sharing(&together)
	return len(shared.wrong) == 0 && b.together(where) && replay(sites, teams) == ""
}

// together reports whether the pods of every PodGroup that must be in one domain are.
func (b *brute) together(at map[string]*site) bool {
	return !slices.ContainsFunc(b.s.Groups, func(g model.PodGroup) bool {
		var where []string
		return b.gathers(g) && slices.ContainsFunc(b.errands, func(e errand) bool {
			if e.pod.Group != g.Name {
				return false
			}
			domains := at[e.pod.Key()].domains(g.TopologyKey)
			apart := len(domains) != 1 || domains[0] == absent || where != nil && !slices.Equal(where, domains)
			where = domains
			return apart
		})
	})
}
