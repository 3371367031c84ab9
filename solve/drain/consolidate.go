package drain

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"karpenter/model"
	"karpenter/solve/pack"
	"karpenter/solve/work"
)

// offer is what became of a question about nodes for Underutilized.
type offer struct {
	sites   []int
	pending []model.Pending
	command model.Command
	at      int         // how many commands there were when it was asked
	most    model.Price // what its launches may cost
	toll    toll
	rank    float64     // those of higher rank go first
	alike   []int       // those of the sites whose type stands in the way, if it is not good
	cause   model.Cause // why not
	why     string
}

func (o *offer) good() bool { return o.why == "" }

// take makes the command of a good offer part of the plan.
func (r *round) take(o *offer) { r.accept(o.command, o.sites, o.pending) }

// consolidate takes away nodes whose pods can be had for less elsewhere: those
// first that save most in proportion to what they disrupt.
func (r *round) consolidate() {
	candidates := slices.DeleteFunc(r.candidates(model.Underutilized), func(i int) bool {
		if r.allowed(model.Underutilized, i) {
			return false
		}
		r.overBudget(&r.s.Nodes[i], model.Underutilized)
		return true
	})
	if len(candidates) == 0 {
		return
	}
	r.open(model.Underutilized)
	r.price(candidates)
	r.rows, r.homes = r.memory.Nodes(&r.s), map[*model.Shape][]string{}
	offers := r.weighAll(candidates)
	for _, o := range offers {
		o.rank = o.yield()
	}
	if best := r.group(candidates); best != nil {
		best.rank = rank(best, offers)
		offers = append([]*offer{best}, offers...)
	}
	slices.SortStableFunc(offers, func(a, b *offer) int { return cmp.Compare(b.rank, a.rank) })
	for _, o := range offers {
		r.takeIfGood(o)
	}
}

// yield is what the offer saves in proportion to what it disrupts; 0 for one
// that is not good.
func (o *offer) yield() float64 {
	if !o.good() {
		return 0
	}
	return float64(o.command.Savings) / max(o.toll.weight, 1)
}

// takeIfGood makes the command of the offer part of the plan if it is still good
// beside what was taken since.
func (r *round) takeIfGood(o *offer) {
	if r.busy(o.sites) {
		return
	}
	if o.good() && !r.allowed(model.Underutilized, o.sites...) {
		for _, i := range o.sites {
			r.overBudget(&r.s.Nodes[i], model.Underutilized)
		}
		return
	}
	if o.good() && o.at != len(r.plan.Commands) {
		o = r.weigh(o.sites)
	}
	r.rehearse(o)
	switch {
	case o.good():
		r.take(o)
	case len(o.sites) == 1:
		n := &r.s.Nodes[o.sites[0]]
		r.keep(n, model.Underutilized, o.cause, o.why)
		stay := r.refused[n.Name]
		stay.Score = o.lowest()
		r.refused[n.Name] = stay
	}
}

// busy reports whether one of the nodes is taken away already or is to take
// pods of others, which it notes.
func (r *round) busy(sites []int) bool {
	busy := false
	for _, i := range sites {
		n := &r.s.Nodes[i]
		if _, receives := r.receiving[n.Name]; receives {
			r.keep(n, model.Underutilized, model.ByUse, use(r.receiving[n.Name]))
			busy = true
		}
		busy = busy || r.taken[n.Name]
	}
	return busy
}

// weighAll asks about each of the nodes by itself. The questions are asked of
// one Snapshot, so it makes no difference how many are asked at once.
func (r *round) weighAll(sites []int) []*offer {
	r.total(0) // before it is shared
	out := make([]*offer, len(sites))
	workers := make([]round, len(r.memories))
	for w := range workers {
		workers[w] = *r
		workers[w].memory, workers[w].s.Nodes = &r.memories[w], slices.Clone(r.s.Nodes)
		workers[w].homes, workers[w].least = map[*model.Shape][]string{}, map[*model.Shape]float64{}
	}
	for from := 0; from < len(sites); from += atOnce {
		to := min(from+atOnce, len(sites))
		parts := make([]*work.Budget, to-from)
		for i := range parts {
			parts[i] = r.work.Part(perQuestion)
		}
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() {
				for i := from + w; i < to; i += len(workers) {
					workers[w].work = parts[i-from]
					out[i] = workers[w].weigh(sites[i : i+1])
				}
			})
		}
		group.Wait()
		for _, part := range parts {
			r.work.Return(part)
		}
	}
	return out
}

// atOnce is how many questions are asked before their work is counted. It does
// not depend on how many workers there are, so that plans do not either.
const atOnce = 64

// weigh asks what it would save to take the nodes away together.
func (r *round) weigh(sites []int) *offer {
	sites = slices.Sorted(slices.Values(sites))
	o := &offer{sites: sites, at: len(r.plan.Commands), toll: r.tollOf(sites)}
	if r.work.Spent() {
		o.cause, o.why = model.Unexamined, "not examined: other nodes used up the work that one decision may take"
		return o
	}
	c := &o.command
	c.Reason = model.Underutilized
	for _, i := range sites {
		n := &r.s.Nodes[i]
		c.Cost += n.Price
		c.Nodes = append(c.Nodes, model.Target{Node: n.Name, Claim: n.Claim})
		if why := unplaceable(n); why != "" {
			o.cause, o.why = model.ByPlace, why
			return o
		}
	}
	most := o.limit(1)
	o.most = o.limit(0)
	if o.cause, o.why = r.unpaid(o); o.why != "" {
		return o
	}
	if len(sites) == 1 {
		if o.cause, o.why = r.screen(o, most); o.why != "" {
			return o
		}
	}
	policy, spend := r.policy, most
	policy.RelaxMinValues = false
	if r.spotOnly(sites) {
		spend = min(spend, 0) // a reservation costs next to nothing
	}
	t, pending := r.try(question{sites: sites, most: spend, linger: true}, policy)
	o.pending = pending
	switch {
	case t.Dear:
		o.cause, o.why = model.ByPrice, o.tooDear(max(most, 0))
		switch {
		case spend < most:
			o.cause, o.why = model.ByPolicy, noSpotToSpot
		}
		if t.Late {
			r.without(o, most, policy)
		}
	case len(t.Left) > 0:
		o.cause, o.why = model.ByPlace, homeless(t)
	default:
		if r.judge(o, t, most); !o.good() && len(t.Launches) > 0 {
			r.without(o, most, policy)
		}
	}
	return o
}

// without has the offer do without launches, if its pods find places that they
// like less.
func (r *round) without(o *offer, most model.Price, p model.Policy) {
	if t, _ := r.try(question{sites: o.sites, most: nothing, linger: true}, p); !t.Dear && len(t.Left)+len(t.Launches) == 0 {
		r.judge(o, t, most)
	}
}

// judge has the offer be what the trial found, if the price, the machines that
// the pools have launched lately, and their policies agree.
func (r *round) judge(o *offer, t *pack.Trial, most model.Price) {
	o.command.Moves, o.command.Launches, o.command.Scores = t.Moves, t.Launches, nil
	if o.most = o.limit(len(t.Launches)); len(t.Launches) > 1 {
		most = o.most
	}
	if o.cause, o.why = r.cheaper(o, t, most); !o.good() {
		return
	}
	if o.why = r.halted(o.command.Launches); o.why != "" {
		o.cause = model.ByPolicy
		return
	}
	o.cause, o.why = r.balance(o)
}

// tooDear says that the pods of nodes would cost so much elsewhere, which is no
// less than the nodes do, or not by enough.
func (o *offer) tooDear(elsewhere model.Price) string {
	cost := o.command.Cost
	text := fmt.Sprintf("no cheaper place: would cost at least $%s/h instead of $%s/h", dollars(elsewhere), dollars(cost))
	switch {
	case elsewhere >= cost:
	case o.toll.of(1) <= o.toll.share:
		text += fmt.Sprintf(", and less than %.2g%% does not pay", 100*o.toll.share/float64(cost))
	default:
		text += fmt.Sprintf(", and moving its pods takes a saving of $%s/h to be worth it", dollars(model.Price(o.toll.of(1))))
	}
	return text
}

func dollars(p model.Price) string { return fmt.Sprintf("%.4g", p.Dollars()) }
