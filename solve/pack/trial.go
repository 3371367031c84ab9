// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"iter"
	"math"

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

	outcome *outcome
	most    model.Price
	rows    map[int]map[string]*fit.TypeRow // by pool and name, as far as they were asked for
}

// Question is what a trial asks.
type Question struct {
	Most     model.Price // that new nodes may cost; less than zero = none may be launched
	Worth    []float64   // by pending entry: what a pod of it costs at least where it is given a node
	Arrivals []Arrival   // pods that are placed already
	Avoid    []string    // pools that launch nothing
}

// Try places the pending pods of s as a plan that ignores preferences would. It gives up
// when what is left of them after the nodes there are is worth more than may be spent.
func Try(s *model.Snapshot, p model.Policy, m *Memory, ask Question, budget *work.Budget) *Trial {
	t := &trial{most: float64(ask.Most)*(1+1e-6) + 8, nothing: ask.Most < 0, worth: ask.Worth} // rounding must not stand in the way
	asked := terms{policy: p, trial: t, arrivals: ask.Arrivals, avoid: ask.Avoid}
	return tried(ignoringWishes(newProblem(problem{terms: asked, memory: m, budget: budget}, s)), ask.Most)
}

// Honor returns the trial with the preferences that the policy lets it honor: itself
// when there are none. The Snapshot must be as it was for Try.
func (t *Trial) Honor(budget *work.Budget) *Trial {
	q := t.outcome.draft.problem
	q.budget = budget
	out := honoring(q, t.outcome)
	if out == t.outcome {
		return t
	}
	return tried(out, t.most)
}

// Disperse returns the trial with new nodes in other spot pools, or several in place of one, so that
// less of a workload is in one spot pool than the policy says: itself where that changes nothing. The
// Snapshot must be as it was for Try.
func (t *Trial) Disperse(budget *work.Budget) *Trial {
	if t.Dear {
		return t
	}
	out, x, plan := *t.outcome, *t.outcome.draft, *t.outcome.plan
	q := *x.problem
	q.trial, q.budget = nil, budget // it may cost as much as in a plan
	x.problem, x.state = &q, x.state.clone()
	out.draft, out.plan = &x, &plan
	if !disperse(&out) {
		return t
	}
	return tried(&out, t.most)
}

// tried returns the trial that an outcome is.
func tried(out *outcome, most model.Price) *Trial {
	how := out.draft.abandoned
	t := &Trial{
		Moves: out.plan.Placements, Launches: out.plan.Launches, Cost: out.plan.Cost, Dear: how != inProgress, Late: how == whileBuying,
		outcome: out, most: most, rows: map[int]map[string]*fit.TypeRow{},
	}
	if most < math.MaxInt64 && lessSecure(out.draft) {
		t.Dear = true
	}
	t.Crowds = most < math.MaxInt64 && !t.Dear && crowds(out.draft)
	for i := range out.plan.Verdicts {
		t.Left = append(t.Left, out.plan.Verdicts[i].Pods...)
	}
	return t
}

// Worth returns for each pending entry of s a price that no plan can beat for
// one of its pods, where all of them are given new nodes: however pods are put
// together, a node costs no less than they add up to. Limits and rules between
// pods are not asked.
func Worth(s *model.Snapshot, p model.Policy, m *Memory, budget *work.Budget) []float64 {
	x := newDraft(newProblem(problem{terms: terms{policy: p}, memory: m, budget: budget}, s), lessons{})
	x.takeSurvey()
	out, valued := make([]float64, len(s.Pending)), make([]bool, len(s.Pending)) // beside others, some are worth nothing
	for _, tier := range x.tiers {
		var open []*demand
		for _, d := range x.demands {
			if !valued[d.kind] && !d.Offers.OverlapsBits(x.reservations.offers) { // nothing is worth much that a reservation takes
				open = append(open, d)
			}
		}
		q := (&market{draft: x, tier: tier}).covering(open)
		values, _ := cover.Values(&q.Problem, cover.Unlimited(), x.budget)
		values = cover.Prove(&q.Problem, values, nil, x.budget)
		for i, d := range q.demands {
			out[d.kind], valued[d.kind] = values[i], true
		}
	}
	return out
}

// Takes reports whether the node takes a pod of the shape, rules between pods not
// asked.
func Takes(n *fit.NodeRow, s *model.Shape) bool { return alone(s, n, 1) > 0 }

// binOf returns the bin that a node of the launch is of, and the launches of it.
func (t *Trial) binOf(launch int) (b bin, all fit.Range) {
	for _, b := range t.outcome.draft.bins {
		all = fit.Range{From: all.To, To: all.To + b.count}
		if launch < all.To {
			return b, all
		}
	}
	panic("no such launch")
}

// Alike returns the position behind the launches, from this one on, that are the same but
// for their pods.
func (t *Trial) Alike(launch int) int {
	_, all := t.binOf(launch)
	next := launch + 1
	for next < all.To && &t.Launches[next].Types[0] == &t.Launches[launch].Types[0] {
		next++
	}
	return next
}

// Menu is what a launch may become.
type Menu struct {
	catalogue *fit.Catalogue
	rows      []*fit.TypeRow // of the types that it lists, in their order
	offers    fit.OfferSet
}

// Menu returns what the launch may become.
func (t *Trial) Menu(launch int) *Menu {
	x := t.outcome.draft
	b, _ := t.binOf(launch)
	m := &Menu{catalogue: x.catalogue, offers: x.suppliedOffers(b)}
	rows := t.rowsOf(x.poolOf(b.offer))
	for _, name := range t.Launches[launch].Types {
		m.rows = append(m.rows, rows[name])
	}
	return m
}

// Choice is a type that a launch may become, as instances of one capacity type.
type Choice struct {
	Type, CapacityType, Zone string      // of the cheapest offering
	Price, Worst             model.Price // of the cheapest offering and of the most expensive one
}

// Choices yields the types that the launch may become as instances of the capacity type, in
// the zone if one is given, in the order of the launch.
func (m *Menu) Choices(capacityType, zone string) iter.Seq[Choice] {
	return func(yield func(Choice) bool) {
		for _, row := range m.rows {
			c := Choice{Type: row.Name}
			for i := row.Offers.From; i < row.Offers.To; i++ {
				o := &m.catalogue.Offers[i]
				switch {
				case !m.offers.Has(i) || o.CapacityType != capacityType || zone != "" && o.Zone != zone:
				case c.CapacityType == "":
					c.CapacityType, c.Zone, c.Price, c.Worst = o.CapacityType, o.Zone, o.Price, o.Price
				default:
					if o.Price < c.Price {
						c.Zone, c.Price = o.Zone, o.Price
					}
					c.Worst = max(c.Worst, o.Price)
				}
			}
			if c.CapacityType != "" && !yield(c) {
				return
			}
		}
	}
}

// rowsOf returns the types of the pool by name.
func (t *Trial) rowsOf(pool int) map[string]*fit.TypeRow {
	if t.rows[pool] == nil {
		catalogue := t.outcome.draft.catalogue
		types := catalogue.Pools[pool].Types
		t.rows[pool] = make(map[string]*fit.TypeRow, types.To-types.From)
		for i := types.From; i < types.To; i++ {
			t.rows[pool][catalogue.Types[i].Name] = &catalogue.Types[i]
		}
	}
	return t.rows[pool]
}
