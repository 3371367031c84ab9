// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"karpenter/model"
)

// Bounds of what is looked at.
const (
	disperseWork = 1 << 20 // offers for one plan
	spotQuotes   = 3       // offers of each zone that a new node is considered for, cheapest first
)

// spotPool is an instance type in a zone, for the nodes of a pool.
type spotPool struct {
	pool       int
	name, zone string
}

// spotPools numbers spot pools.
type spotPools struct {
	all  []spotPool
	at   map[spotPool]int
	sold map[int]int // by offer
}

// add returns the number of a spot pool, a new one if it has none yet.
func (s *spotPools) add(p spotPool) int {
	i, ok := s.at[p]
	if !ok {
		i = len(s.all)
		s.at[p], s.all = i, append(s.all, p)
	}
	return i
}

// load is how much of a workload, in pods, or of a pool, in millicores, is in
// which spot pools.
type load struct {
	namespace, workload string // "" = it is a pool
	pool                int
	total               int64
	in                  map[int]int64
}

// What the pods of a demand are part of, if not of one load.
const (
	ofNone    = -1 // of no load
	ofSeveral = -2
)

// dispersal counts what is in which spot pools, and changes new nodes.
type dispersal struct {
	repair
	loads  []load
	byName map[[2]string]int // workloads
	spots  *spotPools
	shared []int // by demand: the load that all its pods are part of, ofNone or ofSeveral
	byPool map[int]int
	pools  map[string]int // of the catalogue
	only   int            // load that is spread; -1 = all
	left   model.Price    // that may be spent
	own    []model.Price  // by pool, of those with an allowance of their own
	stay   map[int]bool   // bins that are not changed, as rules between pods hold them
	ways   map[int][]*way // by bin: how it could be changed
	offers map[int]*quoted
	quoted map[string][]int
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

// spot reports whether the offer is a spot offering.
func (q *problem) spot(offer int) bool { return q.catalogue.Offers[offer].CapacityType == model.Spot }

// spotPoolOf returns the spot pool of the offer.
func (c *dispersal) spotPoolOf(offer int) int {
	i, ok := c.spots.sold[offer]
	if !ok {
		o := &c.catalogue.Offers[offer]
		i = c.spots.add(spotPool{c.poolOf(offer), c.catalogue.Types[o.Type].Name, o.Zone})
		c.spots.sold[offer] = i
	}
	return i
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
		spots: &spotPools{at: map[spotPool]int{}, sold: map[int]int{}},
		stay:  map[int]bool{}, ways: map[int][]*way{}, offers: map[int]*quoted{}, quoted: map[string][]int{}, work: disperseWork,
	}
	x.unroll()
	c.shared = slices.Repeat([]int{ofSeveral}, len(x.demands))
	for i := range x.catalogue.Pools {
		c.pools[x.catalogue.Pools[i].Name] = i
		_, allowance := x.aims(x.catalogue.Pools[i].Pool)
		c.left, c.own = max(c.left, allowance), append(c.own, allowance)
	}
	seen := make([]bool, len(x.demands))
	for i := range x.bins {
		for _, t := range x.bins[i].take {
			if !seen[t.demand] {
				seen[t.demand] = true
				c.shared[t.demand] = c.loadOfAll(x.demands[t.demand])
			}
			if c.shared[t.demand] == ofSeveral {
				for p := range c.podsOf(t) {
					c.loadOf(p)
				}
			}
		}
		pool := x.poolOf(x.bins[i].offer)
		if _, known := c.byPool[pool]; !known && x.catalogue.Pools[pool].Aims.MaxSpotPoolShare != nil {
			c.byPool[pool] = len(c.loads)
			c.loads = append(c.loads, load{pool: pool, in: map[int]int64{}})
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

// podsOf yields the pods of a portion, those of bundles each.
func (c *dispersal) podsOf(t portion) iter.Seq[*model.Pod] {
	return func(yield func(*model.Pod) bool) {
		for i := range t.chosen {
			if len(c.bundles) == 0 {
				if !yield(&t.chosen[i]) {
					return
				}
				continue
			}
			for _, one := range c.standsFor(c.demands[t.demand], t.chosen[i]) {
				if !yield(&one.pod) {
					return
				}
			}
		}
	}
}

// loadOf returns the load that the pod is part of, a new one if there is none yet.
func (c *dispersal) loadOf(p *model.Pod) (int, bool) {
	if p.Workload == "" || p.Buffer != "" {
		return 0, false
	}
	name := [2]string{p.Namespace, p.Workload}
	i, ok := c.byName[name]
	if !ok {
		i = len(c.loads)
		c.byName[name] = i
		c.loads = append(c.loads, load{namespace: p.Namespace, workload: p.Workload, in: map[int]int64{}})
	}
	return i, true
}

// loadOfAll returns the load that all pods of d are part of, ofNone or ofSeveral.
func (c *dispersal) loadOfAll(d *demand) int {
	if d.bundle != nil || len(d.Pods) == 0 {
		return ofSeveral
	}
	first := &d.Pods[0]
	for i := range d.Pods {
		if p := &d.Pods[i]; p.Workload != first.Workload || p.Namespace != first.Namespace || (p.Buffer == "") != (first.Buffer == "") {
			return ofSeveral
		}
	}
	if l, ok := c.loadOf(first); ok {
		return l
	}
	return ofNone
}

// countNodes counts what runs on the nodes that stay, or on all.
func (c *dispersal) countNodes(all bool) {
	for i := range c.snapshot.Nodes {
		n := &c.snapshot.Nodes[i]
		if !all && c.departs(i) {
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
	for i := range c.arrivals {
		if n := &c.snapshot.Nodes[c.arrivals[i].Site]; !n.Deleting {
			c.add(n, &c.arrivals[i].Pod)
		}
	}
}

// add counts a pod on a node, if it is part of a load.
func (c *dispersal) add(n *model.Node, p *model.Pod) {
	if i, ok := c.byName[[2]string{p.Namespace, p.Workload}]; ok && p.Buffer == "" {
		c.put(i, c.nodeIn(n), 1)
	}
}

// elsewhere is where what is in no spot pool is.
const elsewhere = -1

// nodeIn returns the spot pool that a node is of; elsewhere = it is no spot node, or no nodes
// can be launched of its pool. A node that may still become several counts as one of its own.
func (c *dispersal) nodeIn(n *model.Node) int {
	if ct, _ := n.Labels.Value(model.LabelCapacityType); ct != model.Spot {
		return elsewhere
	}
	pool, ok := c.pools[n.Pool]
	if !ok {
		return elsewhere
	}
	name, known := n.Labels.Value(model.LabelInstanceType)
	zone, settled := n.Labels.Value(model.LabelZone)
	if !known || !settled {
		name = n.Name
	}
	return c.spots.add(spotPool{pool, name, zone})
}

// put has so much more of a load be in the spot pool, or elsewhere.
func (c *dispersal) put(at, in int, n int64) {
	l := &c.loads[at]
	l.total += n
	if in != elsewhere {
		l.in[in] += n
	}
}

// count counts a new node so often.
func (c *dispersal) count(b *bin, stakes []stake, sign int64) {
	in := elsewhere
	if c.spot(b.offer) {
		in = c.spotPoolOf(b.offer)
	}
	for _, s := range stakes {
		c.put(s.load, in, sign*s.n)
	}
}

// stakes returns how much of which loads a new node is.
func (c *dispersal) stakes(b *bin) []stake {
	out := make([]stake, 0, len(b.take)+1)
	add := func(load, n int) {
		at := slices.IndexFunc(out, func(s stake) bool { return s.load == load })
		if at < 0 {
			at, out = len(out), append(out, stake{load: load})
		}
		out[at].n += int64(n)
	}
	for _, t := range b.take {
		switch load := c.shared[t.demand]; load {
		case ofNone:
		case ofSeveral:
			for p := range c.podsOf(t) {
				if i, ok := c.loadOf(p); ok {
					add(i, 1)
				}
			}
		default:
			add(load, t.pods)
		}
	}
	if i, ok := c.byPool[c.poolOf(b.offer)]; ok {
		out = append(out, stake{i, c.capacity(b.offer).At(model.CPU)})
	}
	return out
}

// most returns how much of the load is to be in one spot pool at most. A share of pods
// is rounded up.
func (c *dispersal) most(l *load, in int) int64 {
	share := c.maxSpotPoolShare(c.spots.all[in].pool)
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

// way is new nodes that could be launched in place of one.
type way struct {
	bin    int
	by     []bin
	stakes [][]stake // by node
	fills  []refill  // other new nodes that take some of its pods
	more   model.Price
	less   float64 // excess
	state  wayState
}

// wayState says what is known of a way.
type wayState int8

const (
	rough    wayState = iota // what its nodes are launched as is not settled
	finished                 // it is
	refused                  // their pool does not allow them
)

// refill is a new node that takes pods of another one.
type refill struct {
	bin           int
	as            bin // with these pods
	before, after []stake
}

// before orders ways by what they cost for what they achieve, then by how many nodes
// they take.
func (w *way) before(o *way) int {
	return cmp.Or(cmp.Compare(float64(w.more)/w.less, float64(o.more)/o.less), cmp.Compare(len(w.by), len(o.by)))
}

// quotes returns the spot offers that a node with the pods of b could be launched as,
// a few of each zone, cheapest first. Where no limits count, they are the same for
// every node with so many pods of the same demands.
func (c *dispersal) quotes(b bin) []int {
	pool := c.poolOf(b.offer)
	if len(c.floors[pool])+len(c.limits.pools[pool].resources) > 0 {
		return c.quotesFor(b)
	}
	key := binary.AppendUvarint([]byte(c.reservation(b.offer)), uint64(pool))
	if b.onDemand {
		key = append(key, 1)
	}
	for _, t := range b.take {
		key = binary.AppendUvarint(key, uint64(t.demand))
		key = binary.AppendUvarint(key, uint64(t.pods))
		key = binary.AppendUvarint(key, uint64(c.demands[t.demand].Under(b.offer)))
	}
	out, known := c.quoted[string(key)]
	if !known {
		out = c.quotesFor(b)
		c.quoted[string(key)] = out
	}
	return out
}

// quotesFor works out quotes.
func (c *dispersal) quotesFor(b bin) []int {
	b.within, b.zone = nil, ""
	pool, requests := c.poolOf(b.offer), c.podRequests(b)
	offers, cheapest := c.offersOf(b), c.cheapest(pool)
	var out []int
	zones, full, looks := map[string]int{}, 0, 0
	for _, o := range cheapest.offers {
		looks++
		is := &c.catalogue.Offers[o]
		row := &c.catalogue.Types[is.Type]
		if !offers.Has(o) || zones[is.Zone] == spotQuotes || !requests.Fits(row.Free) || !c.mayBecome(pool, &b, row.Capacity) || !c.supplied(row, b.take) {
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

// way returns the way to have nodes with these pods, launched as the offers, in place
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

// spend counts steps in the budget, and in what there is for this phase.
func (c *dispersal) spend(steps int) {
	c.work -= steps
	c.budget.Spend(steps)
}

func (p spotPool) before(o spotPool) bool {
	return cmp.Or(cmp.Compare(p.pool, o.pool), cmp.Compare(p.name, o.name), cmp.Compare(p.zone, o.zone)) < 0
}

// clear forgets what was counted.
func (c *dispersal) clear() {
	for i := range c.loads {
		c.loads[i].total, c.loads[i].in = 0, map[int]int64{}
	}
}
