package pack

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// Reservations are paid for whether they are used or not, and there is only a
// number of nodes in each. They are spent before anything is bought in a tier,
// on the pods that would cost most otherwise; see spendReservations.

// countReservations finds how many nodes each reservation still gives: the
// least that any pool is told, less those that are on their way.
func (k *Packer) countReservations() {
	k.reserved, k.prepaid = fit.NewBits(len(k.catalogue.Offers)), map[string]int64{}
	if !k.policy.ReservedCapacity || len(k.catalogue.Reservations()) == 0 {
		return
	}
	for _, id := range k.catalogue.Reservations() {
		k.reserved = k.reserved.Or(k.catalogue.Reserved(id))
	}
	for i := range k.snapshot.Pools {
		for _, t := range k.snapshot.Pools[i].Types {
			for _, o := range t.Offerings {
				if left, known := k.prepaid[o.ReservationID]; o.ReservationID != "" && (!known || o.ReservationLeft < left) {
					k.prepaid[o.ReservationID] = o.ReservationLeft
				}
			}
		}
	}
	for i := range k.snapshot.Nodes {
		if id := k.snapshot.Nodes[i].Reservation; id != "" {
			k.prepaid[id]--
		}
	}
	k.initially = map[string]int64{}
	for id, left := range k.prepaid {
		k.initially[id] = max(left, 0)
	}
}

// reservation returns which reservation the offer takes from; "" = none.
func (k *Packer) reservation(offer int) string {
	if !k.reserved.Has(offer) {
		return ""
	}
	return k.catalogue.Offers[offer].ReservationID
}

// reservationLabel returns what asks the provider for the reservation of the
// offer, if the offer says.
func (k *Packer) reservationLabel(offer int) (model.Requirement, bool) {
	id := k.reservation(offer)
	for _, r := range k.catalogue.Offers[offer].Requirements {
		if !r.Complement && len(r.Values) == 1 && r.Values[0] == id {
			return r, true
		}
	}
	return model.Requirement{}, false
}

// alike returns those of the offers that a launch counting on this one may
// become: the same reservation, or none.
func (k *Packer) alike(offer int, offers fit.Bits) fit.Bits {
	if id := k.reservation(offer); id != "" {
		return offers.And(k.catalogue.Reserved(id))
	}
	return offers.Less(k.reserved)
}

// sorts divides offers into those that one launch can become.
func (k *Packer) sorts(offers fit.Bits) []fit.Bits {
	var out []fit.Bits
	for offers = slices.Clone(offers); !offers.Empty(); {
		for o := range offers.All() {
			sort := k.alike(o, offers)
			out, offers = append(out, sort), offers.Less(sort)
			break
		}
	}
	return out
}

// plentiful reports whether pods of d may count on any number of nodes from the
// offer: reservations are for those that have nothing else.
func (k *Packer) plentiful(offer int, d *demand) bool {
	if !k.reserved.Has(offer) {
		return true
	}
	return k.prepaid[k.catalogue.Offers[offer].ReservationID] > 0 && d.Offers.Less(k.reserved).Empty()
}

// quotePrepaid is quote for a cell where nothing can be had for d but from
// reservations.
func (k *Packer) quotePrepaid(c *cell, d *demand, offers []int) {
	most := int64(0)
	for _, o := range offers {
		if !d.Offers.Has(o) || !k.reserved.Has(o) {
			continue
		}
		row, left := &k.catalogue.Types[k.catalogue.Offers[o].Type], k.prepaid[k.catalogue.Offers[o].ReservationID]
		room := fit.Room(row.Free, d.Shape.Requests, topology.Unbounded)
		tier := k.tierOf[row.Pool]
		if room == 0 || left <= 0 || tier > c.tier || k.limits.allow(row.Pool, row.Capacity, 1) == 0 {
			continue
		}
		if price := float64(k.catalogue.Offers[o].Price) / float64(room); tier < c.tier || price < c.price {
			c.tier, c.price, c.each = tier, price, min(room, k.topology.Most(d.kind))
		}
		most = max(most, min(left, topology.Unbounded)*int64(min(room, k.topology.Most(d.kind))))
	}
	c.most = int(min(int64(c.most), most))
}

// prepaidIn returns the reserved offers of the tier that can be used, as
// candidates, small ones first.
func (k *Packer) prepaidIn(tier fit.Range) []candidate {
	defer func(was bool) { k.partial = was }(k.partial) // what is missing here costs the proof nothing
	var out []candidate
	for _, id := range k.catalogue.Reservations() {
		if k.prepaid[id] <= 0 {
			continue
		}
		for pool := tier.From; pool < tier.To; pool++ {
			p := &k.catalogue.Pools[pool]
			offers := p.Usable.And(k.catalogue.Reserved(id))
			if k.strict(pool) {
				out = k.varied(pool, offers, out)
				continue
			}
			for i := range offers.All() {
				out = k.prepaidOffer(i, out)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int { return slices.Compare(a.room, b.room) })
	return slices.DeleteFunc(out, k.unaffordable)
}

// prepaidOffer adds a reserved offer as a candidate.
func (k *Packer) prepaidOffer(offer int, out []candidate) []candidate {
	o := &k.catalogue.Offers[offer]
	row := &k.catalogue.Types[o.Type]
	serves := fit.NewBits(len(k.classes))
	for class, offers := range k.classes {
		if offers.Has(offer) {
			serves.Set(class)
		}
	}
	if serves.Empty() || !(model.Resources{}).Fits(row.Free) {
		return out
	}
	return append(out, candidate{
		offer: offer, pool: row.Pool, price: k.charged(o.Price), free: row.Free, room: k.roomFor(row.Free), serves: serves, capacity: row.Capacity,
	})
}

// spendReservations plans nodes that take from reservations, always the one
// whose pods are worth most above its price. A pod is worth what its share of
// bought nodes would cost; one that could not be bought a node in the tier is
// worth more than any other.
func (k *Packer) spendReservations(demands []*demand, tier fit.Range) {
	for {
		candidates := k.prepaidIn(tier)
		if len(candidates) == 0 {
			return
		}
		q := k.problemOf(demands, candidates)
		if len(q.demands) == 0 {
			return
		}
		takes, worths := cover.Fullest(&q.Problem, k.appraise(q, demands, tier), k.budget)
		best, gain := -1, 0.0
		for c := range takes {
			if g := worths[c] - candidates[c].price; len(takes[c]) > 0 && g > gain*(1+1e-9) {
				best, gain = c, g
			}
		}
		if best < 0 {
			return
		}
		id := k.reservation(candidates[best].offer)
		k.launchNode(q, k.alikeNodes(q, best, takes[best], int(min(k.prepaid[id], 1<<30))))
		k.prepaid[id] -= int64(k.bins[len(k.bins)-1].count)
	}
}

// alikeNodes returns as many equal nodes as pods and limits allow, at most count.
func (k *Packer) alikeNodes(q *problem, c int, take []cover.Portion, count int) cover.Node {
	for _, t := range take {
		count = min(count, q.Items[t.Item].Count/t.Pods)
	}
	return cover.Node{Candidate: c, Count: k.limits.allow(q.candidates[c].pool, q.candidates[c].capacity, max(count, 1)), Take: take}
}

// appraise returns what a pod of each item costs if nodes are launched for all
// of the demands in the tier. Pods for which the tier launches nothing but
// reserved nodes are worth more than all others together and more than any
// reserved node costs, and large ones more than small ones.
func (k *Packer) appraise(q *problem, demands []*demand, tier fit.Range) []float64 {
	bought := k.problem(demands, tier)
	worth, all := map[*demand]float64{}, 1.0
	for _, c := range q.candidates {
		all = max(all, 1+c.price)
	}
	for i, v := range cover.Values(&bought.Problem, cover.Unlimited(), k.budget) {
		d := bought.demands[i]
		worth[d] = v
		all += v * float64(len(d.left))
	}
	out := make([]float64, len(q.demands))
	for i, d := range q.demands {
		if w, known := worth[d]; known {
			out[i] = w
			continue
		}
		size := 1.0
		for r, v := range q.Items[i].Request {
			most := int64(1)
			for c := range q.Candidates {
				most = max(most, q.Candidates[c].Room[r])
			}
			size += float64(v) / float64(most)
		}
		out[i] = all * size
	}
	return out
}

// reservationsWorth is an upper bound on the worth, above their price, of the
// nodes that reservations gave at the start.
func (k *Packer) reservationsWorth() float64 {
	sum := 0.0
	for _, id := range k.catalogue.Reservations() {
		if k.initially[id] == 0 {
			continue
		}
		most := 0.0
		for o := range k.catalogue.Reserved(id).All() {
			row := &k.catalogue.Types[k.catalogue.Offers[o].Type]
			worth := k.roomWorth(row.Free, func(d *demand, pods int) int { return k.onNew(o, d, pods) })
			most = max(most, worth-float64(k.catalogue.Offers[o].Price))
		}
		sum += most * float64(k.initially[id])
	}
	return sum
}

// onNew returns how many of so many pods of d that fit share a new node bought
// from the offer at most, in whatever plan.
func (k *Packer) onNew(offer int, d *demand, pods int) int {
	if !d.Offers.Has(offer) {
		return 0
	}
	if most := k.never(d); most > 0 {
		return min(most, pods)
	}
	return pods
}

// usedUp is the step for a pool that has nothing for d but reservations of
// which nothing is left.
func (k *Packer) usedUp(pool int, d *demand) (model.Step, bool) {
	var ids []string
	for o := range d.Offers.And(k.catalogue.Pools[pool].Usable).All() {
		if row := &k.catalogue.Types[k.catalogue.Offers[o].Type]; !d.Shape.Requests.Fits(row.Free) {
			continue
		}
		id := k.reservation(o)
		if id == "" || k.prepaid[id] > 0 {
			return model.Step{}, false
		}
		ids = append(ids, fmt.Sprintf("%s (%d nodes)", id, k.initially[id]))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return model.Step{
		Constraint: "reservations used up: " + strings.Join(ids, ", "),
		Hint:       "enlarge a reservation, or let pod and NodePool use other capacity types",
	}, len(ids) > 0
}
