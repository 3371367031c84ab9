package drain

import (
	"cmp"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/pack"
)

// The scheduler decides where pods go that lose their node, one by one as they
// come, and likes the emptiest node best: a small pod may take the room that was
// meant for a large one, which then needs a node that nobody planned. What looks
// like a saving may end as a loss, and as the reason for the next command. So a
// command is rehearsed with the scheduler's preference, in several orders, and what
// it would have to buy then is held against it.

// stand is a node in a rehearsal.
type stand struct {
	row  fit.NodeRow
	free model.Resources
}

// rehearse finds a good offer wanting that would not save enough in the worst
// rehearsal. Rules between pods, ports and volumes are not asked: the risk may be
// larger.
func (r *round) rehearse(o *offer) {
	if !o.good() {
		return
	}
	switch risk := r.risk(o); {
	case math.IsInf(risk, 1):
		o.cause, o.why = model.ByPlace, "its pods find places only if the scheduler puts each where it is planned"
	case float64(o.command.Cost-o.command.Savings)+risk > roughly(o.most):
		o.cause, o.why = model.ByPrice, "no cheaper place: the saving depends on where the scheduler puts each pod"
	}
}

// risk returns what nodes would cost for the pods that find no place in the
// worst of the rehearsals of the offer.
func (r *round) risk(o *offer) float64 {
	stands := r.stands(o)
	worst := 0.0
	for _, order := range orders(o.pending) {
		worst = max(worst, r.shortfall(stands, order))
	}
	return worst
}

// restage has the node of the site be in rehearsals what it is now.
func (r *round) restage(site int) {
	if r.stage == nil {
		return
	}
	r.stage[site] = fit.NodeRow{}
	if n := &r.s.Nodes[site]; !n.Deleting && !uninitialized(n) {
		r.stage[site] = fit.NewNodeRow(n, site, r.s.Daemons)
	}
}

// stands returns the nodes that pods of the offer's nodes may go to: the
// scheduler minds neither drift nor quiet.
func (r *round) stands(o *offer) []stand {
	if r.stage == nil {
		r.stage = make([]fit.NodeRow, len(r.given.Nodes))
		for i := range r.given.Nodes {
			r.restage(i)
		}
	}
	var out []stand
	for i := range r.stage {
		if r.stage[i].Node != nil && !slices.Contains(o.sites, i) {
			out = append(out, stand{row: r.stage[i]})
		}
	}
	for i := range o.command.Launches {
		l := &o.command.Launches[i]
		pool := &r.s.Pools[r.pools[l.Pool]]
		kind := pool.Types[slices.IndexFunc(pool.Types, func(t *model.InstanceType) bool { return t.Name == l.Type })]
		n := &model.Node{
			Name: "launch", Claim: "launch", Pool: l.Pool, Taints: pool.Taints, Capacity: kind.Capacity, Allocatable: kind.Allocatable,
			Labels: kind.Requirements.And(l.Requirements...).And(model.LabelRequirements(map[string]string{
				model.LabelZone: l.Zone, model.LabelCapacityType: l.CapacityType, model.LabelInstanceType: l.Type, model.LabelNodePool: l.Pool,
			})...),
		}
		out = append(out, stand{row: fit.NewNodeRow(n, len(r.s.Nodes)+i, r.s.Daemons)})
	}
	return out
}

// orders returns the entries in the orders their pods may come: the largest
// first, the smallest first, and one of each in turn.
func orders(pending []model.Pending) [][]*model.Pending {
	var bySize, turns []*model.Pending
	for i := range pending {
		bySize = append(bySize, &pending[i])
	}
	slices.SortStableFunc(bySize, func(a, b *model.Pending) int {
		return cmp.Or(
			cmp.Compare(a.Shape.Requests.At(model.Memory), b.Shape.Requests.At(model.Memory)),
			cmp.Compare(a.Shape.Requests.At(model.CPU), b.Shape.Requests.At(model.CPU)))
	})
	out := make([][]*model.Pending, 2)
	for _, p := range bySize {
		for range p.Pods {
			out[0] = append(out[0], p)
		}
	}
	out[1] = slices.Clone(out[0])
	slices.Reverse(out[1])
	for n := 0; len(turns) < len(out[0]); n++ {
		for _, p := range bySize {
			if n < len(p.Pods) {
				turns = append(turns, p)
			}
		}
	}
	return append(out, turns)
}

// shortfall puts pods in the order on the emptiest node that takes each, and
// returns what nodes would cost at least for those that find none; infinite when
// there is no such node.
func (r *round) shortfall(stands []stand, order []*model.Pending) float64 {
	takes := map[*model.Pending][]bool{}
	for i := range stands {
		stands[i].free = stands[i].row.Free
	}
	least, worth := 0.0, 0.0
	for _, p := range order {
		if takes[p] == nil {
			takes[p] = make([]bool, len(stands))
			for i := range stands {
				takes[p][i] = stands[i].row.Takes(pack.Soft(p.Shape))
			}
		}
		best, most := -1, 0.0
		for i := range stands {
			s := &stands[i]
			if !takes[p][i] || !p.Shape.Requests.Fits(s.free) {
				continue
			}
			if left := s.left(p.Shape.Requests); best < 0 || left > most {
				best, most = i, left
			}
		}
		if best < 0 {
			least, worth = max(least, r.leastFor(p)), worth+r.worth[p.Shape]
			continue
		}
		stands[best].free = stands[best].free.Minus(p.Shape.Requests)
	}
	return max(least, worth)
}

// left is how empty the node is, in the scheduler's eyes, when a pod has come.
func (s *stand) left(requests model.Resources) float64 {
	sum := 0.0
	for _, r := range []int{model.CPU, model.Memory} {
		if has := s.row.Allocatable.At(r); has > 0 {
			sum += float64(s.free.At(r)-requests.At(r)) / float64(has)
		}
	}
	return sum
}
