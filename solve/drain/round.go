// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"math"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/pack"
	"karpenter/solve/work"
)

// round is one decision about what to take away.
type round struct {
	given    *model.Snapshot
	s        model.Snapshot // as it will be once what is decided is done
	policy   model.Policy
	memory   *pack.Memory
	memories []pack.Memory // for questions that are asked at once
	plan     *model.Plan
	work     *work.Budget

	pools     map[string]int              // by name: index in s.Pools
	budget    []map[model.Reason]int      // by index in s.Pools
	receiving map[string]receipt          // nodes that pods are planned on, by name
	taken     map[string]bool             // nodes of commands, by name
	intended  map[string]bool             // claims of commands that are being confirmed, while they are looked at
	refused   map[string]model.Stay       // why a node is kept, as far as it was looked at, by name
	worth     map[*model.Shape]float64    // what a pod costs at least on a new node
	least     map[*model.Shape]float64    // what the cheapest node costs that takes one
	launched  map[*model.Shape]float64    // what the node costs that is launched for one without a place
	homes     map[*model.Shape][]string   // up to two nodes that take one; those of an earlier state may be too many, never too few
	stage     []fit.NodeRow               // by site, the nodes the scheduler may put pods on now, others without a Node; nil = to be made
	lodgers   lodgers                     // room that buffers keep
	rows      []fit.NodeRow               // the nodes there were to take pods, at some time
	totals    []total                     // by index in s.Pools
	turns     map[string]*turnover        // of static pools, as far as they were asked for
	menus     map[menu]model.Requirements // what the types of launches have in common, as far as it was asked for
}

// menu is the types that launches of a pool list: where their names are stored.
type menu struct {
	pool  string
	first *string
	types int
}

// receipt is what is planned on a node.
type receipt struct {
	pending bool   // pods that were pending before
	buffer  string // with nothing but room for buffers, the first of them by name
}

// lodgers are the pods that stand in for buffers.
type lodgers struct {
	at     map[int][]*model.Pending // by site they are planned on
	shapes []*model.Shape           // different ones
}

// receivers returns the nodes that pods are planned on.
func receivers(plan *model.Plan) map[string]receipt {
	out := map[string]receipt{}
	for _, p := range plan.Placements {
		got, known := out[p.Node]
		switch {
		case !known, p.Pod.Buffer == "":
			out[p.Node] = receipt{true, p.Pod.Buffer}
		case got.buffer != "":
			out[p.Node] = receipt{true, min(got.buffer, p.Pod.Buffer)}
		}
	}
	return out
}

// allowed reports whether the budgets of their pools let all nodes be disrupted.
func (r *round) allowed(reason model.Reason, sites ...int) bool {
	want := map[int]int{}
	for _, i := range sites {
		pool, ok := r.pools[r.s.Nodes[i].Pool]
		if !ok {
			return false
		}
		if want[pool]++; want[pool] > r.budget[pool][reason] {
			return false
		}
	}
	return true
}

// question is what a trial asks: what becomes of the pods of the nodes.
type question struct {
	sites []int
	most  model.Price // nothing is bought that costs more
	// linger has the nodes be there, empty, while places are looked for, as they
	// are for the scheduler until they have drained: what spreads evenly waits for
	// them to go where they were among the emptiest, and a node is bought for what
	// waits. Without it they are gone.
	linger bool
}

// try asks the question.
func (r *round) try(q question, p model.Policy) (*pack.Trial, []model.Pending) {
	sites, most := q.sites, q.most
	before := make([]model.Node, len(sites))
	for i, site := range sites {
		n := &r.s.Nodes[site]
		before[i] = *n
		n.Deleting, n.Closed, n.Residents = !q.linger, q.linger, nil
	}
	pending := movable(before)
	r.s.Pending = pending
	worth := make([]float64, len(pending))
	for i := range pending {
		worth[i] = r.worth[pending[i].Shape]
	}
	part := r.work.Part(perQuestion)
	t := pack.Try(&r.s, p, r.memory, most, worth, part)
	r.work.Return(part)
	for i, site := range sites {
		r.s.Nodes[site] = before[i]
	}
	r.s.Pending = nil
	return t, pending
}

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

// pods counts the pods of a node that need a place elsewhere.
func pods(n *model.Node) int {
	count := 0
	for i := range n.Movable {
		count += len(n.Movable[i].Pods)
	}
	return count
}

// What may be spent on a trial: anything it takes, or nothing.
const (
	unlimited = model.Price(math.MaxInt64)
	nothing   = model.Price(-1)
)

// total is what the nodes of a pool cost, and what taking all away would
// disrupt.
type total struct{ price, disruption float64 }

// turnover is what a static pool lets be replaced of its nodes.
type turnover struct {
	cause  model.Cause // why none of them
	why    string      // "" = some may be, within budgets
	room   int         // how many
	full   string      // why there is no more
	launch model.Launch
	// reservations are what the template allows, if nothing can be launched
	// because they are all full.
	reservations []*model.Offering
}

func reasons() []model.Reason {
	return []model.Reason{model.Empty, model.Drifted, model.Underutilized, model.Unhealthy}
}
