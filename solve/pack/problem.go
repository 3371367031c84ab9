// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"
	"sort"

	"karpenter/model"
	"karpenter/solve/devices"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
	"karpenter/solve/work"
)

// problem is a Snapshot compiled for placing its pending pods under a policy.
// Plans are made of it and do not change it: what it has computed for one of
// them it only remembers for the next.
type problem struct {
	terms
	*remembered
	snapshot *model.Snapshot
	memory   *Memory
	budget   *work.Budget

	catalogue    *fit.Catalogue
	book         *devices.Book // nil = no pod needs devices
	tiers        []tier
	floors       [][]floor // by pool
	reservations reservations
	startNodes   []fit.NodeRow
	labels       *fit.Labels // of the nodes of the Snapshot
	startDemands []demand

	futures *futures        // remembered, also under other terms
	charges map[int]float64 // as futures, by first pool of a tier; see fewer
}

// terms say what kind of plan is wanted.
type terms struct {
	policy   model.Policy
	trial    *trial                  // nil = a plan is wanted, with proof and reasons
	arrivals []Arrival               // pods that are placed already: they count in spot pools
	avoid    []string                // names of pools that launch nothing
	anyCount bool                    // of new nodes will do: it is not looked for fewer
	wishes   map[int]topology.Wishes // by kind: preferences that are rules in this problem
	unwished *model.Snapshot         // without the preferences that are demands in this problem; nil = there are none
	leaves   []int                   // by kind: how many pods a plan without wishes leaves; nil = this is one
	earlier  []placement             // what was planned before and stays there; nil = that is to be seen
}

// Arrival is a pod that was pending, or ran on another node, and is to be on that of the site.
type Arrival struct {
	Pod  model.Pod
	Site int
}

// remembered is what was computed for one plan of a problem and serves the next.
type remembered struct {
	varieties    map[string]*variety
	regions      map[string][]*region // by the labels that tell them apart
	regionsKnown int
	mentions     map[string][]string // by label: values that nodes or pods name; nil = to be seen
	toPlace      int                 // how many pods are to be placed
	departing    map[string]bool     // pods that are pending, by key; nil = to be seen
	soft         bool                // some NodePool or node has a taint that pods only prefer to avoid
}

// departs reports whether the node of the site is to go. Closed nodes whose pods are pending
// are; others stay, and only take no pods.
func (q *problem) departs(site int) bool {
	n := &q.snapshot.Nodes[site]
	if n.Deleting {
		return true
	}
	if !n.Closed {
		return false
	}
	if q.departing == nil {
		q.departing = map[string]bool{}
		for i := range q.snapshot.Pending {
			for _, p := range q.snapshot.Pending[i].Pods {
				q.departing[p.Key()] = true
			}
		}
	}
	return slices.ContainsFunc(n.Movable, func(p model.Pending) bool {
		return slices.ContainsFunc(p.Pods, func(p model.Pod) bool { return q.departing[p.Key()] })
	})
}

// tier is the pools of equal weight.
type tier = fit.Range

// tierOf returns the position of the tier of a pool.
func (q *problem) tierOf(pool int) int {
	return sort.Search(len(q.tiers), func(i int) bool { return pool < q.tiers[i].To })
}

// offersIn returns the offers of a tier.
func (q *problem) offersIn(t tier) fit.Range {
	return fit.Range{From: q.catalogue.Pools[t.From].Offers.From, To: q.catalogue.Pools[t.To-1].Offers.To}
}

// avoids reports whether a soft taint keeps the shape from some pool or node.
func (q *problem) avoids(s *model.Shape) bool {
	soft := func(t model.Taint, bad bool) bool { return bad && t.Effect == model.PreferNoSchedule }
	return q.soft && (slices.ContainsFunc(q.catalogue.Pools, func(p fit.Pool) bool { return soft(model.Untolerated(p.Taints, s.Tolerations)) }) ||
		slices.ContainsFunc(q.startNodes, func(n fit.NodeRow) bool { return soft(n.Untolerated(s)) }))
}

// hasSoftTaints reports whether some NodePool or node has a taint that pods only prefer to
// avoid.
func (q *problem) hasSoftTaints() bool {
	soft := func(all []model.Taint) bool {
		return slices.ContainsFunc(all, func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
	}
	return slices.ContainsFunc(q.catalogue.Pools, func(p fit.Pool) bool { return soft(p.Taints) }) ||
		slices.ContainsFunc(q.startNodes, func(n fit.NodeRow) bool { return soft(n.Taints) })
}

// invented returns the value that a label of the user's own gets which a claim
// demands without naming values.
func (q *problem) invented(demand model.Requirement) (string, bool) {
	if demand.AllowsAbsence() || q.snapshot.WellKnown.Has(demand.Key) {
		return "", false
	}
	return demand.Number()
}

func (q *problem) pool(offer int) *fit.Pool {
	return &q.catalogue.Pools[q.poolOf(offer)]
}

// poolOf returns the index of the pool that the offer is of.
func (q *problem) poolOf(offer int) int {
	return q.catalogue.Types[q.catalogue.Offers[offer].Type].Pool
}

func (q *problem) capacity(offer int) model.Resources {
	return q.catalogue.Types[q.catalogue.Offers[offer].Type].Capacity
}

// allot lets what follows use a part of the budget that is left, until the whole
// is called for again.
func (q *problem) allot(part float64) (whole func()) {
	all := q.budget
	q.budget = all.Part(part)
	return func() {
		all.Return(q.budget)
		q.budget = all
	}
}

// trouble is what a node is charged on top of its price: of two plans that cost
// the same, the one with fewer nodes is better. It is next to nothing, also
// beside the lowest price that is not zero.
func (q *problem) trouble() float64 {
	if q.catalogue.Least == 0 {
		return 1
	}
	return min(1, float64(q.catalogue.Least)/1e6)
}

func (q *problem) charged(price model.Price) float64 { return float64(price) + q.trouble() }

// Soft returns the shape with tolerance for every PreferNoSchedule taint.
func Soft(s *model.Shape) *model.Shape {
	out := *s
	out.Tolerations = append(slices.Clone(s.Tolerations), model.Toleration{Exists: true, Effect: model.PreferNoSchedule})
	return &out
}

// covered reports whether what is reserved for a node of one capacity in the
// limits of its pool does for another.
func (q *problem) covered(pool int, reserved, capacity model.Resources) bool {
	return !slices.ContainsFunc(q.catalogue.Pools[pool].Limits, func(l model.Limit) bool { return capacity.At(l.Resource) > reserved.At(l.Resource) })
}

// trial is what a problem is about of which only a Trial is wanted.
type trial struct {
	most    float64
	nothing bool      // may be launched
	worth   []float64 // by kind; nil = the trial is not abandoned
}

// reservations is what can be taken from reservations before anything is planned.
type reservations struct {
	offers fit.Bits         // that take from one
	left   map[string]int64 // by ID: nodes it still gives
}
