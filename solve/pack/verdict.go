package pack

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// verdict says why the pods left of d stay pending.
func (k *Packer) verdict(d *demand) model.Verdict {
	if k.bare != nil {
		return model.Verdict{Pods: d.left, Shape: k.snapshot.Pending[d.kind].Shape}
	}
	v := model.Verdict{Pods: d.left, Shape: k.snapshot.Pending[d.kind].Shape, Nodes: len(k.nodes)}
	for i := range k.catalogue.Pools {
		if steps, ok := k.hollow(i); ok {
			v.Pools = append(v.Pools, model.PoolVerdict{Pool: k.catalogue.Pools[i].Name, Steps: steps})
			continue
		}
		steps := k.catalogue.Explain(i, d.Demand, k.snapshot.Resources)
		suits := steps[len(steps)-1].Left > 0
		if suits {
			steps = append(steps, k.lastStep(i, d))
		}
		v.Pools = append(v.Pools, model.PoolVerdict{Pool: k.catalogue.Pools[i].Name, Steps: steps, Suits: suits})
	}
	for _, p := range k.snapshot.Pools {
		if p.Unavailable != "" {
			v.Pools = append(v.Pools, model.PoolVerdict{Pool: p.Name, Reason: "it is " + p.Unavailable})
		}
	}
	if len(v.Pools) == 0 {
		v.Reason = "no NodePool is ready to launch nodes"
	}
	return v
}

// lastStep says what keeps d from the pool although labels, taints and size do
// not: minValues, reservations, ports, rules between pods, or limits.
func (k *Packer) lastStep(pool int, d *demand) model.Step {
	p := &k.catalogue.Pools[pool]
	if step, ok := k.floorStep(pool, d); ok {
		return step
	}
	if step, ok := k.usedUp(pool, d); ok {
		return step
	}
	if len(d.Shape.HostPorts) > 0 && !k.catalogue.Fits(d.Demand, p.Offers) {
		return k.portStep(d)
	}
	if !k.topology.Free(d.kind) {
		if reason, ok := k.whyNot(pool, d); ok {
			return model.Step{Constraint: reason.Constraint, Hint: reason.Hint}
		}
		if keys := k.undecided(pool, d); len(keys) > 0 {
			return model.Step{
				Constraint: "rules between pods on " + strings.Join(keys, ", "),
				Hint:       "the NodePool's nodes have no value of it that could be known; add one to the labels or requirements of its template",
			}
		}
		if len(p.Limits) == 0 {
			return model.Step{Constraint: "rules between pods", Hint: "other pods came first in this plan; the next looks again"}
		}
	}
	return k.limitStep(pool, d)
}

// undecided returns the labels that rules for d are about and of which no value
// is known for nodes of the pool.
func (k *Packer) undecided(pool int, d *demand) []string {
	var out []string
	for _, key := range k.topology.Minds(d.kind) {
		offers := k.catalogue.Pools[pool].Offers
		inPool := func(o int) bool { return offers.From <= o && o < offers.To }
		if !slices.ContainsFunc(k.areas([]int{key}), func(a area) bool { return slices.ContainsFunc(a.offers, inPool) }) {
			out = append(out, k.topology.Keys[key])
		}
	}
	return out
}

// portStep names the daemons that take the ports d needs.
func (k *Packer) portStep(d *demand) model.Step {
	var ports, names []string
	for _, p := range d.Shape.HostPorts {
		ports = append(ports, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
	}
	for _, daemon := range k.snapshot.Daemons {
		if fit.Conflict(d.Shape.HostPorts, daemon.Shape.HostPorts) {
			names = append(names, daemon.Name)
		}
	}
	return model.Step{
		Constraint: "host ports " + strings.Join(ports, ", "),
		Hint:       "daemonset " + strings.Join(names, ", ") + " takes them on every such node; use others",
	}
}

// whyNot returns the rule between pods that keeps d from nodes that limits
// would let the pool buy. It reports false when there are none such, or no rule
// keeps it from them.
func (k *Packer) whyNot(pool int, d *demand) (topology.Reason, bool) {
	var here, all []topology.Place
	alternatives := d.Shape.Alternatives()
	for _, a := range k.areas(k.topology.Pinned(d.kind)) {
		if !slices.ContainsFunc(alternatives, a.suits) {
			continue
		}
		some, own := false, false
		for _, o := range a.offers {
			row := &k.catalogue.Types[k.catalogue.Offers[o].Type]
			if d.Offers.Has(o) && d.Shape.Requests.Fits(row.Free) && k.limits.allow(row.Pool, row.Capacity, 1) > 0 {
				some, own = true, own || row.Pool == pool
			}
		}
		if some {
			all = append(all, a.place)
		}
		if own {
			here = append(here, a.place)
		}
	}
	if len(here) == 0 {
		return topology.Reason{}, false
	}
	if k.wary[d.kind] {
		all = append(all, k.nearby(d)...)
	}
	k.topology.Buyable(d.kind, all)
	return k.topology.Why(d.kind, here)
}

// limitStep names the limits that leave no room for another node for d, with
// what is used of them once this plan's nodes are there, and what they would
// have to be for one more. Where no limit is in the way alone, it names them
// all.
func (k *Packer) limitStep(pool int, d *demand) model.Step {
	p := &k.catalogue.Pools[pool]
	var all, binding, needed string
	for _, l := range p.Limits {
		used := k.used(pool, l.Resource)
		name := k.snapshot.Resources[l.Resource]
		text := fmt.Sprintf(" %s=%s (%s used)", name, model.FormatQuantity(l.Resource, l.Max), model.FormatQuantity(l.Resource, used))
		all += text
		if more := used + k.smallest(p, d, l.Resource); more > l.Max {
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
func (k *Packer) used(pool, resource int) int64 {
	sum := k.catalogue.Pools[pool].Usage.At(resource)
	for _, b := range k.bins {
		if k.poolOf(b.offer) == pool {
			sum += b.capacity.At(resource) * int64(b.count)
		}
	}
	return sum
}

// smallest is the least a node for d adds of a resource to the pool.
func (k *Packer) smallest(p *fit.Pool, d *demand, resource int) int64 {
	least := int64(math.MaxInt64 / 2)
	for i := p.Offers.From; i < p.Offers.To; i++ {
		row := &k.catalogue.Types[k.catalogue.Offers[i].Type]
		if d.Offers.Has(i) && d.Shape.Requests.Fits(row.Free) {
			least = min(least, row.Capacity.At(resource))
		}
	}
	return least
}
