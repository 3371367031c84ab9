// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"karpenter/model"
	"karpenter/solve/pack"
	"karpenter/solve/work"
)

// tollOf returns what taking the nodes away must save.
func (ask *inquiry) tollOf(sites []int) toll {
	var t toll
	for _, i := range sites {
		n := &ask.s.Nodes[i]
		pool := ask.pools[n.Pool]
		rate, unit, threshold := 0.0, ask.unit(pool), ask.policy.Hysteresis
		p := &ask.s.Pools[pool]
		if p.Aims.Threshold != nil {
			threshold = *p.Aims.Threshold
		}
		if payback := ask.payback(p); payback > 0 {
			if left, known := lasts(n, clock(&ask.s)); known && left < payback {
				payback, t.lasts = left, max(t.lasts, left)
			}
			rate = 1 / payback.Hours()
		}
		t.weight += unit * burden(n)
		t.moves += rate * unit * burden(n)
		t.launch = max(t.launch, rate*unit*launchDisruption)
		t.new += rate * float64(n.Price) * launchTime.Hours()
		t.share += threshold * float64(n.Price)
	}
	return t
}

// payback returns the time in which moves of the pool must pay; 0 = any. Those of a
// Balanced pool have that in their score, unless the pool names a time besides.
func (ask *inquiry) payback(p *model.Pool) time.Duration {
	switch {
	case p.Aims.Payback != nil:
		return *p.Aims.Payback
	case p.Disruption.Policy == model.Balanced:
		return 0
	}
	return ask.policy.Payback
}

// unit is the price of moving one plain pod of the pool, in nano-dollars.
func (sc *scene) unit(pool int) float64 {
	all := sc.total(pool)
	if all.price <= 0 || all.disruption <= 0 {
		return 0
	}
	return all.price / all.disruption
}

// unpaid returns why the nodes would not go even if their pods had places for
// nothing, or "". A price that is not known says nothing.
func (ask *inquiry) unpaid(o *offer) (model.Cause, string) {
	cost := o.command.Cost
	if cost <= 0 || o.toll.moves <= float64(cost) {
		return "", ""
	}
	o.command.Savings = cost
	if cause, why := ask.balance(o); why != "" {
		return cause, why
	}
	why := fmt.Sprintf("not worth moving its pods: would save at most $%s/h, and must save at least $%s/h",
		dollars(cost), dollars(model.Price(o.toll.moves)))
	if o.toll.lasts > 0 {
		why += fmt.Sprintf(": its pods usually end soon, so it saves for %s only", o.toll.lasts.Round(time.Second))
	}
	return model.ByPrice, why
}

// weighAll asks about each of the units by itself, and ignores preferences: the offers are to
// be compared. The questions are asked of one Snapshot, so it makes no difference how many are
// asked at once.
func (r *round) weighAll(units [][]int) []*offer {
	whole := r.work
	r.work = whole.Part(weighShare)
	defer func() { whole.Return(r.work); r.work = whole }()
	r.total(0) // before it is shared
	out := make([]*offer, len(units))
	workers := make([]inquiry, len(r.memories))
	for w := range workers {
		c := *r.inquiry.scene
		c.memory, c.s.Nodes = &r.memories[w], slices.Clone(r.s.Nodes)
		c.menus, c.wording, c.domains = nil, nil, nil // what it finds out is not shared
		workers[w] = r.inquiry
		workers[w].scene, workers[w].homes, workers[w].least = &c, map[*model.Shape][]string{}, map[*model.Shape]float64{}
	}
	for from := 0; from < len(units); from += atOnce {
		to := min(from+atOnce, len(units))
		parts := make([]*work.Budget, to-from)
		for i := range parts {
			parts[i] = r.work.Own(perQuestion)
		}
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() {
				for i := from + w; i < to; i += len(workers) {
					workers[w].work = parts[i-from]
					out[i] = workers[w].weighAs(units[i], roughly)
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

// weighShare is the part of the budget that is left for asking about units by themselves. What
// was found must still be weighed again before it is carried out.
const weighShare = 0.5

// atOnce is how many questions are asked before their work is counted. It does
// not depend on how many workers there are, so that plans do not either.
const atOnce = 64

// weigh asks what it would save to take the nodes away together.
func (ask *inquiry) weigh(sites []int) *offer { return ask.weighAs(sites, finally) }

// mostAvoided is how many pools are left out, one after the other, that stand in the way of an offer.
const mostAvoided = 3

// weighAs asks again without the launches of a pool as long as that pool stands in the way.
func (ask *inquiry) weighAs(sites []int, how manner) *offer {
	sites = slices.Sorted(slices.Values(sites))
	first := ask.weighAvoiding(sites, how, nil)
	var avoid []string
	for o := first; !o.good() && o.blamed != "" && len(avoid) < mostAvoided; {
		avoid = append(avoid, o.blamed)
		if o = ask.weighAvoiding(sites, how, avoid); o.good() {
			return o
		}
	}
	return first
}

func (ask *inquiry) weighAvoiding(sites []int, how manner, avoid []string) *offer {
	o := &offer{sites: sites, at: len(ask.plan.Commands), toll: ask.tollOf(sites), manner: how, whole: len(sites) > 1 && len(ask.whole(sites[0])) > 1}
	if ask.work.Spent() {
		o.cause, o.why = model.Unexamined, "not examined: other nodes used up the work that one decision may take"
		return o
	}
	c := &o.command
	c.Reason = model.Underutilized
	for _, i := range sites {
		n := &ask.s.Nodes[i]
		c.Cost += n.Price
		c.Nodes = append(c.Nodes, model.Target{Node: n.Name, Claim: n.Claim})
		if why := unplaceable(n); why != "" {
			o.cause, o.why = model.ByPlace, why
			return o
		}
	}
	if o.why = ask.anchored(sites...); o.why != "" {
		o.cause = model.ByUse
		return o
	}
	most := o.limit(1)
	o.most = o.limit(0)
	if o.cause, o.why = ask.unpaid(o); o.why != "" {
		return o
	}
	if len(sites) == 1 {
		if o.cause, o.why = ask.screen(o, most); o.why != "" {
			return o
		}
	}
	policy, spend := ask.policy, most
	policy.RelaxMinValues = false
	if ask.spotOnly(sites) {
		spend = min(spend, 0) // a reservation costs next to nothing
	}
	q := question{sites: sites, most: spend, linger: true, ample: o.manner == amply, avoid: avoid}
	t, pending := ask.probe(q, policy)
	o.pending = pending
	switch {
	case t.Dear:
		o.cause, o.why = model.ByPrice, o.tooDear(max(most, 0))
		switch {
		case spend < most:
			o.cause, o.why = model.ByPolicy, noSpotToSpot
		}
		if t.Late {
			ask.without(o, most, policy)
		}
	case len(t.Left) > 0:
		o.cause, o.why = model.ByPlace, homeless(t)
	default:
		if ask.judgeHonoring(o, q, t, most); !o.good() && len(t.Launches) > 0 {
			ask.without(o, most, policy)
		}
	}
	return o
}

// without has the offer do without launches, if its pods find places that they
// like less.
func (ask *inquiry) without(o *offer, most model.Price, p model.Policy) {
	q := question{sites: o.sites, most: nothing, linger: true, ample: o.manner == amply}
	if t, _ := ask.probe(q, p); !t.Dear && len(t.Left)+len(t.Launches) == 0 {
		ask.judgeHonoring(o, q, t, most)
	}
}

// judgeHonoring is judge of a trial that ignores preferences. If the offer is good and more
// than a comparison, it honors those that leave it good, and spreads workloads over spot pools.
func (ask *inquiry) judgeHonoring(o *offer, q question, t *pack.Trial, most model.Price) {
	if ask.judge(o, t, most); !o.good() && t.Crowds {
		ask.prefer(o, t, ask.disperse(q, t), most)
	}
	if !o.good() || o.manner == roughly {
		return
	}
	honored := ask.prefer(o, t, ask.honor(q, t), most)
	ask.prefer(o, honored, ask.disperse(q, honored), most)
}

// prefer has the offer be what the other trial found instead of what this one did, unless that makes
// it worse. It returns the trial that it is of.
func (ask *inquiry) prefer(o *offer, t, other *pack.Trial, most model.Price) *pack.Trial {
	if other == t {
		return t
	}
	before := *o
	if ask.judge(o, other, most); !o.good() {
		*o = before
		return t
	}
	return other
}

// judge has the offer be what the trial found, if the price, the instances that
// the pools have launched recently, and their policies agree.
func (ask *inquiry) judge(o *offer, t *pack.Trial, most model.Price) {
	o.command.Moves, o.command.Launches, o.command.Scores, o.blamed = t.Moves, t.Launches, nil, ""
	if o.most = o.limit(len(t.Launches)); len(t.Launches) > 1 {
		most = o.most
	}
	if o.cause, o.why = ask.cheaper(o, t, most); !o.good() {
		return
	}
	if t.Crowds && o.command.Savings <= ask.policy.PreferenceAllowance {
		o.cause, o.why = model.ByPrice, fmt.Sprintf("too many pods of a workload would be in one spot pool, and a saving of $%s/h does not justify that", dollars(o.command.Savings))
		return
	}
	if o.blamed, o.why = ask.halted(o.command.Launches); o.why != "" {
		o.cause = model.ByPolicy
		return
	}
	if o.why = ask.unsettles(o.command.Launches); o.why != "" {
		o.cause = model.ByUse
		return
	}
	o.cause, o.why = ask.balance(o)
}
