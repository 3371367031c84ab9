package pack

import (
	"slices"

	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// Bounds of the search for places for single pods: how many changes to the
// draft are tried, times the pods that each has to be checked with.
const (
	insertions      = 1 << 17
	trialInsertions = 1 << 12 // where only a Trial is wanted
)

// insertion is the part of repair that finds places for pods that are left, one
// pod at a time: on a node there is, on a node of the plan, or on one more node.
// It keeps a change only if the scheduler would still follow the whole plan.
type insertion struct {
	repair
	work   int  // that is left
	before mark // the draft without the change that is being tried
}

// insertAll finds places for pods that are left. It reports whether it looked at
// all that it could try.
func (r repair) insertAll() bool {
	n := &insertion{repair: r, work: insertions}
	if r.trial != nil {
		n.work = trialInsertions
	}
	for progress := r.homeless(); progress; {
		progress = false
		for _, d := range r.inOrder() {
			for len(d.left) > 0 && n.work > 0 && !n.budget.Spent() && n.insert(d) {
				progress = true
			}
			if n.leaves != nil && len(d.left) > n.leaves[d.kind] {
				return false // the plan without wishes is better
			}
		}
	}
	return n.work > 0
}

// prune takes pods out of the draft until the scheduler follows it.
func (r repair) prune() {
	for {
		r.gatherLeft()
		r.known.add(r.verify())
		if !slices.ContainsFunc(r.demands, func(d *demand) bool { return len(d.stuck) > 0 }) {
			break
		}
	}
	r.nodes = slices.Clone(r.startNodes)
	rows := map[int]*fit.NodeRow{}
	for i := range r.nodes {
		rows[r.nodes[i].Site] = &r.nodes[i]
	}
	for _, p := range r.placed {
		put(r.snapshot.Pending[p.kind].Shape, rows[p.site], 1)
	}
	r.rebuild()
}

// keeps reports whether the draft was changed and the scheduler would follow the
// plan now. If it would not, the change is undone.
func (n *insertion) keeps(changed bool) bool {
	if !changed || n.stands() {
		return changed
	}
	n.undo()
	return false
}

// undo takes the draft back to where it was before the change.
func (n *insertion) undo() {
	n.spend(n.size())
	n.rollback(n.before)
	n.abandoned = inProgress
}

func (n *insertion) spend(steps int) {
	n.work -= steps
	n.budget.Spend(steps)
}

// size is what it takes to copy the draft.
func (n *insertion) size() int { return len(n.demands) + len(n.placed) + len(n.nodes) + len(n.bins) }

// stands counts anew and reports whether the scheduler would follow the plan.
func (n *insertion) stands() bool {
	moves, _ := n.recount()
	admitted := n.topology.Admit(moves)
	pods, stands := 1, true
	for i, m := range moves {
		pods += m.Pods
		stands = stands && admitted[i] == m.Pods
	}
	n.spend(pods)
	return stands
}

// insert finds a place for one pod of d.
func (n *insertion) insert(d *demand) bool {
	n.before = n.mark()
	n.spend(n.size())
	for i := range n.nodes {
		node := &n.nodes[i]
		fits := n.room(d, node, 1) > 0 && n.topology.Allows(d.kind, n.topology.At(node.Site))
		if fits && n.keeps(n.onto(d, node)) {
			return true
		}
	}
	if !d.buyable {
		return false
	}
	for i := range n.bins {
		if n.canJoin(d, i) && n.keeps(n.intoBin(d, i)) {
			return true
		}
	}
	return slices.ContainsFunc(n.keysOf(d), func(keys []int) bool { return n.onNew(d, keys) })
}

// onNew finds a place for one pod of d on a new node that is settled by the keys.
func (n *insertion) onNew(d *demand, keys []int) bool {
	if len(keys) == 0 {
		return n.keeps(n.launchFor(d, d))
	}
	areas := slices.DeleteFunc(slices.Clone(n.atlas.areas(keys)), func(a area) bool {
		return !slices.ContainsFunc(d.Shape.Alternatives(), a.suits)
	})
	for _, a := range areas {
		for i := range n.bins {
			site := len(n.snapshot.Nodes) + i
			open := within(a.place, n.topology.At(site), keys) && n.topology.Cap(d.kind, site) > 0
			if open && n.keeps(n.settleBin(d, a, i)) {
				return true
			}
		}
	}
	for _, a := range areas {
		n.topology.Buyable(d.kind, []topology.Place{a.place})
		if n.topology.Allows(d.kind, a.place) && n.keeps(n.launchFor(d, n.settledAs(d, a))) {
			return true
		}
	}
	return false
}

// launchFor launches a node for the next pod of d, as a pod of part. It changes
// nothing if none can be had.
func (n *insertion) launchFor(d, part *demand) bool {
	rest := d.left[1:]
	d.left, part.left = rest, d.left[:1:1]
	n.takeSurvey()
	for _, tier := range n.tiers {
		if !buyFor(n.draft, tier, []*demand{part}) {
			break
		}
		if len(part.left) == 0 {
			d.left = rest
			return true
		}
	}
	n.undo()
	return false
}
