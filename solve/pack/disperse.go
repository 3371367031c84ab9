// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// AWS reclaims spot instances by spot pool, which is an instance type in a zone. So
// no more than a share of a workload is to be in one, or on one node, which is part
// of one. NodePools can ask for that of their vCPUs, too. disperse is the phase that
// buys new nodes in other spot pools, or several in place of one, as long as that
// costs little.

// Bounds of disperse.
const (
	dispersePasses = 8       // over the new nodes
	disperseWork   = 1 << 20 // offers that are looked at for one plan
	spotQuotes     = 3       // offers of each zone that a new node is considered for, cheapest first
	spotPairs      = 8       // pairs of them that two nodes in place of one are considered for
	spotSizes      = 4       // sizes of nodes that it is divided into, largest first
	mostParts      = 8       // nodes in place of one
	sizePremium    = 1.05    // how much more nodes of one of these sizes may cost
	spotTries      = 4       // ways to change a node that are tried, best first
	pricedCrowds   = 16      // crowds of one plan of which it is worked out what spreading them costs
)

// spotPool is an instance type in a zone, for the nodes of a pool.
type spotPool struct {
	pool       int
	name, zone string
}

// load is how much of a workload, in pods, or of a pool, in millicores, is in
// which spot pools.
type load struct {
	namespace, workload string // "" = it is a pool
	pool                int
	total               int64
	in                  map[spotPool]int64
}

type dispersal struct {
	repair
	loads  []load
	byName map[[2]string]int // workloads
	byPool map[int]int
	pools  map[string]int // of the catalogue
	only   int            // load that is spread; -1 = all
	left   model.Price    // that may be spent
	own    []model.Price  // by pool, of those with an allowance of their own
	stay   map[int]bool   // bins that are not changed, as rules between pods hold them
	ways   map[int][]*way // by bin: how it could be changed
	offers map[int]*quoted
	work   int
}

// quoted is the spot offers of a pool, cheapest first.
type quoted struct {
	offers []int
	zones  int // that they are in
}

// stake is how much of a load a new node is: pods, or millicores.
type stake struct {
	load int
	n    int64
}

// disperse changes the plan of the outcome so that less of a workload is in one spot
// pool than the policy says, and reports what still is.
func disperse(out *outcome) {
	x := out.draft
	if x.trial != nil || x.abandoned != inProgress || !slices.ContainsFunc(x.bins, func(b bin) bool { return x.spot(b.offer) }) {
		return
	}
	before := x.mark()
	c := newDispersal(x)
	if !c.crowded() {
		x.rollback(before)
		return
	}
	some, paid := c.spread(), x.priceOfBins()
	if some {
		c.pin()
		plan := model.Plan{}
		report{x}.place(&plan)
		out.plan.Placements, out.plan.Launches, out.plan.Cost = plan.Placements, plan.Launches, plan.Cost
	}
	out.plan.Crowds = c.remaining(paid)
	if !some {
		x.rollback(before)
	}
}

// spot reports whether the offer is a spot offering.
func (q *problem) spot(offer int) bool { return q.catalogue.Offers[offer].CapacityType == model.Spot }

// spotPoolOf returns the spot pool of the offer.
func (q *problem) spotPoolOf(offer int) spotPool {
	o := &q.catalogue.Offers[offer]
	return spotPool{q.poolOf(offer), q.catalogue.Types[o.Type].Name, o.Zone}
}

// priceOfBins returns what the new nodes cost at the offers they are planned as.
func (x *draft) priceOfBins() model.Price {
	var sum model.Price
	for _, b := range x.bins {
		sum += x.catalogue.Offers[b.offer].Price * model.Price(b.count)
	}
	return sum
}

// maxSpotPoolShare returns which share of a workload on nodes of the pool may be in
// one spot pool.
func (q *problem) maxSpotPoolShare(pool int) float64 {
	share := q.policy.MaxSpotPoolShare
	if own := q.catalogue.Pools[pool].Aims.MaxSpotPoolShare; own != nil {
		share = *own
	}
	if share <= 0 {
		return 1
	}
	return share
}

func newDispersal(x *draft) *dispersal {
	c := &dispersal{
		repair: repair{x}, byName: map[[2]string]int{}, byPool: map[int]int{}, pools: map[string]int{}, only: -1,
		stay: map[int]bool{}, ways: map[int][]*way{}, offers: map[int]*quoted{}, work: disperseWork,
	}
	x.unroll()
	for i := range x.catalogue.Pools {
		c.pools[x.catalogue.Pools[i].Name] = i
		_, allowance := x.aims(x.catalogue.Pools[i].Pool)
		c.left, c.own = max(c.left, allowance), append(c.own, allowance)
	}
	for i := range x.bins {
		for _, t := range x.bins[i].take {
			for _, one := range c.podsOf(t) {
				c.loadOf(one.pod)
			}
		}
		pool := x.poolOf(x.bins[i].offer)
		if _, known := c.byPool[pool]; !known && x.catalogue.Pools[pool].Aims.MaxSpotPoolShare != nil {
			c.byPool[pool] = len(c.loads)
			c.loads = append(c.loads, load{pool: pool, in: map[spotPool]int64{}})
		}
	}
	c.countAll()
	return c
}

// countAll counts what runs on nodes and what is planned.
func (c *dispersal) countAll() {
	c.countNodes(false)
	for i := range c.placed {
		c.add(&c.snapshot.Nodes[c.placed[i].site], &c.placed[i].pod)
	}
	for i := range c.bins {
		c.count(&c.bins[i], c.stakes(&c.bins[i]), 1)
	}
}

// podsOf returns the pods of a portion, those of bundles each.
func (c *dispersal) podsOf(t portion) []tied {
	out := make([]tied, 0, len(t.chosen))
	for _, p := range t.chosen {
		if len(c.bundles) == 0 {
			out = append(out, tied{c.demands[t.demand], p})
			continue
		}
		out = append(out, c.standsFor(c.demands[t.demand], p)...)
	}
	return out
}

// loadOf returns the load that the pod is part of, a new one if there is none yet.
func (c *dispersal) loadOf(p model.Pod) (int, bool) {
	if p.Workload == "" || p.Buffer != "" {
		return 0, false
	}
	name := [2]string{p.Namespace, p.Workload}
	i, ok := c.byName[name]
	if !ok {
		i = len(c.loads)
		c.byName[name] = i
		c.loads = append(c.loads, load{namespace: p.Namespace, workload: p.Workload, in: map[spotPool]int64{}})
	}
	return i, true
}

// countNodes counts what runs on the nodes that stay, or on all.
func (c *dispersal) countNodes(all bool) {
	for i := range c.snapshot.Nodes {
		n := &c.snapshot.Nodes[i]
		if (n.Deleting || n.Closed) && !all {
			continue
		}
		for j := range n.Movable {
			for k := range n.Movable[j].Pods {
				c.add(n, &n.Movable[j].Pods[k])
			}
		}
		if pool, ok := c.pools[n.Pool]; ok {
			if at, ok := c.byPool[pool]; ok {
				c.put(at, c.nodeIn(n), n.Capacity.At(model.CPU))
			}
		}
	}
}

// add counts a pod on a node, if it is part of a load.
func (c *dispersal) add(n *model.Node, p *model.Pod) {
	if i, ok := c.byName[[2]string{p.Namespace, p.Workload}]; ok && p.Buffer == "" {
		c.put(i, c.nodeIn(n), 1)
	}
}

// nodeIn returns the spot pool that a node is of; nil = it is no spot node. A
// node that may still become several counts as one of its own.
func (c *dispersal) nodeIn(n *model.Node) *spotPool {
	if ct, _ := n.Labels.Value(model.LabelCapacityType); ct != model.Spot {
		return nil
	}
	name, known := n.Labels.Value(model.LabelInstanceType)
	zone, settled := n.Labels.Value(model.LabelZone)
	if !known || !settled {
		name = n.Name
	}
	return &spotPool{c.pools[n.Pool], name, zone}
}

// put has so much more of a load be in the spot pool; nil = elsewhere.
func (c *dispersal) put(at int, in *spotPool, n int64) {
	l := &c.loads[at]
	l.total += n
	if in != nil {
		l.in[*in] += n
	}
}

// count counts a new node so often.
func (c *dispersal) count(b *bin, stakes []stake, sign int64) {
	var in *spotPool
	if c.spot(b.offer) {
		of := c.spotPoolOf(b.offer)
		in = &of
	}
	for _, s := range stakes {
		c.put(s.load, in, sign*s.n)
	}
}

// stakes returns how much of which loads a new node is.
func (c *dispersal) stakes(b *bin) []stake {
	var out []stake
	for _, t := range b.take {
		for _, one := range c.podsOf(t) {
			i, ok := c.loadOf(one.pod)
			if !ok {
				continue
			}
			at := slices.IndexFunc(out, func(s stake) bool { return s.load == i })
			if at < 0 {
				at, out = len(out), append(out, stake{load: i})
			}
			out[at].n++
		}
	}
	if i, ok := c.byPool[c.poolOf(b.offer)]; ok {
		out = append(out, stake{i, c.capacity(b.offer).At(model.CPU)})
	}
	return out
}

// most returns how much of the load is to be in one spot pool at most. A share of pods
// is rounded up.
func (c *dispersal) most(l *load, in spotPool) int64 {
	share := c.maxSpotPoolShare(in.pool)
	if share >= 1 {
		return math.MaxInt64
	}
	if l.workload == "" {
		return int64(share * float64(l.total))
	}
	return max(1, int64(math.Ceil(share*float64(l.total)-1e-9)))
}

// excess returns which part of the load is in spot pools that have more of it than
// they should.
func (c *dispersal) excess(at int) float64 {
	l := &c.loads[at]
	over := int64(0)
	for in, n := range l.in {
		over += max(n-c.most(l, in), 0)
	}
	if over == 0 {
		return 0
	}
	return float64(over) / float64(l.total)
}

// crowded reports whether any load exceeds its share.
func (c *dispersal) crowded() bool {
	for i := range c.loads {
		if (c.only < 0 || i == c.only) && c.excess(i) > 0 {
			return true
		}
	}
	return false
}

// in returns the loads that a new node is part of and that count.
func (c *dispersal) in(b *bin) []int {
	var out []int
	for _, s := range c.stakes(b) {
		if c.only < 0 || s.load == c.only {
			out = append(out, s.load)
		}
	}
	return out
}

// way is new nodes that could be bought in place of one.
type way struct {
	bin    int
	by     []bin
	stakes [][]stake // by node
	more   model.Price
	less   float64 // excess
	state  wayState
}

// wayState says what is known of a way.
type wayState int8

const (
	rough    wayState = iota // what its nodes are bought as is not settled
	finished                 // it is
	refused                  // their pool does not allow them
)

// worth orders ways by what they cost for what they achieve.
func (w way) worth() float64 { return float64(w.more) / w.less }

// spread changes new nodes, those first that cost least for what it achieves. It
// reports whether it changed any.
func (c *dispersal) spread() bool {
	some := false
	for range dispersePasses {
		var ways []way
		for i := range c.bins {
			if w, ok := c.best(i); ok {
				ways = append(ways, w)
			}
		}
		slices.SortStableFunc(ways, func(a, b way) int { return cmp.Compare(a.worth(), b.worth()) })
		progress := false
		for _, w := range ways {
			if w, ok := c.best(w.bin); ok && c.take(w) {
				progress, some = true, true
			}
		}
		if !progress || !c.crowded() {
			break
		}
	}
	return some
}

// best returns the way to change a new node that costs least for what it achieves.
// The ways are kept until the node is changed.
func (c *dispersal) best(i int) (way, bool) {
	b := &c.bins[i]
	if c.work <= 0 || c.stay[i] || !c.spot(b.offer) || !slices.ContainsFunc(c.in(b), func(l int) bool {
		in := c.spotPoolOf(b.offer)
		return c.loads[l].in[in] > c.most(&c.loads[l], in)
	}) {
		return way{}, false
	}
	all, known := c.ways[i]
	if !known {
		all = append(c.others(i), c.parts(i)...)
		c.ways[i] = all
	}
	var ways []*way
	own := c.stakes(b)
	before := c.excessOf(own)
	for _, w := range all {
		if !c.affords(c.poolOf(b.offer), w.more) {
			continue
		}
		if w.less = before - c.without(i, own, w); w.less > 1e-9 {
			ways = append(ways, w)
		}
	}
	slices.SortStableFunc(ways, func(a, b *way) int { return cmp.Compare(a.worth(), b.worth()) })
	for _, w := range ways[:min(len(ways), spotTries)] {
		if c.finish(w); w.state == finished {
			return *w, true
		}
	}
	return way{}, false
}

// finish settles what the nodes are bought as, unless their pool does not allow that.
func (c *dispersal) finish(w *way) {
	if w.state != rough {
		return
	}
	w.state = refused
	var sum model.Resources
	b := &c.bins[w.bin]
	pool := c.poolOf(b.offer)
	if len(c.floors[pool]) > 0 && (len(w.by) > 1 || c.catalogue.Offers[w.by[0].offer].Type != c.catalogue.Offers[b.offer].Type) {
		return // another type is reserved for in limits
	}
	for i := range w.by {
		b, ok := c.boughtAs(w.by[i], w.by[i].offer)
		if !ok {
			return
		}
		w.by[i], sum = b, sum.Plus(b.capacity)
	}
	if c.limits.covers(pool, b.capacity, sum) {
		w.state = finished
	}
}

// affords reports whether so much more may be spent on nodes of the pool.
func (c *dispersal) affords(pool int, more model.Price) bool {
	return more <= 0 || more <= c.left && more <= c.own[pool]
}

// excessOf returns the excess of the loads that a new node with these stakes is part
// of.
func (c *dispersal) excessOf(own []stake) (sum float64) {
	for _, s := range own {
		if c.only < 0 || s.load == c.only {
			sum += c.excess(s.load)
		}
	}
	return sum
}

// without returns what the excess is if a new node with these stakes is changed.
func (c *dispersal) without(i int, own []stake, w *way) float64 {
	c.count(&c.bins[i], own, -1)
	for j := range w.by {
		c.count(&w.by[j], w.stakes[j], 1)
	}
	after := c.excessOf(own)
	for j := range w.by {
		c.count(&w.by[j], w.stakes[j], -1)
	}
	c.count(&c.bins[i], own, 1)
	c.spend(2 * len(own) * (1 + len(w.by)))
	return after
}

// quotes returns the spot offers that a node with the pods of b could be bought as,
// a few of each zone, cheapest first.
func (c *dispersal) quotes(b bin) []int {
	b.within, b.zone = nil, ""
	pool, requests := c.poolOf(b.offer), c.podRequests(b)
	offers, cheapest := c.offersOf(b), c.cheapest(pool)
	var out []int
	zones, full, looks := map[string]int{}, 0, 0
	for _, o := range cheapest.offers {
		looks++
		is := &c.catalogue.Offers[o]
		row := &c.catalogue.Types[is.Type]
		if !offers.Has(o) || zones[is.Zone] == spotQuotes || !requests.Fits(row.Free) || !c.mayBecome(pool, &b, row.Capacity) {
			continue
		}
		out = append(out, o)
		if zones[is.Zone]++; zones[is.Zone] == spotQuotes {
			if full++; full == cheapest.zones {
				break
			}
		}
	}
	c.spend(looks)
	return out
}

// cheapest returns the spot offers of a pool.
func (c *dispersal) cheapest(pool int) *quoted {
	q, known := c.offers[pool]
	if known {
		return q
	}
	q = &quoted{}
	zones := map[string]bool{}
	for o := range c.catalogue.Pools[pool].Usable.All() {
		if c.spot(o) {
			q.offers = append(q.offers, o)
			zones[c.catalogue.Offers[o].Zone] = true
		}
	}
	slices.SortStableFunc(q.offers, func(x, y int) int { return cmp.Compare(c.catalogue.Offers[x].Price, c.catalogue.Offers[y].Price) })
	q.zones = len(zones)
	c.offers[pool] = q
	c.spend(8 * len(q.offers))
	return q
}

// others returns the ways to buy the node in another spot pool.
func (c *dispersal) others(i int) []*way {
	b := c.bins[i]
	var out []*way
	for _, o := range c.quotes(b) {
		if c.spotPoolOf(o) != c.spotPoolOf(b.offer) {
			out = append(out, c.way(i, []bin{b}, []int{o}))
		}
	}
	return out
}

// way returns the way to have nodes with these pods, bought as the offers, in place
// of one.
func (c *dispersal) way(i int, by []bin, offers []int) *way {
	w := &way{bin: i, more: -c.catalogue.Offers[c.bins[i].offer].Price}
	for j, b := range by {
		b.offer, b.within, b.zone = offers[j], nil, ""
		w.by, w.more = append(w.by, b), w.more+c.catalogue.Offers[offers[j]].Price
		w.stakes = append(w.stakes, c.stakes(&b))
	}
	return w
}

// parts returns the ways to buy several nodes in place of one: two halves, or nodes
// of smaller sizes that are full, and one for the rest.
func (c *dispersal) parts(i int) []*way {
	b := c.bins[i]
	one, two := c.divide(b)
	if len(one.take) == 0 || len(two.take) == 0 {
		return nil
	}
	out := c.pairs(i, one, two)
	sizes := c.sizes(b)
	for largest := range min(len(sizes), spotSizes) {
		if by := c.change(b, sizes[largest:]); len(by) > 1 {
			if offers := c.unlike(by); offers != nil {
				out = append(out, c.way(i, by, offers))
			}
		}
	}
	return out
}

// sizes returns what smaller types have free of which as many as it takes for the
// pods of b cost little more than b, as spot nodes; the largest first.
func (c *dispersal) sizes(b bin) []model.Resources {
	type size struct {
		free  model.Resources
		full  float64 // how many it takes
		offer int
	}
	requests, price := c.podRequests(b), float64(c.catalogue.Offers[b.offer].Price)
	b.within, b.zone = nil, ""
	var all []size
	offers, looks := c.offersOf(b), 0
	for _, o := range c.cheapest(c.poolOf(b.offer)).offers {
		looks++
		is := &c.catalogue.Offers[o]
		if float64(is.Price) > price*sizePremium {
			break
		}
		free := c.catalogue.Types[is.Type].Free
		if full := part(requests, free); offers.Has(o) && full > 1 && full <= mostParts && float64(is.Price)*full <= price*sizePremium {
			all = append(all, size{free, full, o})
		}
	}
	c.spend(looks)
	slices.SortFunc(all, func(x, y size) int { return cmp.Or(cmp.Compare(x.full, y.full), cmp.Compare(x.offer, y.offer)) })
	var out []model.Resources
	for i, x := range all {
		if i == 0 || x.full > all[i-1].full {
			out = append(out, x.free)
		}
	}
	return out
}

// change divides the pods of a new node into nodes that are full: as many as there
// are of the largest size, then of the next, and one for the rest. It returns nil if
// those are too many.
func (c *dispersal) change(b bin, sizes []model.Resources) []bin {
	var out []bin
	for rest := b; ; {
		if len(out) == mostParts {
			return nil
		}
		for len(sizes) > 0 && c.podRequests(rest).Fits(sizes[0]) {
			sizes = sizes[1:]
		}
		if len(sizes) == 0 {
			return append(out, rest)
		}
		full, more := c.upTo(rest, sizes[0])
		if len(full.take) == 0 || len(more.take) == 0 {
			return append(out, rest)
		}
		out, rest = append(out, full), more
	}
}

// unlike returns the cheapest offers for the nodes, each in a spot pool of its own as
// far as there are that many; nil = there is none for one of them.
func (c *dispersal) unlike(by []bin) []int {
	var out []int
	used := map[spotPool]bool{}
	for _, b := range by {
		quotes := c.quotes(b)
		if len(quotes) == 0 {
			return nil
		}
		at := max(0, slices.IndexFunc(quotes, func(o int) bool { return !used[c.spotPoolOf(o)] }))
		used[c.spotPoolOf(quotes[at])] = true
		out = append(out, quotes[at])
	}
	return out
}

// pairs returns the cheapest ways to buy two nodes with these pods in place of one,
// each in a spot pool of its own.
func (c *dispersal) pairs(i int, one, two bin) []*way {
	var pairs [][2]int
	theirs := c.quotes(two)
	for _, o := range c.quotes(one) {
		for _, p := range theirs {
			if c.spotPoolOf(o) != c.spotPoolOf(p) {
				pairs = append(pairs, [2]int{o, p})
			}
		}
	}
	price := func(p [2]int) model.Price { return c.catalogue.Offers[p[0]].Price + c.catalogue.Offers[p[1]].Price }
	slices.SortStableFunc(pairs, func(a, b [2]int) int { return cmp.Compare(price(a), price(b)) })
	var out []*way
	for _, p := range pairs[:min(len(pairs), spotPairs)] {
		out = append(out, c.way(i, []bin{one, two}, p[:]))
	}
	return out
}

// upTo divides the pods of a new node into those that fit, and the rest.
func (c *dispersal) upTo(b bin, free model.Resources) (fits, rest bin) {
	fits, rest = b, b
	fits.take, rest.take = nil, nil
	for _, t := range b.take {
		n := min(fit.Room(free, c.demands[t.demand].Shape.Requests, t.pods), t.pods)
		free = free.Minus(c.demands[t.demand].Shape.Requests.Times(int64(n)))
		if n > 0 {
			fits.take = append(fits.take, portion{demand: t.demand, pods: n, chosen: t.chosen[:n:n]})
		}
		if n < t.pods {
			rest.take = append(rest.take, portion{demand: t.demand, pods: t.pods - n, chosen: t.chosen[n:]})
		}
	}
	return fits, rest
}

// divide divides the pods of a new node into two halves: the pods of each workload,
// then all of them.
func (c *dispersal) divide(b bin) (one, two bin) {
	type unit struct {
		demand, load int
		pod          model.Pod
	}
	var units []unit
	for _, t := range b.take {
		for _, p := range t.chosen {
			of := -1
			if i, ok := c.loadOf(c.standsFor(c.demands[t.demand], p)[0].pod); ok {
				of = i
			}
			units = append(units, unit{t.demand, of, p})
		}
	}
	slices.SortStableFunc(units, func(x, y unit) int { return cmp.Compare(y.load, x.load) })
	halves := [2]bin{b, b}
	for h := range halves {
		halves[h].take = nil
	}
	free := c.catalogue.Types[c.catalogue.Offers[b.offer].Type].Free
	var full [2]float64
	var pods [2]int // of the workload
	for i, u := range units {
		if i > 0 && units[i-1].load != u.load {
			pods = [2]int{}
		}
		h := 0
		if u.load >= 0 && pods[1] < pods[0] || (u.load < 0 || pods[0] == pods[1]) && full[1] < full[0] {
			h = 1
		}
		pods[h]++
		full[h] += part(c.demands[u.demand].Shape.Requests, free)
		take := &halves[h].take
		if j := slices.IndexFunc(*take, func(t portion) bool { return t.demand == u.demand }); j >= 0 {
			(*take)[j].pods++
			(*take)[j].chosen = append((*take)[j].chosen, u.pod)
		} else {
			*take = append(*take, portion{demand: u.demand, pods: 1, chosen: []model.Pod{u.pod}})
		}
	}
	return halves[0], halves[1]
}

// part returns the largest part of what is free of a resource that is requested.
func part(requests, free model.Resources) float64 {
	most := 0.0
	for r := range requests {
		if v := free.At(r); v > 0 {
			most = max(most, float64(requests[r])/float64(v))
		}
	}
	return most
}

// boughtAs returns the new node as one that is bought as the offer: in its zone, and
// as no type that costs less there. It reports false if its pool demands more types
// than that leaves.
func (c *dispersal) boughtAs(b bin, offer int) (bin, bool) {
	spans := c.spans(b)
	is := &c.catalogue.Offers[offer]
	b.offer, b.within, b.zone = offer, nil, is.Zone
	within := c.offersOf(b)
	requests := c.podRequests(b)
	for o := range within.All() {
		c.work--
		other := &c.catalogue.Offers[o]
		if other.Zone != is.Zone {
			within.Unset(o)
			continue
		}
		row := &c.catalogue.Types[other.Type]
		if other.Type != is.Type && (other.Price < is.Price || other.Price == is.Price && other.Type < is.Type) && requests.Fits(row.Free) {
			for j := row.Offers.From; j < row.Offers.To; j++ {
				within.Unset(j)
			}
		}
	}
	b.within = within
	if len(c.floors[c.poolOf(offer)]) == 0 { // else what is reserved is for all types it must list
		b.capacity = c.capacity(offer)
	}
	return b, !spans || c.spans(b)
}

// take buys new nodes in place of one. It reports false and changes nothing if the
// scheduler would then not put all pods where they are planned.
func (c *dispersal) take(w way) bool {
	b := c.bins[w.bin]
	before := c.mark()
	pool := c.poolOf(b.offer)
	c.limits.take(pool, b.capacity, -1)
	for _, n := range w.by {
		c.limits.take(pool, n.capacity, 1)
	}
	c.bins = slices.Clone(c.bins)
	c.bins[w.bin] = w.by[0]
	c.bins = append(c.bins, w.by[1:]...)
	if !c.stands() {
		c.rollback(before)
		c.stay[w.bin] = true
		return false
	}
	c.count(&b, c.stakes(&b), -1)
	for i := range w.by {
		c.count(&w.by[i], w.stakes[i], 1)
	}
	delete(c.ways, w.bin)
	if len(c.limits.pools[pool].resources) > 0 { // others may be bought as less or as more now
		clear(c.ways)
	}
	c.left -= w.more
	c.own[pool] -= w.more
	return true
}

// stands reports whether the scheduler would put all pods where they are planned.
func (c *dispersal) stands() bool {
	c.spend(16 * c.size())
	if !slices.ContainsFunc(c.demands, func(d *demand) bool { return !c.topology.Free(d.kind) }) {
		return true
	}
	c.spend(c.outlooks())
	moves, _ := c.recount()
	for i, n := range c.topology.Admit(moves) {
		if n < moves[i].Pods {
			return false
		}
	}
	return standsUnwished(c.draft)
}

// spend counts steps in the budget, and in what there is for this phase.
func (c *dispersal) spend(steps int) {
	c.work -= steps
	c.budget.Spend(steps)
}

// pin has new nodes with pods of workloads that were spread be bought where they are
// planned, and their types be such that they do not cost less in that zone.
func (c *dispersal) pin() {
	apart := map[int]bool{}
	for i := range c.bins {
		if c.bins[i].zone != "" {
			for _, l := range c.in(&c.bins[i]) {
				apart[l] = true
			}
		}
	}
	for i := range c.bins {
		b := &c.bins[i]
		if c.work > 0 && b.zone == "" && c.spot(b.offer) && slices.ContainsFunc(c.in(b), func(l int) bool { return apart[l] }) {
			before := *b
			pinned, ok := c.boughtAs(*b, b.offer)
			if !ok {
				continue
			}
			if *b = pinned; !c.stands() {
				*b = before
			}
		}
	}
}

// remaining returns the loads that exceed their share, with what spreading each would
// cost besides what was paid.
func (c *dispersal) remaining(paid model.Price) []model.Crowd {
	var out []model.Crowd
	var loads []int
	for at := range c.loads {
		l := &c.loads[at]
		var most spotPool
		for in, n := range l.in {
			over, least := n-c.most(l, in), l.in[most]-c.most(l, most)
			if over > 0 && (most == (spotPool{}) || over > least || over == least && in.before(most)) {
				most = in
			}
		}
		if most == (spotPool{}) {
			continue
		}
		w := model.Crowd{
			Pool: c.catalogue.Pools[most.pool].Name, In: most.name + " in " + most.zone,
			Share: float64(l.in[most]) / float64(l.total), Most: c.maxSpotPoolShare(most.pool),
		}
		if l.workload != "" {
			w.Workload = l.namespace + "/" + l.workload
		}
		out, loads = append(out, w), append(loads, at)
	}
	before := c.mark()
	for i, at := range loads[:min(len(loads), pricedCrowds)] {
		d := c.alone(at)
		if d.spread() {
			more := max(c.priceOfBins()-paid, 0)
			out[i].Cost = &more
			c.rollback(before)
		}
	}
	return out
}

// alone returns the dispersal that spreads one load, whatever it costs.
func (c *dispersal) alone(load int) *dispersal {
	d := *c
	d.loads = slices.Clone(c.loads)
	for i := range d.loads {
		d.loads[i].in = maps.Clone(c.loads[i].in)
	}
	d.only, d.left, d.work = load, math.MaxInt64, disperseWork/pricedCrowds
	d.own = slices.Repeat([]model.Price{math.MaxInt64}, len(c.own))
	d.stay, d.ways = map[int]bool{}, maps.Clone(c.ways)
	return &d
}

func (p spotPool) before(o spotPool) bool {
	return cmp.Or(cmp.Compare(p.pool, o.pool), cmp.Compare(p.name, o.name), cmp.Compare(p.zone, o.zone)) < 0
}

// mostCounted is up to how many nodes it is asked whether a command crowds a workload.
const mostCounted = 256

// crowds reports whether without some nodes more of a workload or of a pool would be
// in one spot pool than with them, and more than it should.
func crowds(x *draft) bool {
	if len(x.snapshot.Nodes) > mostCounted {
		return false
	}
	c := newDispersal(x)
	for i := range x.placed {
		c.loadOf(x.placed[i].pod)
	}
	total := func() (sum float64) {
		for i := range c.loads {
			sum += c.excess(i)
		}
		return sum
	}
	c.clear()
	c.countAll()
	after := total()
	if after == 0 {
		return false
	}
	c.clear()
	c.countNodes(true)
	return after > total()+1e-9
}

// clear forgets what was counted.
func (c *dispersal) clear() {
	for i := range c.loads {
		c.loads[i].total, c.loads[i].in = 0, map[spotPool]int64{}
	}
}
