package pack

import (
	"cmp"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// More demands than mostRows make too large a program. Then those that are
// bound alike and of similar size are planned together as blocks, of which
// there are at most mostBlocks or so. Where the demands have many pods each,
// rows are worth more than they cost; where they have few, less.
const (
	mostRows   = 450
	someRows   = 200 // of less than manyPods each
	fewRows    = 80  // of less than fewPods each
	manyPods   = 40
	fewPods    = 4
	mostBlocks = 128
)

// tooMany reports whether so many demands are to be planned as blocks.
func tooMany(open []*demand) bool {
	pods := 0
	for _, d := range open {
		pods += len(d.left)
	}
	n := len(open)
	return n > mostRows || n > someRows && pods < manyPods*n || n > fewRows && pods < fewPods*n
}

// newBlock returns a demand that stands for the members: it requests what they
// do on average or, with floor, what all of them do at least. The members are
// put in order of size.
func (k *Packer) newBlock(members []*demand, unit []float64, floor bool) *demand {
	sum, least, pods := model.Resources(nil), members[0].Shape.Requests, int64(0)
	for _, d := range members {
		n := int64(len(d.left))
		sum, pods = sum.Plus(d.Shape.Requests.Times(n)), pods+n
		least = least.Min(d.Shape.Requests)
	}
	for i := range sum {
		sum[i] = (sum[i] + pods - 1) / pods
	}
	if floor {
		sum = least
	}
	size := func(d *demand) float64 {
		out := 0.0
		for i, r := range k.wanted {
			out += float64(d.Shape.Requests.At(r)) / unit[i]
		}
		return out
	}
	slices.SortStableFunc(members, func(a, b *demand) int { return cmp.Compare(size(a), size(b)) })
	shape := *members[0].Shape
	shape.Requests = sum
	like := *members[0].Demand
	like.Shape = &shape
	return &demand{Demand: &like, kind: members[0].kind, index: members[0].index, class: members[0].class, members: members}
}

// block reports whether d stands for others.
func (d *demand) block() bool { return d.members != nil }

// open returns how many pods of d have no place yet.
func (d *demand) open() int {
	if !d.block() {
		return len(d.left)
	}
	n := 0
	for _, m := range d.members {
		n += len(m.left)
	}
	return n
}

// blocks returns demands to plan with: those given, or blocks of them where
// they are too many.
func (k *Packer) blocks(open []*demand, floor bool) []*demand {
	if !tooMany(open) {
		return open
	}
	var out []*demand
	var alike [][]*demand
	byKey := map[string]int{}
	for _, d := range open {
		if d.most > 0 || d.apart != nil || slices.ContainsFunc(k.groups, func(g group) bool { return g.members.Has(d.index) }) {
			out = append(out, d)
			continue
		}
		key := d.Constraints()
		i, ok := byKey[key]
		if !ok {
			i = len(alike)
			byKey[key], alike = i, append(alike, nil)
		}
		alike[i] = append(alike[i], d)
	}
	unit := k.units(open)
	for _, members := range k.split(alike, unit) {
		if len(members) == 1 {
			out = append(out, members[0])
		} else {
			out = append(out, k.newBlock(members, unit, floor))
		}
	}
	return out
}

// units returns the mean request of each wanted resource.
func (k *Packer) units(demands []*demand) []float64 {
	out := make([]float64, len(k.wanted))
	for i, r := range k.wanted {
		for _, d := range demands {
			out[i] += float64(d.Shape.Requests.At(r))
		}
		out[i] = max(out[i]/float64(len(demands)), 1)
	}
	return out
}

// split divides the sets that are widest and hold most, in the middle of what
// they differ in most, until there are enough of them.
func (k *Packer) split(sets [][]*demand, unit []float64) [][]*demand {
	type width struct {
		weight   float64
		resource int
	}
	measure := func(set []*demand) (most width) {
		for i, r := range k.wanted {
			least, largest := math.Inf(1), 0.0
			for _, d := range set {
				v := float64(d.Shape.Requests.At(r)) + unit[i]/100
				least, largest = min(least, v), max(largest, v)
			}
			if w := math.Log(largest/least) * float64(len(set)); w > most.weight {
				most = width{w, r}
			}
		}
		return most
	}
	widths := make([]width, len(sets))
	for i := range sets {
		widths[i] = measure(sets[i])
	}
	for len(sets) > 0 && len(sets) < mostBlocks {
		widest := 0
		for i := range widths {
			if widths[i].weight > widths[widest].weight {
				widest = i
			}
		}
		if widths[widest].weight == 0 {
			break
		}
		set, r := sets[widest], widths[widest].resource
		slices.SortStableFunc(set, func(a, b *demand) int { return cmp.Compare(a.Shape.Requests.At(r), b.Shape.Requests.At(r)) })
		half := len(set) / 2
		sets[widest] = set[:half:half]
		sets = append(sets, set[half:])
		widths[widest] = measure(sets[widest])
		widths = append(widths, measure(sets[len(sets)-1]))
	}
	return sets
}

// commitMixed plans one node of the pattern with pods of blocks: as many of
// each as the pattern says, large and small in turn so that they come out at
// the average, and then whatever fits in what is left.
func (k *Packer) commitMixed(m *market, p pattern) bool {
	c := &m.candidates[p.candidate]
	if k.limits.allow(c.pool, c.capacity, 1) == 0 {
		return false
	}
	node := &loader{market: m, free: slices.Clone(c.room)}
	for _, t := range p.take {
		node.load(m.demands[t.demand], t.pods)
	}
	if len(node.take) == 0 {
		return false
	}
	for _, row := range m.rows[p.candidate] {
		if k.joins(m, p, row) {
			node.topUp(m.demands[row])
		}
	}
	k.limits.take(c.pool, c.capacity, 1)
	k.bins = append(k.bins, bin{offer: c.offer, count: 1, take: node.take, capacity: c.capacity})
	return true
}

// commitFirst buys the cheapest node for the first pod of the market.
func (k *Packer) commitFirst(m *market) {
	i := slices.IndexFunc(m.demands, func(d *demand) bool { return d.open() > 0 })
	d := m.demands[i]
	if d.block() {
		d = d.members[len(d.members)-1]
	}
	at := slices.IndexFunc(m.candidates, func(c candidate) bool { return c.canTake(d) && !k.unaffordable(c) })
	if at < 0 {
		return
	}
	c := &m.candidates[at]
	k.limits.take(c.pool, c.capacity, 1)
	k.bins = append(k.bins, bin{
		offer: c.offer, count: 1, take: []portion{{demand: d.index, pods: 1, chosen: d.left[:1:1]}}, capacity: c.capacity,
	})
	d.left = d.left[1:]
	m.demands[i].prune()
}

// joins reports whether pods of the row may be added to a node of the pattern.
func (k *Packer) joins(m *market, p pattern, row int) bool {
	d := m.demands[row]
	if d.most > 0 || d.apart != nil || len(m.groups) > 0 || d.open() == 0 {
		return false
	}
	return !k.picky[m.candidates[p.candidate].pool] || m.shares(p.candidate, append(slices.Clone(p.take), portion{demand: row, pods: 1}))
}

// loader fills one node.
type loader struct {
	*market
	free []int64 // of the wanted resources
	take []portion
}

// load puts up to n pods of a demand or block on the node.
func (l *loader) load(d *demand, n int) {
	if !d.block() {
		l.put(d, min(n, len(d.left)))
		return
	}
	low, high := 0, len(d.members)-1
	for large := true; n > 0 && low <= high; {
		i := low
		if large {
			i = high
		}
		put := l.put(d.members[i], 1)
		switch {
		case put > 0 && len(d.members[i].left) > 0:
		case large:
			high--
		default:
			low++
		}
		if put > 0 {
			n, large = n-1, !large
		}
	}
	d.prune()
}

// prune drops the members that have no pods left.
func (d *demand) prune() {
	d.members = slices.DeleteFunc(d.members, func(m *demand) bool { return len(m.left) == 0 })
}

// topUpTries is how many members of a block topUp looks at that do not fit.
const topUpTries = 4

// topUp adds pods of a block, largest first, as long as some fit.
func (l *loader) topUp(d *demand) {
	if !d.block() {
		l.put(d, len(d.left))
		return
	}
	for i, misses := len(d.members)-1, 0; i >= 0 && misses < topUpTries; i -= 1 + misses*len(d.members)/8 {
		if l.put(d.members[i], len(d.members[i].left)) == 0 {
			misses++
		}
	}
	d.prune()
}

// put puts up to n pods of a demand on the node and returns how many fit.
func (l *loader) put(d *demand, n int) int {
	for i, r := range l.resources {
		if v := d.Shape.Requests.At(r); v > 0 {
			n = min(n, int(max(l.free[i], 0)/v))
		}
	}
	if n <= 0 {
		return 0
	}
	for i, r := range l.resources {
		l.free[i] -= d.Shape.Requests.At(r) * int64(n)
	}
	l.take = append(l.take, portion{demand: d.index, pods: n, chosen: d.left[:n:n]})
	d.left = d.left[n:]
	return n
}

// proveBlocks proves for a market of blocks what one of smaller blocks shows:
// were every pod of a block as small as its smallest, no plan would be dearer.
func (k *Packer) proveBlocks(m *market, tier fit.Range) {
	var open []*demand
	for _, d := range m.demands {
		if d.block() {
			open = append(open, d.members...)
		} else {
			open = append(open, d)
		}
	}
	small := k.newMarket(m.candidates, k.blocks(open, true))
	small.shares = func(c int, take []portion) bool { return k.agree(small, c, take) }
	small.budget = k.policy.Work
	if !small.restart() {
		return
	}
	small.optimise(math.MaxInt)
	small.settle(4)
	k.prove(small, tier)
}
