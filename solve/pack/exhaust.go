// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// The phases before this one look at a few ways to share pods out over nodes, chosen by what
// is cheap for most problems. A tiny plan is compared with all ways there are: branch and bound
// over the nodes that each pod can run on and the new nodes that could be launched for it.

// Bounds of the search.
const (
	mostExhausted   = 8       // pods of the plan that can be moved
	mostSiteTries   = 8       // nodes there are that have room for one of these pods
	exhaustiveSteps = 1 << 14 // changes that are tried, times the pods each has to be checked with
	mostTied        = 64      // demands for pods in one area each

	offersPerCheck = 64 // that are looked at for a new node, in the time of one check
)

// exhaustion is the search for the cheapest way to share out the pods of a tiny plan.
type exhaustion struct {
	insertion
	ties  map[int][]tie   // by kind
	tiers map[inTier]bool // that nodes may be launched in
	waits bool            // for nodes that are being deleted: their domains count as long as they exist
	least float64         // what the best plan so far is charged
	best  mark
	found bool
}

// exhaust makes a tiny plan as cheap as any that keeps what earlier plans placed, if
// the search ends within its bounds. A plan that the scheduler follows only when nodes are gone
// that are being deleted gives way to a more expensive one.
func exhaust(x *draft) {
	if x.trial != nil || x.cost() == 0 || x.demanding(fit.Range{To: len(x.floors)}) || !x.tiny() {
		return
	}
	left := x.setAside()
	s := &exhaustion{insertion: insertion{repair: repair{x}, work: exhaustiveSteps}, least: x.cost()}
	s.tiers = s.tiersUsed()
	s.open = func(d *demand) []topology.Place { return s.atlas.available(d.kind, d.Shape) }
	if s.waits = len(x.doomed()) > 0; s.waits && !s.outlasts() {
		s.least = math.Inf(1)
	}
	s.rebuild()
	before := s.mark()
	bins := make([]int, len(s.bins))
	for i := range bins {
		bins[i] = i
	}
	for _, kind := range append(s.movableKinds(), noKind) {
		s.giveUp(bins, kind)
		bins = nil
	}
	if s.tieAll() {
		s.assign(nil, 0)
	}
	s.rollback(before)
	if s.found {
		s.rollback(s.best)
		x.final = x.final || slices.ContainsFunc(x.demands, func(d *demand) bool { return !x.topology.Free(d.kind) })
	}
	for i := range left {
		x.demands[i].left = left[i]
	}
	if s.found {
		s.insertAll() // limits may allow more now
	}
}

// tiny reports whether so few pods of the draft can be moved, to so few nodes, that all ways
// to share them out can be tried.
func (x *draft) tiny() bool {
	pods, kinds := 0, map[int]bool{}
	for _, b := range x.bins {
		for _, t := range b.take {
			for _, m := range x.demands[t.demand].parts() {
				pods += m.pods * t.pods * b.count
				kinds[m.of.kind] = true
			}
		}
		if pods > mostExhausted {
			return false
		}
	}
	if pods+len(x.placed)-len(x.kept) > mostExhausted {
		return false
	}
	loose := x.loosePlaced()
	for _, p := range loose {
		kinds[p.kind] = true
	}
	if pods+len(loose) > mostExhausted {
		return false
	}
	nodes := 0
	x.budget.Spend(len(kinds) * len(x.startNodes))
	for i := range x.startNodes {
		takes := func(d *demand) bool {
			return d.whole == nil && kinds[d.kind] && alone(d.Shape, &x.startNodes[i], 1) > 0
		}
		if slices.ContainsFunc(x.demands, takes) {
			nodes++
		}
	}
	return nodes <= mostSiteTries
}

// assign finds places for the pods that are left, at less than the best plan so far. Pods of
// last that have a place are on nodes before the site from: pods of one demand are alike.
func (s *exhaustion) assign(last *demand, from int) {
	if s.cost() >= s.least || s.work <= 0 || s.budget.Spent() {
		return
	}
	order := s.inOrder()
	i := slices.IndexFunc(order, func(d *demand) bool { return len(d.left) > 0 })
	if i < 0 {
		s.compare()
		return
	}
	d := order[i]
	if d != last {
		from = 0
	}
	before := s.mark()
	try := func(site int, change func() bool) {
		if s.work > 0 && change() {
			s.spend(s.size())
			s.assign(d, site)
			s.rollback(before)
		}
	}
	for i := range s.nodes {
		if i >= from && alone(d.Shape, &s.nodes[i], 1) > 0 {
			try(i, func() bool { return s.stay(d, &s.nodes[i]) })
		}
	}
	sites, cost := len(s.nodes), s.cost()
	for i := range s.ties[d.kind] {
		tie := &s.ties[d.kind][i]
		s.spend(1)
		for j := range s.bins {
			if sites+j >= from {
				try(sites+j, func() bool { return s.join(d, s.demands[tie.part], j, tie.offers) })
			}
		}
		for _, row := range tie.launches {
			o := s.firstAllowed(row)
			if o >= 0 && cost+s.charged(s.catalogue.Offers[o].Price) < s.least {
				try(sites+len(s.bins), func() bool { return s.launch(d, s.demands[tie.part], o) })
			}
		}
	}
}

// firstAllowed returns the first of the offers, all of one pool, that limits and reservations
// allow one more node of, or -1.
func (s *exhaustion) firstAllowed(offers []int) int {
	i := slices.IndexFunc(offers, func(o int) bool {
		id := s.reservation(o)
		return (id == "" || s.prepaid[id] > 0) && s.limits.allow(s.poolOf(o), s.capacity(o), 1) > 0
	})
	if i < 0 {
		return -1
	}
	return offers[i]
}

// tieAll finds the ways to tie the pods that are left to areas. It reports whether they are few.
func (s *exhaustion) tieAll() bool {
	s.ties = map[int][]tie{}
	keys, all := s.allKeys(), 0
	for _, d := range s.inOrder() {
		if len(d.left) == 0 || !d.buyable {
			continue
		}
		for _, a := range s.areasFor(d, keys) {
			if !a.offers.Overlaps(d.Offers) {
				continue
			}
			for _, term := range termsIn(d, a) {
				if part := s.tiedTo(d, a, term); part.Offers.Overlaps(a.offers) {
					s.ties[d.kind] = append(s.ties[d.kind], tie{part.index, a.offers, s.launches(part, a.offers)})
					all++
				}
			}
			if all > mostTied {
				return false
			}
		}
	}
	return true
}

// tie is a demand for pods in one area, which has these offers.
type tie struct {
	part     int
	offers   fit.OfferSet
	launches [][]int // those of them that take one pod: of each pool, for each reservation and for none, cheapest first
}

// allKeys returns all keys that any rule between pods is about.
func (s *exhaustion) allKeys() []int {
	keys := make([]int, len(s.topology.Keys))
	for i := range keys {
		keys[i] = i
	}
	return keys
}

// launches returns the offers that take one pod of d: of each pool, for each reservation and for
// none, cheapest first.
func (s *exhaustion) launches(d *demand, offers fit.OfferSet) [][]int {
	s.spend(len(s.catalogue.Offers) / offersPerCheck)
	var out [][]int
	both := d.Offers.And(offers)
	for pool := range s.catalogue.Pools {
		for _, sort := range s.sorts(both.And(s.catalogue.Pools[pool].Usable).Bits()) {
			var fitting []int
			for o := range sort.All() {
				row := &s.catalogue.Types[s.catalogue.Offers[o].Type]
				if d.Shape.Requests.Fits(row.Free) && (model.Resources{}).Fits(row.Free) && s.supplied(row, []portion{{demand: d.index, pods: 1}}) {
					fitting = append(fitting, o)
				}
			}
			slices.SortStableFunc(fitting, func(a, b int) int {
				return cmp.Compare(s.catalogue.Offers[a].Price, s.catalogue.Offers[b].Price)
			})
			out = append(out, fitting)
		}
	}
	return out
}

// stay puts the next pod of d on a node there is.
func (s *exhaustion) stay(d *demand, n *fit.NodeRow) bool {
	s.place(n, d, d.left[:1])
	d.left = d.left[1:]
	return true
}

// join puts the next pod of d on a new node, as a pod of part, if the node has room and
// can be launched as one of the offers.
func (s *exhaustion) join(d, part *demand, i int, offers fit.OfferSet) bool {
	offer, ok := s.takes(s.bins[i], part, offers)
	if ok {
		s.put(&s.bins[i], part.index, offer, d.left[0])
		d.left = d.left[1:]
	}
	return ok
}

// launch launches a node of the offer for the next pod of d, as a pod of part.
func (s *exhaustion) launch(d, part *demand, offer int) bool {
	b := bin{offer: offer, count: 1, capacity: s.capacity(offer), take: []portion{{demand: part.index, pods: 1, chosen: d.left[:1:1]}}}
	d.left = d.left[1:]
	s.limits.take(s.poolOf(offer), b.capacity, 1)
	if id := s.reservation(offer); id != "" {
		s.prepaid[id]--
	}
	s.bins = append(s.bins, b)
	return true
}

// compare remembers the plan if it is the best so far: the scheduler follows it whether more
// nodes come or not, and before nodes are gone that are being deleted, and all pods find their
// devices.
func (s *exhaustion) compare() {
	if s.leavesTiers(s.tiers) {
		return
	}
	s.spend(s.outlooks() / typesPerCheck)
	if s.stands() && s.standsAlone() && (!s.waits || s.outlasts()) && s.confirm() {
		s.best, s.least, s.found = s.mark(), s.cost(), true
	}
}
