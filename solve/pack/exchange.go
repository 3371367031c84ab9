// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
	"karpenter/solve/lp"
	"karpenter/solve/topology"
)

// exchange is the phase that fills each node there is again with the pods that would cost
// most on new nodes. Pods that rules tie to a topology domain are exchanged within it, and
// pods only for pods of equal priority: kube-scheduler gives a place to the highest one.
type exchange struct {
	*draft
	priority int32

	worth map[*demand]float64 // of one pod: about what it costs on new nodes
	open  []*demand           // those with a worth
	on    map[int][]tied      // by site: pods that can lose their place
	sack  lp.Knapsack
	price []float64 // of the resources of the sack
}

// Bounds of the exchange.
const (
	estimateShare   = 0.25 // of the budget that is left, for what pods are worth
	exchangeClasses = 4    // priorities, highest first
	exchangeShare   = 0.25 // of the budget that is left then, for the rounds
	exchangeRounds  = 3    // over all nodes
	exchangeMixes   = 3    // of resource prices that are tried for a node
	exchangeFirsts  = 8    // options of which one pod is taken first
	exchangeGain    = 1e-6 // a gain smaller than this part of the worth is none
	stepsPerPlace   = 32   // to see how many pods of a demand a node takes
)

// uprooted reports whether some pods had a node before, or were planned on one: which places
// they find is part of a move that was worth its price.
func (x *draft) uprooted() bool {
	return slices.ContainsFunc(x.snapshot.Pending, func(p model.Pending) bool {
		return slices.ContainsFunc(p.Pods, func(p model.Pod) bool { return p.From != "" || p.Planned != "" })
	})
}

// exchangeAll exchanges pods unless something is scarce that pods need for a new node: the
// price of a node does not show what its place is worth then.
func exchangeAll(x *draft) {
	if x.uprooted() {
		return
	}
	scarce := len(x.catalogue.Reservations()) > 0 || x.demanding(fit.Range{To: len(x.catalogue.Pools)}) ||
		slices.ContainsFunc(x.catalogue.Pools, func(p fit.Pool) bool { return len(p.Limits) > 0 })
	if x.trial != nil || len(x.nodes) == 0 || scarce {
		return
	}
	var priorities []int32
	for _, d := range x.demands {
		if p := d.Shape.Priority; len(d.left) > 0 && !slices.Contains(priorities, p) && len(priorities) < exchangeClasses {
			priorities = append(priorities, p)
		}
	}
	for _, p := range priorities {
		e := &exchange{draft: x, priority: p, worth: map[*demand]float64{}, on: map[int][]tied{}}
		e.run()
	}
}

// run exchanges pods of the priority.
func (e *exchange) run() {
	x := e.draft
	if e.takeOff(); len(e.on) == 0 {
		return
	}
	e.estimate()
	enough := x.budget.Left() - int64(exchangeShare*float64(x.budget.Left()))
	for changed, round := true, 0; changed && round < exchangeRounds; round++ {
		changed = false
		for i := range x.nodes {
			if x.budget.Left() <= enough {
				break
			}
			changed = e.refill(&x.nodes[i]) || changed
		}
	}
	e.putBack()
}

// takeOff moves the pods that can lose their place from the list of placed pods to that of
// their node.
func (e *exchange) takeOff() {
	free := make([]bool, len(e.snapshot.Pending)) // by kind
	for k := range free {
		free[k] = e.exchangeable(k)
	}
	kept := map[string]bool{}
	for _, p := range e.kept {
		kept[p.pod.Key()] = true
	}
	var fixed []placement
	for _, p := range e.placed {
		to := (*demand)(nil)
		if free[p.kind] && !kept[p.pod.Key()] {
			to = e.receiver(p)
		}
		if to == nil {
			fixed = append(fixed, p)
		} else {
			e.on[p.site] = append(e.on[p.site], tied{to, p.pod})
		}
	}
	e.placed = fixed
	for _, d := range e.demands {
		if e.heaviest(d) >= 0 && d.bundle == nil && (free[d.kind] || e.addable(d.kind)) {
			e.open = append(e.open, d)
		}
	}
}

// putBack moves them back.
func (e *exchange) putBack() {
	for i := range e.nodes {
		for _, p := range e.on[e.nodes[i].Site] {
			e.placed = append(e.placed, placement{p.of.kind, e.nodes[i].Site, p.pod})
		}
	}
}

// addable reports whether pods of the kind can be put on any node in the domains that they
// are tied to, whatever other pods do.
func (e *exchange) addable(kind int) bool {
	s := e.snapshot.Pending[kind].Shape
	return s.Priority == e.priority && len(s.Volumes)+len(s.Claims) == 0 && (e.policy.IgnorePreferences || len(s.Preferences) == 0) &&
		!e.topology.Joins(kind) && !e.topology.Follows(kind) && !e.topology.FollowedBy(kind, topology.Any)
}

// exchangeable reports whether pods of the kind can also be taken from a node again.
func (e *exchange) exchangeable(kind int) bool {
	return e.addable(kind) && len(e.snapshot.Pending[kind].Shape.HostPorts) == 0
}

// receiver returns the demand that a pod is left of if it loses its place; nil if no nodes
// are launched for such pods.
func (e *exchange) receiver(p placement) *demand {
	at := e.topology.At(p.site)
	i := slices.IndexFunc(e.demands, func(d *demand) bool {
		return d.kind == p.kind && d.bundle == nil && e.heaviest(d) >= 0 && e.here(d, at)
	})
	if i < 0 {
		return nil
	}
	return e.demands[i]
}

// here reports whether pods that are left of d can be at the place because rules between
// pods don't tie them to a domain, or tie them to one that the place is in.
func (e *exchange) here(d *demand, at topology.Place) bool {
	tied := e.topology.Pinned(d.kind)
	if d.area == nil {
		return len(tied) == 0
	}
	return !slices.ContainsFunc(tied, func(key int) bool { return !slices.Equal(d.area.place[key], at[key]) })
}

// estimate finds what pods cost if new nodes are launched for all of them.
func (e *exchange) estimate() {
	left := make([]int, len(e.demands))
	for i, d := range e.demands {
		left[i] = len(d.left)
	}
	for i := range e.nodes {
		for _, p := range e.on[e.nodes[i].Site] {
			p.of.left = append(p.of.left, p.pod)
		}
	}
	e.takeSurvey()
	of, all := make([][]*demand, len(e.tiers)), e.open
	for _, d := range all {
		of[e.heaviest(d)] = append(of[e.heaviest(d)], d)
	}
	e.open = nil
	for i, some := range of {
		if len(some) == 0 {
			continue
		}
		q := (&market{draft: e.draft, tier: e.tiers[i]}).covering(some)
		part := e.budget.Part(estimateShare)
		values := cover.Estimate(&q.Problem, part)
		e.budget.Return(part)
		for j, v := range values {
			if v > 0 {
				e.worth[q.demands[j]], e.open = v, append(e.open, q.demands[j])
			}
		}
	}
	for i, d := range e.demands {
		d.left = d.left[:left[i]:left[i]]
	}
}

// option is pods of a demand that a node could take.
type option struct {
	*demand
	most    int
	density float64 // worth of a pod for the price of what it requests
}

// refill puts other pods on the node if these are worth more, and reports whether it did.
func (e *exchange) refill(n *fit.NodeRow) bool {
	at, before := e.topology.At(n.Site), e.on[n.Site]
	e.budget.Spend(stepsPerPlace * len(e.open))
	if !slices.ContainsFunc(e.open, func(d *demand) bool { return len(d.left) > 0 && e.here(d, at) && n.Takes(d.Shape) }) {
		return false
	}
	var now []tied
	was, left := 0.0, map[*demand]int{}
	for _, p := range before {
		if e.worth[p.of] == 0 {
			now = append(now, p)
			continue
		}
		if _, known := left[p.of]; !known {
			left[p.of] = len(p.of.left)
		}
		e.move(n, p.of, -1)
		p.of.left = append(p.of.left, p.pod)
		was += e.worth[p.of]
	}
	options := e.options(n, at)
	take, worth := e.fullest(options)
	if worth <= was*(1+exchangeGain) {
		for _, d := range e.open {
			if n0, off := left[d]; off {
				e.move(n, d, len(d.left)-n0)
				d.left = d.left[:n0]
			}
		}
		return false
	}
	for i, pods := range take {
		d := options[i].demand
		pods = min(pods, e.room(d, n, len(d.left))) // those before may have ruled some out
		for _, p := range d.left[:pods] {
			now = append(now, tied{d, p})
		}
		d.left = d.left[pods:]
		e.move(n, d, pods)
	}
	e.on[n.Site] = now
	return true
}

// move puts so many pods that are left of d on the node or, if the number is below zero,
// takes as many off. The caller changes the lists of pods.
func (e *exchange) move(n *fit.NodeRow, d *demand, pods int) {
	if d.area != nil {
		e.topology.Add(d.kind, d.area.place, -1, -pods)
	}
	e.topology.Add(d.kind, e.topology.At(n.Site), n.Site, pods)
	put(d.Shape, n, pods)
}

// options returns what the node takes, and puts it into the sack.
func (e *exchange) options(n *fit.NodeRow, at topology.Place) []option {
	var out []option
	var free []float64
	for _, r := range e.wanted {
		free = append(free, float64(min(max(n.Free.At(r), 0), 1)))
	}
	e.sack.Reset(free)
	for _, d := range e.open {
		if len(d.left) == 0 || !e.here(d, at) {
			continue
		}
		most := e.room(d, n, len(d.left))
		if most == 0 {
			continue
		}
		var request []float64
		for _, r := range e.wanted {
			request = append(request, float64(d.Shape.Requests.At(r))/float64(max(n.Free.At(r), 1)))
		}
		out = append(out, option{demand: d, most: most})
		e.sack.Add(e.worth[d], float64(most), request)
	}
	return out
}

// fullest returns how many pods of each option fit the node together, and what they are
// worth: the best of several greedy fillings, at the shadow prices of the node's resources
// and at mixes that favor what ran out. Each is tried with one pod of another option taken first.
func (e *exchange) fullest(options []option) (best []int, most float64) {
	if len(options) == 0 {
		return nil, 0
	}
	e.price = make([]float64, len(e.sack.Room))
	_, steps := e.sack.Relax(e.price)
	firsts := min(len(options), exchangeFirsts)
	e.budget.Spend((steps + exchangeMixes*(1+firsts)) * len(options) * len(e.price))
	dearest := slices.Max(e.price)
	for r := range e.price {
		e.price[r] += 1e-6 * max(dearest, 1e-300) // what costs nothing still breaks ties
	}
	for range exchangeMixes {
		order := e.byDensity(options)
		plain := e.greedily(options, order, noOption)
		if plain.worth > most {
			best, most = plain.take, plain.worth
		}
		for _, first := range order[:firsts] {
			if f := e.greedily(options, order, first); f.worth > most {
				best, most = f.take, f.worth
			}
		}
		for r, part := range plain.left {
			e.price[r] *= 1 - 0.9*part
		}
	}
	return best, most
}

// byDensity returns the positions of the options, those first that are worth most for the
// price of what they request.
func (e *exchange) byDensity(options []option) []int {
	order := make([]int, len(options))
	for i := range options {
		load := 1e-300
		for r, q := range e.request(i) {
			load += q * e.price[r]
		}
		order[i], options[i].density = i, e.sack.Value[i]/load
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(options[b].density, options[a].density) })
	return order
}

// request returns what a pod of an option requests, as parts of what is free.
func (e *exchange) request(i int) []float64 {
	n := len(e.sack.Room)
	return e.sack.Request[i*n : i*n+n]
}

// filling is how many pods of each option a node takes.
type filling struct {
	take  []int
	worth float64
	left  []float64 // part of each resource
}

// noOption stands for no position.
const noOption = -1

// greedily fills the sack in that order, after one pod of the option that comes first.
func (e *exchange) greedily(options []option, order []int, first int) filling {
	f := filling{take: make([]int, len(options)), left: slices.Clone(e.sack.Room)}
	put := func(i, most int) {
		pods := float64(most)
		for r, q := range e.request(i) {
			if q > 0 {
				pods = min(pods, math.Floor(f.left[r]/q+1e-9))
			}
		}
		if pods <= 0 {
			return
		}
		f.take[i], f.worth = f.take[i]+int(pods), f.worth+pods*e.sack.Value[i]
		for r, q := range e.request(i) {
			f.left[r] -= pods * q
		}
	}
	if first != noOption {
		put(first, 1)
	}
	for _, i := range order {
		put(i, options[i].most-f.take[i])
	}
	return f
}
