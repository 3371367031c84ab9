package pack

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
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

// resolved is up to how many demands their worth is worked out anew after each
// reservation, and the best pattern is searched for.
const resolved = 32

// spendReservations plans nodes that take from reservations, always the one
// whose pods are worth most above its price. A pod is worth what its share of
// bought nodes would cost; one that could not be bought a node in the tier is
// worth more than any other.
func (k *Packer) spendReservations(demands []*demand, tier fit.Range) {
	var worth map[*demand]float64
	for {
		candidates := k.prepaidIn(tier)
		if len(candidates) == 0 {
			return
		}
		m := k.newMarket(candidates, demands)
		m.shares = func(c int, take []portion) bool { return k.agree(m, c, take) }
		if worth == nil || len(demands) <= resolved {
			worth = k.appraise(demands, tier)
		}
		k.value(m, worth)
		best, gain := pattern{candidate: -1}, 0.0
		for c := range m.candidates {
			take, w := m.fullest(c)
			if g := w - m.candidates[c].price; len(take) > 0 && g > gain*(1+1e-9) {
				best, gain = pattern{c, take}, g
			}
		}
		if best.candidate < 0 {
			return
		}
		id := k.reservation(m.candidates[best.candidate].offer)
		if !k.commit(m, best, int(min(k.prepaid[id], 1<<30))) {
			return
		}
		k.prepaid[id] -= int64(k.bins[len(k.bins)-1].count)
	}
}

// appraise returns what pods of the demands cost when nodes are bought for all
// of them in the tier, for those that can be.
func (k *Packer) appraise(demands []*demand, tier fit.Range) map[*demand]float64 {
	m := k.open(demands, tier, func(c candidate) float64 { return c.price })
	worth := map[*demand]float64{}
	if m.restart() {
		m.optimise(m.few())
	}
	var prices []float64
	if m.mixed() {
		prices = m.meanPrices()
	}
	for row, d := range m.demands {
		worth[d] = m.values[row]
		for _, one := range d.members { // by what they request, compared to their mean
			weight, mean := m.scaled(m.dense(one.Shape.Requests, func(group) int { return 0 })), dot(prices, m.weight[row])
			worth[one] = m.values[row]
			if mean > 0 {
				worth[one] *= dot(prices, weight) / mean
			}
		}
	}
	return worth
}

// value sets what pods are worth in the market.
func (k *Packer) value(m *market, worth map[*demand]float64) {
	all := 1.0
	for row, d := range m.demands {
		all += worth[d] * float64(m.count[row])
	}
	for row, d := range m.demands {
		w, known := worth[d]
		if !known { // the larger the dearer, and each dearer than all that can be bought
			size := 1.0
			for _, v := range m.weight[row] {
				size += v
			}
			w = all * size
		}
		m.values[row] = w
	}
}

// fullest returns the most worthy pattern it finds for one node of candidate c.
func (m *market) fullest(c int) ([]portion, float64) {
	m.worthLimit(c, 0)
	take, most := m.fill(c)
	var found [][]portion
	if len(m.rows[c]) <= resolved {
		found, _ = m.search(c)
	}
	for _, f := range found {
		if w := worth(f, m.values); w > most && m.shares(c, f) {
			take, most = f, w
		}
	}
	return take, most
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
			for _, p := range k.proofs {
				if row.Pool >= p.tier.From && row.Pool < p.tier.To {
					worth := k.roomWorth(p, row.Free, func(d *demand, pods int) int { return k.onNew(o, d, pods) })
					most = max(most, worth-float64(k.catalogue.Offers[o].Price))
				}
			}
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
