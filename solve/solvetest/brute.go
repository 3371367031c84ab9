// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// Best returns the least price of new nodes for all pending pods of a
// situation without nodes and limits, by trying every way to share them out
// that the scheduler would follow. With domains, what could be launched counts as a
// domain for spread, as for the planner until all nodes are planned; without, only
// what is launched does, as for the scheduler. It reports false when there is no
// way. The number of ways grows with the power of the pods: use it for three or
// four.
func Best(s *model.Snapshot, domains bool) (model.Price, bool) {
	b := &brute{adder: adder{checker: newChecker(s, model.DefaultPolicy()), plan: &model.Plan{}}, best: -1}
	if domains {
		b.domains = []*site{{name: "another host", blank: true}}
	}
	known := map[string]bool{}
	for i := range s.Pending {
		b.pod = &s.Pending[i]
		offered := b.offered()
		slices.SortStableFunc(offered, func(x, y machine) int { return int(x.offer.Price - y.offer.Price) })
		for _, m := range offered {
			if d := m.site.outcomes[0].Without(model.LabelInstanceType).String(); domains && !known[d] {
				known[d] = true
				b.domains = append(b.domains, m.site)
			}
		}
		for range s.Pending[i].Pods {
			b.pods = append(b.pods, b.pod)
			b.choices = append(b.choices, offered)
		}
	}
	b.assign(0, 0)
	return b.best, b.best >= 0
}

type brute struct {
	adder
	pods    []*model.Pending
	choices [][]machine // by pod: what could be launched for it alone
	domains []*site     // that could be opened
	bins    []bin
	best    model.Price // -1 = none found
}

// bin is a new node with the pods on it.
type bin struct {
	machine machine
	labels  model.Requirements
	pods    []*model.Pending
}

// assign puts the pods from k on into bins, or launches new ones.
func (b *brute) assign(k int, price model.Price) {
	if b.best >= 0 && price >= b.best {
		return
	}
	if k == len(b.pods) {
		if b.valid() {
			b.best = price
		}
		return
	}
	for i := range b.bins {
		old := b.bins[i]
		for _, labels := range b.joint(&old, b.pods[k]) {
			b.bins[i] = bin{old.machine, labels, append(old.pods[:len(old.pods):len(old.pods)], b.pods[k])}
			b.assign(k+1, price)
		}
		b.bins[i] = old
	}
	for _, m := range b.choices[k] {
		if b.best >= 0 && price+m.offer.Price >= b.best {
			break
		}
		b.bins = append(b.bins, bin{m, m.demands, []*model.Pending{b.pods[k]}})
		b.assign(k+1, price+m.offer.Price)
		b.bins = b.bins[:len(b.bins)-1]
	}
}

// joint returns the labels the node may have when it takes one more pod.
func (b *brute) joint(n *bin, p *model.Pending) []model.Requirements {
	shapes := []*model.Shape{p.Shape}
	for _, q := range n.pods {
		shapes = append(shapes, q.Shape)
	}
	if _, bad := model.Untolerated(firm(n.machine.pool.Taints), p.Shape.Tolerations); bad ||
		!b.holds(outcome{kind: n.machine.kind, offer: n.machine.offer}, n.machine.pool, shapes) {
		return nil
	}
	var out []model.Requirements
	for _, alt := range p.Shape.Alternatives() {
		if _, ok := n.labels.Compatible(alt, b.s.WellKnown); ok {
			out = append(out, n.labels.And(alt...))
		}
	}
	return out
}

// valid reports whether the scheduler would follow.
func (b *brute) valid() bool {
	sites := slices.Clone(b.domains)
	var teams []team
	for i, n := range b.bins {
		at := &site{name: fmt.Sprint("node ", i), outcomes: []model.Requirements{numbered(b.s, n.labels)}, taints: n.machine.pool.Taints}
		sites = append(sites, at)
		for _, p := range n.pods {
			teams = append(teams, team{pending: p, site: at, left: 1})
		}
	}
	return replay(sites, teams) == ""
}
