// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"iter"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// patience is how much more is done to find an order in which the scheduler would put
// pods where they were planned: an earlier plan has found one. For few pods it is more.
const (
	patience    = 7
	patienceFew = 127
	fewOrdered  = 32
)

// keepPlanned leaves pods on the node an earlier plan chose for them, as long
// as they still fit there and the scheduler would put all of them there in some
// order. Without it a second look at the same situation could pack differently
// and find the last pod homeless.
func (x *draft) keepPlanned() {
	x.keep(x.staying())
	x.kept = slices.Clone(x.placed)
	for _, d := range x.demands {
		d.loose = len(d.left)
	}
}

// staying returns what was planned before and stays there.
func (x *draft) staying() []placement {
	if x.earlier != nil {
		return x.earlier
	}
	moves, pods := x.planned()
	if len(moves) == 0 {
		return nil
	}
	x.topology.Final(true)
	if x.topology.Patience = patience; podsOf(moves) <= fewOrdered {
		x.topology.Patience = patienceFew
	}
	if !x.known.vanish {
		x.keepDomains(true)
	}
	admitted := x.topology.Admit(moves)
	x.keepDomains(false)
	x.topology.Final(false)
	x.topology.Patience = 0
	var stay []placement
	for i, m := range moves {
		x.moved = x.moved || admitted[i] < m.Pods
		for _, p := range pods[i][:admitted[i]] {
			stay = append(stay, placement{m.Kind, m.Site, p})
		}
		x.topology.Add(m.Kind, x.topology.At(m.Site), m.Site, -admitted[i])
	}
	if x.book != nil {
		slices.SortStableFunc(stay, func(a, b placement) int { return x.sooner(a.kind, b.kind, &a.pod, &b.pod) })
	}
	return stay
}

func podsOf(moves []topology.Move) int {
	n := 0
	for _, m := range moves {
		n += m.Pods
	}
	return n
}

// sooner orders pods of two kinds as the scheduler is likely to take them: each gets the
// first devices that fit, so that another order can leave none for the last one.
func (x *draft) sooner(a, b int, one, other *model.Pod) int {
	return cmp.Or(cmp.Compare(x.snapshot.Pending[b].Shape.Priority, x.snapshot.Pending[a].Shape.Priority), soonest(one, other))
}

// planned lists the pods that still fit where an earlier plan put them, rules
// between pods not asked.
func (x *draft) planned() (moves []topology.Move, pods [][]model.Pod) {
	wants := func(p model.Pod) bool { return p.Planned != "" }
	if !slices.ContainsFunc(x.demands, func(d *demand) bool { return slices.ContainsFunc(d.left, wants) }) {
		return nil, nil
	}
	rows := slices.Clone(x.nodes)
	byName := map[string]*fit.NodeRow{}
	for i := range rows {
		byName[rows[i].Claim] = &rows[i]
	}
	for i := range rows {
		byName[rows[i].Name] = &rows[i]
	}
	type wish struct {
		*demand
		pod model.Pod
	}
	var wishes []wish
	for _, d := range x.demands {
		for _, p := range d.left {
			if p.Planned != "" {
				wishes = append(wishes, wish{d, p})
			}
		}
	}
	if x.book != nil {
		slices.SortStableFunc(wishes, func(a, b wish) int { return x.sooner(a.kind, b.kind, &a.pod, &b.pod) })
	}
	index, shapes := map[topology.Move]int{}, map[*demand]*model.Shape{}
	for _, w := range wishes {
		shape := shapes[w.demand]
		if shape == nil {
			shape = Soft(w.Shape)
			shapes[w.demand] = shape
		}
		n := byName[w.pod.Planned]
		if n == nil || alone(shape, n, 1) == 0 {
			continue
		}
		put(shape, n, 1)
		at := topology.Move{Kind: w.kind, Site: n.Site}
		i, ok := index[at]
		if !ok {
			i = len(moves)
			index[at] = i
			moves, pods = append(moves, at), append(pods, nil)
		}
		moves[i].Pods++
		pods[i] = append(pods[i], w.pod)
	}
	return moves, pods
}

// keep leaves pods where it was seen that they stay.
func (x *draft) keep(stay []placement) {
	if len(stay) == 0 {
		return
	}
	rows, wholes := map[int]*fit.NodeRow{}, map[int]*demand{}
	for i := range x.nodes {
		rows[x.nodes[i].Site] = &x.nodes[i]
	}
	for _, d := range x.demands {
		wholes[d.kind] = d
	}
	stays := map[string]bool{}
	for _, p := range stay {
		x.topology.Add(p.kind, x.topology.At(p.site), p.site, 1)
		x.place(rows[p.site], wholes[p.kind], []model.Pod{p.pod})
		stays[p.pod.Key()] = true
	}
	for _, d := range x.demands {
		d.left = slices.DeleteFunc(d.left, func(p model.Pod) bool { return stays[p.Key()] })
	}
}

// fillNodes puts pods of d on the nodes there are, first come first served.
func (x *draft) fillNodes(d *demand) {
	for i := range x.liking(d) {
		if len(d.left) == 0 {
			return
		}
		n := &x.nodes[i]
		if room := x.room(d, n, len(d.left)); room > 0 {
			x.topology.Add(d.kind, x.topology.At(n.Site), n.Site, room)
			x.place(n, d, d.left[:room])
			d.left = d.left[room:]
		}
	}
}

// What it takes to see which nodes meet a preference, in steps.
const (
	stepsPerPreference = 64
	stepsPerValue      = 64 // of a label
)

// liking returns the positions of the nodes in the order d looks at them: those
// first that meet more of its preferences.
func (x *draft) liking(d *demand) iter.Seq[int] {
	prefers := x.snapshot.Pending[d.kind].Shape.Preferences
	if len(prefers) == 0 || x.policy.IgnorePreferences {
		return indices(len(x.nodes))
	}
	score := make([]int32, len(x.snapshot.Nodes)) // by site
	some := false
	for _, p := range prefers {
		meeting, compared := x.labels.Meeting(p.Term)
		x.budget.Spend(stepsPerPreference + stepsPerValue*compared)
		for site := range meeting.All() {
			score[site] += p.Weight
			some = true
		}
	}
	if !some {
		return indices(len(x.nodes))
	}
	order := slices.Collect(indices(len(x.nodes)))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[x.nodes[b].Site], score[x.nodes[a].Site]) })
	return slices.Values(order)
}

// indices returns the numbers from 0 to n-1.
func indices(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
