// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"karpenter/model"
	"karpenter/solve/devices"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// verdict says why the pods left of d stay pending.
func (w reasons) verdict(d *demand) model.Verdict {
	if w.trial != nil {
		return model.Verdict{Pods: d.left, Shape: w.snapshot.Pending[d.kind].Shape}
	}
	v := model.Verdict{Pods: d.left, Shape: w.snapshot.Pending[d.kind].Shape, Nodes: len(w.nodes)}
	openings := sync.OnceValue(func() []opening { return w.openings(d) })
	for i := range w.catalogue.Pools {
		if steps, ok := w.hollow(i); ok {
			v.Pools = append(v.Pools, model.PoolVerdict{Pool: w.catalogue.Pools[i].Name, Steps: steps})
			continue
		}
		steps := w.explain(i, d)
		suits := steps[len(steps)-1].Left > 0
		if suits {
			steps = append(steps, w.lastStep(i, d, openings))
		}
		v.Pools = append(v.Pools, model.PoolVerdict{Pool: w.catalogue.Pools[i].Name, Steps: steps, Suits: suits})
	}
	for _, p := range w.snapshot.Pools {
		if p.Unavailable != "" {
			v.Pools = append(v.Pools, model.PoolVerdict{Pool: p.Name, Reason: "it is " + p.Unavailable})
		}
	}
	if len(v.Pools) == 0 {
		v.Reason = "no NodePool is ready to launch nodes"
	}
	return v
}

// explain is the chain of constraints that narrows the pool's offers for d: labels,
// taints and size, then devices.
func (w reasons) explain(pool int, d *demand) []model.Step {
	if w.book == nil || len(d.Shape.Claims) == 0 {
		return w.catalogue.Explain(pool, d.Demand, w.snapshot.Resources)
	}
	plain, shape := *d.Demand, *d.Shape
	shape.Requests = shape.Requests[:min(len(shape.Requests), devices.Plain(w.snapshot.Resources))]
	plain.Shape = &shape
	steps := w.catalogue.Explain(pool, &plain, w.snapshot.Resources)
	if steps[len(steps)-1].Left == 0 {
		return steps
	}
	step := model.Step{Constraint: "devices"}
	var types [][]model.DevicePool
	for o := range d.Offers.In(w.catalogue.Pools[pool].Offers) {
		row := &w.catalogue.Types[w.catalogue.Offers[o].Type]
		if shape.Requests.Fits(row.Free) {
			types = append(types, row.Devices)
		}
		if d.Shape.Requests.Fits(row.Free) {
			step.Left++
		}
	}
	if step.Left == 0 {
		step.Hint = w.book.Why(types, shape.Claims)
	}
	if step.Left < steps[len(steps)-1].Left {
		steps = append(steps, step)
	}
	return steps
}

// lastStep says what keeps d from the pool although labels, taints and size do
// not: minValues, reservations, ports, rules between pods, or limits.
func (w reasons) lastStep(pool int, d *demand, openings func() []opening) model.Step {
	p := &w.catalogue.Pools[pool]
	if step, ok := w.floorStep(pool, d); ok {
		return step
	}
	if step, ok := w.usedUp(pool, d); ok {
		return step
	}
	if len(d.Shape.HostPorts) > 0 && !w.catalogue.Fits(d.Demand, p.Offers) {
		return w.portStep(d)
	}
	if !w.topology.Free(d.kind) {
		if reason, ok := w.whyNot(pool, d, openings()); ok {
			hint := reason.Hint
			if reason.Near != nil {
				hint = cmp.Or(w.whyNotWith(pool, d, reason.Near), hint)
			}
			return model.Step{Constraint: reason.Constraint, Hint: hint}
		}
		if keys := w.undecided(pool, d); len(keys) > 0 {
			return model.Step{
				Constraint: "rules between pods on " + strings.Join(keys, ", "),
				Hint:       "the NodePool's nodes have no value of it that could be known; add one to the labels or requirements of its template",
			}
		}
		if len(p.Limits) == 0 {
			return model.Step{Constraint: "rules between pods", Hint: tryAgain}
		}
	}
	return w.limitStep(pool, d)
}

// undecided returns the labels that rules for d are about and of which no value is known for nodes
// of the pool. What its types say of a label of the user's own does not count without the pool.
func (w reasons) undecided(pool int, d *demand) []string {
	var out []string
	p := &w.catalogue.Pools[pool]
	for _, key := range w.topology.Minds(d.kind) {
		name := w.topology.Keys[key]
		_, own := p.Requirements.Get(name)
		if !own && !w.snapshot.WellKnown.Has(name) || !slices.ContainsFunc(w.atlas.areas([]int{key}), func(a area) bool { return a.offers.Any(p.Offers) }) {
			out = append(out, name)
		}
	}
	return out
}

// portStep names the daemons that take the ports d needs.
func (w reasons) portStep(d *demand) model.Step {
	var ports, names []string
	for _, p := range d.Shape.HostPorts {
		ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
	}
	for _, daemon := range w.snapshot.Daemons {
		if fit.Conflict(d.Shape.HostPorts, daemon.Shape.HostPorts) {
			names = append(names, daemon.Name)
		}
	}
	return model.Step{
		Constraint: "host ports " + strings.Join(ports, ", "),
		Hint:       "daemonset " + strings.Join(names, ", ") + " takes them on every such node; use others",
	}
}

// usedUp is the step for a pool that has nothing for d but reservations of
// which nothing is left.
func (w reasons) usedUp(pool int, d *demand) (model.Step, bool) {
	var ids []string
	for o := range d.Offers.And(w.catalogue.Pools[pool].Usable).All() {
		if row := &w.catalogue.Types[w.catalogue.Offers[o].Type]; !d.Shape.Requests.Fits(row.Free) {
			continue
		}
		id := w.reservation(o)
		if id == "" || w.prepaid[id] > 0 {
			return model.Step{}, false
		}
		ids = append(ids, fmt.Sprintf("%s (%d nodes)", id, max(w.reservations.left[id], 0)))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return model.Step{
		Constraint: "reservations used up: " + strings.Join(ids, ", "),
		Hint:       "enlarge a reservation, or let pod and NodePool use other capacity types",
	}, len(ids) > 0
}

// opening is a place where limits would let nodes be launched that have room for a pod.
type opening struct {
	place topology.Place
	pools fit.Bits // that could
}

// openings returns where nodes could be launched for d, rules between pods not asked.
func (w reasons) openings(d *demand) []opening {
	buyable := fit.NewBits(len(w.catalogue.Offers))
	for t := range w.catalogue.Types {
		row := &w.catalogue.Types[t]
		if d.Offers.Any(row.Offers) && d.Shape.Requests.Fits(row.Free) && w.limits.allow(row.Pool, row.Capacity, 1) > 0 {
			for o := range d.Offers.In(row.Offers) {
				buyable.Set(o)
			}
		}
	}
	var out []opening
	alternatives := d.Shape.Alternatives()
	for _, a := range w.atlas.areas(w.topology.Pinned(d.kind)) {
		pools := fit.NewBits(len(w.catalogue.Pools))
		for o := range a.offers.All() {
			if buyable.Has(o) {
				pools.Set(w.poolOf(o))
			}
		}
		if !pools.Empty() && slices.ContainsFunc(alternatives, a.suits) {
			out = append(out, opening{a.place, pools})
		}
	}
	return out
}

// whyNot returns the rule between pods that keeps d from nodes that limits
// would let the pool launch. It reports false when there are none such, or no rule
// keeps it from them.
func (w reasons) whyNot(pool int, d *demand, openings []opening) (topology.Reason, bool) {
	var here, all []topology.Place
	for _, o := range openings {
		all = append(all, o.place)
		if o.pools.Has(pool) {
			here = append(here, o.place)
		}
	}
	if len(here) == 0 {
		return topology.Reason{}, false
	}
	if w.known.wary[d.kind] {
		all = append(all, w.atlas.nearby(d.kind, d.Shape)...)
	}
	w.topology.Buyable(d.kind, all)
	return w.topology.Why(d.kind, here)
}

// limitStep names the limits that leave no room for another node for d, with
// what is used of them once this plan's nodes are there, and what they would
// have to be for one more. Where no limit is in the way alone, it names them
// all.
func (w reasons) limitStep(pool int, d *demand) model.Step {
	p := &w.catalogue.Pools[pool]
	var all, binding, needed string
	for _, l := range p.Limits {
		used := w.used(pool, l.Resource)
		name := w.snapshot.Resources[l.Resource]
		text := fmt.Sprintf(" %s=%s (%s used)", name, model.FormatQuantity(l.Resource, l.Max), model.FormatQuantity(l.Resource, used))
		all += text
		if more := used + w.smallest(p, d, l.Resource); more > l.Max {
			binding += text
			needed += " " + name + "=" + model.FormatQuantity(l.Resource, more)
		}
	}
	hint := "raise spec.limits of the NodePool or free some of its nodes"
	if needed != "" {
		hint = "raise spec.limits of the NodePool to" + needed + " or more, or free some of its nodes"
	}
	return model.Step{Constraint: "limits" + cmp.Or(binding, all), Hint: hint}
}

// used is what the pool's nodes have of a resource, those of this plan included.
func (w reasons) used(pool, resource int) int64 {
	sum := w.catalogue.Pools[pool].Usage.At(resource)
	for _, b := range w.bins {
		if w.poolOf(b.offer) == pool {
			sum += b.capacity.At(resource) * int64(b.count)
		}
	}
	return sum
}

// smallest is the least a node for d adds of a resource to the pool.
func (w reasons) smallest(p *fit.Pool, d *demand, resource int) int64 {
	least := int64(math.MaxInt64 / 2)
	for i := p.Offers.From; i < p.Offers.To; i++ {
		row := &w.catalogue.Types[w.catalogue.Offers[i].Type]
		if d.Offers.Has(i) && d.Shape.Requests.Fits(row.Free) {
			least = min(least, row.Capacity.At(resource))
		}
	}
	return least
}

// hollow returns the steps for a pool whose own requirements leave too few
// types for its minValues, whatever the pod.
func (w reasons) hollow(pool int) ([]model.Step, bool) {
	p := &w.catalogue.Pools[pool]
	if len(w.floors[pool]) == 0 || w.policy.RelaxMinValues || p.Allowed.Empty() {
		return nil, false
	}
	v := w.varietyOf(pool, p.Allowed.Bits(), nil)
	all := w.fitting(v, nil, nil)
	if v.enough(all) {
		return nil, false
	}
	f, left := v.short(all)
	return []model.Step{
		{Constraint: "offerings", Left: p.Offers.To - p.Offers.From},
		{Constraint: model.PoolRequirements, Hint: fmt.Sprintf("minValues of %s: %d wanted, %d left; %s", f.key, f.least, left, f.lower(left))},
	}, true
}

// floorStep names the minValues that the types left for a pod of d, and allowed
// by the limits, do not reach.
func (w reasons) floorStep(pool int, d *demand) (model.Step, bool) {
	if len(w.floors[pool]) == 0 || w.policy.RelaxMinValues {
		return model.Step{}, false
	}
	p := &w.catalogue.Pools[pool]
	fresh := w.catalogue.NewDemand(model.Pending{Shape: d.Shape})
	var step model.Step
	for demands, offers := range fresh.Alternatives() {
		v := w.varietyOf(pool, p.Usable.Less(w.reservations.offers).AndBits(offers), demands)
		fits := w.fitting(v, d.Shape.Requests, nil)
		allowed := slices.DeleteFunc(slices.Clone(fits), func(i int) bool {
			return w.limits.allow(pool, w.catalogue.Types[v.choices[i].row].Capacity, 1) == 0
		})
		if len(allowed) == 0 || v.enough(allowed) {
			continue
		}
		f, left := v.short(allowed)
		step.Constraint = fmt.Sprintf("minValues of %s: %d wanted, %d left", f.key, f.least, left)
		step.Hint = f.lower(left) + " this pod fits on"
		if v.enough(fits) {
			step.Hint = f.lower(left) + ", or raise its spec.limits"
		}
		return step, true
	}
	for _, key := range w.topology.Pinned(d.kind) {
		for _, f := range w.floors[pool] {
			if f.key == w.topology.Keys[key] && f.least > 1 {
				step.Constraint = fmt.Sprintf("minValues of %s: %d wanted, and a node for this pod is settled for one", f.key, f.least)
				step.Hint = "drop minValues of " + f.key + " from the NodePool, or what the pod asks of other pods there"
				return step, true
			}
		}
	}
	return step, false
}
