// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"

	"karpenter/model"
	"karpenter/solve/pack"
)

// terminatesFirst reports whether the gate of the reason lets nodes be terminated
// before they are replaced.
func (ask *inquiry) terminatesFirst(reason model.Reason) bool {
	switch reason {
	case model.Drifted:
		return ask.policy.TerminateFirstDrift
	case model.Unhealthy:
		return ask.policy.TerminateFirstRepair
	}
	return false
}

// terminateFirst returns the command that terminates the node before it is
// replaced, with the pods it is about. It returns false unless the slot that the
// node leaves in its full reservation is all that its pods lack.
func (ask *inquiry) terminateFirst(site int, reason model.Reason) (model.Command, []model.Pending, bool) {
	n := &ask.s.Nodes[site]
	if !ask.terminatesFirst(reason) || !isReserved(n) {
		return model.Command{}, nil, false
	}
	pools, memory := ask.s.Pools, ask.memory
	defer func() { ask.s.Pools, ask.memory = pools, memory }()
	if ask.s.Pools = credited(pools, n); ask.s.Pools == nil {
		return model.Command{}, nil, false
	}
	ask.memory = &pack.Memory{}
	var t *pack.Trial
	var pending []model.Pending
	if t, pending = ask.try(question{sites: []int{site}, most: unlimited}, ask.policy); len(t.Left) > 0 {
		return model.Command{}, nil, false
	}
	return model.Command{
		Reason: reason, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}}, Moves: t.Moves,
		Cost: n.Price, Savings: n.Price, TerminateFirst: model.NoReservedCapacity,
	}, pending, true
}

func isReserved(n *model.Node) bool {
	capacityType, _ := n.Labels.Value(model.LabelCapacityType)
	return capacityType == model.Reserved
}

// takesFrom reports whether the node was launched into the offering's
// reservation.
func takesFrom(n *model.Node, o *model.Offering) bool {
	return slices.ContainsFunc(o.Requirements, func(r model.Requirement) bool {
		id, known := n.Labels.Value(r.Key)
		return known && id == o.ReservationID && !r.Complement && len(r.Values) == 1 && r.Values[0] == id
	})
}

// credited returns the pools with one launch left in the full reservation of the
// node, and nil if no pool is offered that reservation.
func credited(pools []model.Pool, n *model.Node) []model.Pool {
	found := false
	out := slices.Clone(pools)
	for i := range out {
		out[i].Types = slices.Clone(out[i].Types)
		for j, t := range out[i].Types {
			k := slices.IndexFunc(t.Offerings, func(o model.Offering) bool { return o.Full && takesFrom(n, &o) })
			if k < 0 {
				continue
			}
			found = true
			with := *t
			with.Offerings = slices.Clone(t.Offerings)
			with.Offerings[k].Available, with.Offerings[k].Full, with.Offerings[k].ReservationLeft = true, false, 1
			out[i].Types[j] = &with
		}
	}
	if !found {
		return nil
	}
	return out
}

// fullOfferings returns the offerings that the template of a static pool allows,
// if none of them can be launched because they are all in full reservations, and
// nil otherwise.
func fullOfferings(p *model.Pool) []*model.Offering {
	var out []*model.Offering
	for _, t := range p.Types {
		if _, ok := p.Requirements.Intersects(t.Requirements); !ok {
			continue
		}
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if _, ok := p.Requirements.Intersects(o.Requirements); !ok {
				continue
			}
			if o.CapacityType != model.Reserved || o.Available {
				return nil
			}
			if o.Full {
				out = append(out, o)
			}
		}
	}
	return out
}

// staged returns the command that replaces a node of a static pool, which is to
// terminate it first if nothing else is possible and the gate is on; or what
// keeps the node.
func (r *round) staged(n *model.Node, reason model.Reason, left *turnover) (c model.Command, cause model.Cause, why string) {
	launch, reservation := r.fromTemplate(&r.given.Pools[r.pools[n.Pool]])
	c = model.Command{
		Reason: reason, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}}, Launches: []model.Launch{launch},
		Cost: n.Price, Savings: n.Price - launch.Price,
	}
	first := func(why model.TerminateFirst) (model.Command, model.Cause, string) {
		c.Launches, c.Savings, c.TerminateFirst = nil, n.Price, why
		return c, "", ""
	}
	gate := r.terminatesFirst(reason)
	switch {
	case left.why != "":
		return c, left.cause, left.why
	case gate && len(left.reservations) > 0:
		if isReserved(n) && slices.ContainsFunc(left.reservations, func(o *model.Offering) bool { return takesFrom(n, o) }) {
			return first(model.NoReservedCapacity)
		}
		return c, model.ByPlace, fmt.Sprintf("the capacity reservations of static nodepool %s are full and cannot stage a replacement", n.Pool)
	case launch.Type == "":
		return c, model.ByPlace, fmt.Sprintf("nothing that nodepool %s allows is available to replace it", n.Pool)
	case left.room <= 0 && gate:
		return first(model.StaticAtLimit)
	case left.room <= 0:
		return c, model.ByPolicy, left.full
	}
	left.room--
	if reservation != "" {
		r.reserved[reservation]++
	}
	return c, "", ""
}

// fromTemplate returns a launch of whatever the pool's template allows. It counts on the cheapest
// offering there is now, of the reservation that is named; with none it has no Type.
func (r *round) fromTemplate(p *model.Pool) (out model.Launch, reservation string) {
	out = model.Launch{Pool: p.Name, Requirements: p.Requirements}
	for _, t := range p.Types {
		if _, ok := p.Requirements.Intersects(t.Requirements); !ok {
			continue
		}
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if _, ok := p.Requirements.Intersects(o.Requirements); !ok || !o.Available || out.Type != "" && o.Price >= out.Price || r.usedUp(o) {
				continue
			}
			out.Type, out.Zone, out.CapacityType, out.Price, reservation = t.Name, o.Zone, o.CapacityType, o.Price, o.ReservationID
		}
	}
	return out, reservation
}

// usedUp reports whether the reservation of the offering has no capacity left for one more node.
func (r *round) usedUp(o *model.Offering) bool {
	if o.ReservationID == "" {
		return false
	}
	left := o.ReservationLeft - r.reserved[o.ReservationID]
	for i := range r.s.Nodes {
		if r.s.Nodes[i].Reservation == o.ReservationID {
			left--
		}
	}
	return left <= 0
}
