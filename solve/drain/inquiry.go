// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/pack"
	"karpenter/solve/work"
)

// inquiry asks questions about the scene.
type inquiry struct {
	estimates
	policy model.Policy
	plan   *model.Plan
	work   *work.Budget
}

// question is what a trial asks: what becomes of the pods of the nodes.
type question struct {
	sites []int
	most  model.Price // nothing is launched that costs more
	// linger has the nodes be there, empty, while places are looked for, as they
	// are for the scheduler until they have drained: what spreads evenly waits for
	// them to go where they were among the emptiest, and a node is launched for what
	// waits. Without it they are gone.
	linger bool
	// ample has each pod ask for more than it does: the nodes that are launched have room to spare.
	ample bool
	avoid []string // pools that launch nothing
}

// try asks the question, honors preferences and spreads workloads over spot pools.
func (ask *inquiry) try(q question, p model.Policy) (*pack.Trial, []model.Pending) {
	t, pending := ask.probe(q, p)
	return ask.disperse(q, ask.honor(q, t)), pending
}

// probe asks the question, and ignores preferences.
func (ask *inquiry) probe(q question, p model.Policy) (t *pack.Trial, pending []model.Pending) {
	nodes := make([]model.Node, len(q.sites))
	for i, site := range q.sites {
		nodes[i] = ask.s.Nodes[site]
	}
	pending = movable(nodes)
	asked := ask.s // the trial keeps it
	asked.Pending = pending
	if q.ample {
		asked.Pending = ample(pending)
	}
	worth := make([]float64, len(pending))
	for i := range pending {
		worth[i] = ask.worth[pending[i].Shape]
	}
	ask.supposing(q, func(part *work.Budget) {
		t = pack.Try(&asked, p, ask.memory, pack.Question{Most: q.most, Worth: worth, Arrivals: ask.arrivals, Avoid: q.avoid}, part)
	})
	ask.work.Spend(trialSteps + nodeSteps*len(ask.s.Nodes))
	return t, pending
}

// honor returns the trial of the question with the preferences that can be honored.
func (ask *inquiry) honor(q question, t *pack.Trial) (out *pack.Trial) {
	ask.supposing(q, func(part *work.Budget) { out = t.Honor(part) })
	return out
}

// disperse returns the trial of the question with workloads spread over spot pools.
func (ask *inquiry) disperse(q question, t *pack.Trial) (out *pack.Trial) {
	if len(t.Launches) == 0 {
		return t
	}
	ask.supposing(q, func(part *work.Budget) { out = t.Disperse(part) })
	return out
}

// supposing calls do with the nodes of the question as it has them be, and with a part of the
// budget.
func (ask *inquiry) supposing(q question, do func(part *work.Budget)) {
	before := make([]model.Node, len(q.sites))
	for i, site := range q.sites {
		n := &ask.s.Nodes[site]
		before[i] = *n
		n.Deleting, n.Closed, n.Residents = !q.linger, q.linger, nil
	}
	part := ask.work.Part(perQuestion)
	do(part)
	ask.work.Return(part)
	for i, site := range q.sites {
		ask.s.Nodes[site] = before[i]
	}
}

// spare is how much more pods ask for in a question that is ample.
const spare = 0.08

// ample returns the pods as they ask for more.
func ample(pending []model.Pending) []model.Pending {
	out := slices.Clone(pending)
	for i := range out {
		shape := *out[i].Shape
		shape.Key += " amply"
		for _, r := range []int{model.CPU, model.Memory} {
			shape.Requests = shape.Requests.With(r, int64(float64(shape.Requests.At(r))*(1+spare)))
		}
		out[i].Shape = &shape
	}
	return out
}

// What a trial takes besides the search that it counts itself, in steps: for itself
// and for each node there is.
const (
	trialSteps = 60_000
	nodeSteps  = 120
)

// perQuestion is the part of the budget that is left which one question may use.
const perQuestion = 1.0 / 8

// group names pods that may be exchanged.
type group struct {
	shape     *model.Shape
	namespace string
	labels    *model.Label
}

func groupOf(p *model.Pending) group {
	g := group{shape: p.Shape, namespace: p.Peer.Namespace}
	if len(p.Peer.Labels) > 0 {
		g.labels = &p.Peer.Labels[0]
	}
	return g
}

// movable returns the pods of the nodes that need a place elsewhere.
func movable(nodes []model.Node) []model.Pending {
	if len(nodes) == 1 {
		return nodes[0].Movable
	}
	index := map[group]int{}
	var out []model.Pending
	for i := range nodes {
		for j := range nodes[i].Movable {
			p := &nodes[i].Movable[j]
			at, known := index[groupOf(p)]
			if !known {
				at = len(out)
				index[groupOf(p)] = at
				out = append(out, model.Pending{Shape: p.Shape, Peer: p.Peer})
			}
			out[at].Pods = append(out[at].Pods, p.Pods...)
		}
	}
	return out
}

// price finds what the pods of the candidates cost on new nodes at least.
func (ask *inquiry) price(candidates []int) {
	nodes := make([]model.Node, 0, len(candidates))
	for _, i := range candidates {
		nodes = append(nodes, ask.s.Nodes[i])
	}
	all := ask.s
	all.Nodes, all.Pending = nil, movable(nodes)
	part := ask.work.Part(1.0 / 8)
	worth := pack.Worth(&all, ask.policy, ask.memory, part)
	ask.work.Return(part)
	for i := range all.Pending {
		shape := all.Pending[i].Shape
		if known, ok := ask.worth[shape]; !ok || worth[i] < known {
			ask.worth[shape] = worth[i]
		}
	}
}
