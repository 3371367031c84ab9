// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
	"karpenter/solve/work"
)

// Trial is where pods would go, without a proof and without reasons.
type Trial struct {
	Moves    []model.Placement
	Launches []model.Launch
	Left     []model.Pod // that find no place
	Cost     model.Price // of Launches
	Dear     bool        // abandoned, as the pods left cost more than was asked about
	Late     bool        // abandoned when new nodes were looked for already
	Crowds   bool        // more of a workload or a pool in one spot pool than before, and than there should be

	draft *draft
}

// Try places the pending pods of s as a plan would. It gives up when what is
// left of them after the nodes there are is worth more than most, or when
// anything is and most is less than zero; worth says what a pod of a pending
// entry costs at least where it is given a node.
func Try(s *model.Snapshot, p model.Policy, m *Memory, most model.Price, worth []float64, budget *work.Budget) *Trial {
	t := &trial{most: float64(most)*(1+1e-6) + 8, nothing: most < 0, worth: worth} // rounding must not stand in the way
	p.PreferenceAllowance = 0                                                      // that pods could be spread better is no reason to keep a node
	ignoring, out := best(newProblem(problem{terms: terms{policy: p, trial: t}, memory: m, budget: budget}, s))
	how := ignoring.draft.abandoned
	r := &Trial{
		Moves: out.plan.Placements, Launches: out.plan.Launches, Cost: out.plan.Cost, Dear: how != inProgress, Late: how == whileBuying, draft: out.draft,
	}
	if most < math.MaxInt64 && lessSecure(out.draft) {
		r.Dear = true
	}
	r.Crowds = most < math.MaxInt64 && !r.Dear && crowds(out.draft)
	for i := range out.plan.Verdicts {
		r.Left = append(r.Left, out.plan.Verdicts[i].Pods...)
	}
	return r
}

// Option is a type that a launch lists, with what it may cost: the offerings it
// may become, cheapest first.
type Option struct {
	Type   string
	Quotes []Quote
}

// Quote is one offering.
type Quote struct {
	CapacityType, Zone string
	Price              model.Price
}

// Worth returns for each pending entry of s a price that no plan can beat for
// one of its pods, where all of them are given new nodes: however pods are put
// together, a node costs no less than they add up to. Limits and rules between
// pods are not asked.
func Worth(s *model.Snapshot, p model.Policy, m *Memory, budget *work.Budget) []float64 {
	x := newDraft(newProblem(problem{terms: terms{policy: p}, memory: m, budget: budget}, s), lessons{})
	x.takeSurvey()
	out := make([]float64, len(s.Pending))
	for _, tier := range x.tiers {
		var open []*demand
		for _, d := range x.demands {
			if out[d.kind] == 0 && d.Offers.And(x.reservations.offers).Empty() { // nothing is worth much that a reservation takes
				open = append(open, d)
			}
		}
		q := (&market{draft: x, tier: tier}).covering(open)
		values := cover.Prove(&q.Problem, cover.Values(&q.Problem, cover.Unlimited(), x.budget), x.budget)
		for i, d := range q.demands {
			out[d.kind] = values[i]
		}
	}
	return out
}

// Takes reports whether the node has room for a pod of the shape, rules between
// pods not asked.
func Takes(n *fit.NodeRow, s *model.Shape) bool {
	return fit.Room(n.Free, s.Requests, 1) > 0 && alone(Soft(s), n, 1) > 0
}

// Options returns what the launch may become, in the order of its Types.
func (t *Trial) Options(launch int) []Option {
	x := t.draft
	bin := 0
	for at := x.bins[bin].count; at <= launch; at += x.bins[bin].count {
		bin++
	}
	offers := x.suppliedOffers(x.bins[bin])
	pool := x.pool(x.bins[bin].offer)
	rows := map[string]*fit.TypeRow{}
	for i := pool.Types.From; i < pool.Types.To; i++ {
		rows[x.catalogue.Types[i].Name] = &x.catalogue.Types[i]
	}
	l := &t.Launches[launch]
	out := make([]Option, 0, len(l.Types))
	for _, name := range l.Types {
		o := Option{Type: name}
		for i := rows[name].Offers.From; i < rows[name].Offers.To; i++ {
			if c := x.catalogue.Offers[i]; offers.Has(i) && slices.Contains(l.CapacityTypes, c.CapacityType) {
				o.Quotes = append(o.Quotes, Quote{c.CapacityType, c.Zone, c.Price})
			}
		}
		slices.SortStableFunc(o.Quotes, func(a, b Quote) int { return cmp.Compare(a.Price, b.Price) })
		out = append(out, o)
	}
	return out
}
