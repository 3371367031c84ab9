// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// newProblem compiles s. What can be used for the next Snapshot it leaves in
// the memory of base, which says everything else. Shapes that use something no
// plan can honor yet are left out; see Decide's verdicts.
func newProblem(base problem, s *model.Snapshot) *problem {
	q := &base
	if q.wishes != nil {
		q.unwished = q.snapshot
	}
	q.snapshot, q.catalogue, q.startNodes = s, q.memory.Catalogue(s), q.memory.Nodes(s)
	q.book, q.labels = q.memory.Book(s), q.memory.Labels(s)
	q.policy.MaxTypes = max(q.policy.MaxTypes, 1)
	q.remembered = &remembered{varieties: map[string]*variety{}, regions: map[string][]*region{}}
	q.soft = q.hasSoftTaints()
	if q.futures == nil {
		q.futures, q.charges = newFutures(), map[int]float64{}
	}
	q.budget.Spend(len(s.Nodes)*(16+len(s.Pending)) + len(s.Pending)*len(q.catalogue.Types))
	q.tiers, q.floors, q.startDemands = tiersOf(q.catalogue.Pools), nil, nil
	for i := range q.catalogue.Pools {
		q.floors = append(q.floors, floorsOf(q.catalogue.Pools[i].Pool))
	}
	q.reservations = q.findReservations()
	for kind, pending := range s.Pending {
		if len(pending.Shape.Refused) == 0 && len(pending.Pods) > 0 {
			d := demand{kind: kind, Demand: q.compile(pending), left: pending.Pods}
			d.firm = q.buyable(d.Demand)
			d.buyable = d.firm
			q.startDemands, q.toPlace = append(q.startDemands, d), q.toPlace+len(d.Pods)
		}
	}
	slices.SortStableFunc(q.startDemands, hardestFirst)
	return q
}

// tiersOf returns the runs of pools with equal weight, heaviest first.
func tiersOf(pools []fit.Pool) []tier {
	var out []tier
	for from := 0; from < len(pools); {
		to := from + 1
		for to < len(pools) && pools[to].Weight == pools[from].Weight {
			to++
		}
		out = append(out, tier{From: from, To: to})
		from = to
	}
	return out
}

// compile finds where new nodes for the pods can be launched: not where daemons
// take the ports they need, and not where a launch could not span what its pool
// demands.
func (q *problem) compile(p model.Pending) *fit.Demand { return q.narrowed(q.catalogue.NewDemand(p)) }

// narrowed is the rest of compile.
func (q *problem) narrowed(d *fit.Demand) *fit.Demand {
	return q.spanning(q.avoiding(q.besideDaemons(d)))
}

// avoiding returns d without the pools that launch nothing.
func (q *problem) avoiding(d *fit.Demand) *fit.Demand {
	if len(q.avoid) == 0 {
		return d
	}
	return q.catalogue.Narrow(d, func(_ model.Requirements, offers fit.Bits) fit.Bits {
		for i := range q.catalogue.Pools {
			if p := &q.catalogue.Pools[i]; slices.Contains(q.avoid, p.Name) {
				offers = offers.Less(p.Allowed.Bits())
			}
		}
		return offers
	})
}

// besideDaemons returns d where no daemon takes the ports it needs.
func (q *problem) besideDaemons(d *fit.Demand) *fit.Demand {
	if ports := d.Shape.HostPorts; len(ports) > 0 {
		return q.catalogue.Except(d, q.catalogue.Taken(ports, q.snapshot.Daemons))
	}
	return d
}

// buyable reports whether a pod of d would fit some new node.
func (q *problem) buyable(d *fit.Demand) bool {
	return q.catalogue.Fits(d, fit.Range{To: len(q.catalogue.Offers)})
}

// findReservations finds how many nodes each reservation still gives: the
// least that any pool is told, less those that are on their way.
func (q *problem) findReservations() reservations {
	out := reservations{offers: fit.NewBits(len(q.catalogue.Offers)), left: map[string]int64{}}
	if !q.policy.ReservedCapacity || len(q.catalogue.Reservations()) == 0 {
		return out
	}
	for _, id := range q.catalogue.Reservations() {
		q.catalogue.Reserved(id).AddTo(out.offers)
	}
	for i := range q.snapshot.Pools {
		for _, t := range q.snapshot.Pools[i].Types {
			for _, o := range t.Offerings {
				if left, known := out.left[o.ReservationID]; o.ReservationID != "" && (!known || o.ReservationLeft < left) {
					out.left[o.ReservationID] = o.ReservationLeft
				}
			}
		}
	}
	for i := range q.snapshot.Nodes {
		if id := q.snapshot.Nodes[i].Reservation; id != "" {
			out.left[id]--
		}
	}
	return out
}
