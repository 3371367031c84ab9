// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"cmp"
	"math"
	"slices"
)

// greedy covers lines node by node, for the patterns that this shows. It begins with
// the pods that cost most, while there are small ones to fill up nodes with, and fills a
// node so that what is left of its resources stays in balance. The values follow the pods
// that are left: otherwise those that go well together would be used up first.
type greedy struct {
	*pricer
	ascent   *ascent
	live     []choice // lines of which a pod may fit
	found    []find
	byRatio  bool // it takes the node that is worth most for its price, whatever pods that has
	offers   []offer
	neediest float64           // how many nodes the pods of a line take at least, at most
	sorted   map[int][]density // by candidate: what densest found since the values last changed
}

// Bounds of the greedy cover.
const (
	greedyShare = 0.5  // of the budget that is left
	followAt    = 0.3  // the values follow once so much of what the pods left are worth is spent
	followSteps = 6    // of the ascent
	softFollow  = 0.02 // how soft the first of these is
	tooDear     = 0.05 // excess over the least price of a pod, as a fraction of it, from which on a candidate is not tried
	tried       = 4    // candidates for a pod
	favour      = 0.1  // how much more a pod of the neediest line is worth
	putAtOnce   = 8    // of the pods of a line that fit, one in so many is put on the node before others are looked at
	enoughLines = 128  // that a node is filled with
	alikeAt     = 0.9  // of what is worth most for what it requests; more is about as much
	knownPerRow = 4    // patterns per row that are made known: more take the program longer than they help
	nearlyOut   = 1e-3 // of a resource, as a fraction of the room; less makes it no scarcer
)

// find is a pattern, with the number of its nodes in the greedy cover.
type find struct {
	pattern
	count int
}

// cover covers all lines, or as many as the budget allows.
func (g *greedy) cover() {
	for spent := math.Inf(1); !g.budget.Spent(); {
		if spent > followAt*g.total() {
			g.follow()
			spent = 0
		}
		line := g.costliest()
		if line < 0 {
			return
		}
		var p pattern
		if g.byRatio {
			p = g.bestOfAll()
		} else {
			p = g.bestFor(line)
		}
		if p.candidate < 0 {
			g.count[line] = 0 // nothing can be launched for it
			continue
		}
		count := math.MaxInt
		for _, t := range p.take {
			count = min(count, g.count[t.Item]/t.Pods)
		}
		if !g.byRatio {
			count = (count + 1) / 2 // then others may go better with the rest
		}
		for _, t := range p.take {
			g.count[t.Item] -= t.Pods * count
		}
		g.found = append(g.found, find{p, count})
		spent += g.priceOf(g.found[len(g.found)-1])
	}
}

// priceOf returns what the nodes of a pattern cost.
func (p *pricer) priceOf(f find) float64 {
	return float64(f.count) * p.Candidates[f.candidate].Price
}

// follow brings the values up to date with the pods that are left.
func (g *greedy) follow() {
	g.ascent.climb(followSteps, softFollow, softLast)
	g.ascent.setShadows()
	copy(g.values, g.ascent.best)
	g.ascent.cost()
	g.sorted = map[int][]density{}
}

// costliest returns the line of the pods that cost most, of those left; -1 = none are.
func (g *greedy) costliest() int {
	line := -1
	g.neediest = 0
	for l, n := range g.count {
		if n > 0 && (line < 0 || g.values[l] > g.values[line]) {
			line = l
		}
		g.neediest = max(g.neediest, g.need(l))
	}
	g.budget.Spend(2 * len(g.count))
	return line
}

// need is how many nodes the pods of a line take at least, if there is a bound for one.
func (g *greedy) need(line int) float64 {
	l := &g.lines[line]
	if l.most == 0 {
		return 0
	}
	return float64(g.count[line]) / float64(l.most)
}

// bestFor returns the pattern with a pod of the line that is worth most for its price, of
// the candidates on which the pod costs least.
func (g *greedy) bestFor(line int) pattern {
	g.offers = g.offers[:0]
	at := 0
	for _, c := range g.ascent.among {
		prices := g.ascent.price[at : at+len(g.serves[c])]
		at += len(prices)
		if i, ok := slices.BinarySearch(g.serves[c], line); ok && prices[i] <= g.ascent.least[line]*(1+tooDear) && g.allow(c, 1) > 0 {
			g.offers = append(g.offers, offer{c, prices[i]})
		}
	}
	g.budget.Spend(16 * len(g.ascent.among))
	slices.SortStableFunc(g.offers, func(a, b offer) int { return cmp.Compare(a.price, b.price) })
	best, most := pattern{candidate: -1}, -1.0
	for _, o := range g.offers[:min(len(g.offers), tried)] {
		take := g.fillFrom(o.candidate, line)
		if score := g.worth(take) / max(g.Candidates[o.candidate].Price, 1e-300); score > most {
			best, most = pattern{o.candidate, slices.Clone(take)}, score
		}
	}
	return best
}

// bestOfAll returns the pattern that is worth most for its price.
func (g *greedy) bestOfAll() pattern {
	best, most := pattern{candidate: -1}, 0.0
	for _, c := range g.ascent.among {
		if g.allow(c, 1) == 0 {
			continue
		}
		take := g.fillFrom(c, anyLine)
		if score := g.worth(take) / max(g.Candidates[c].Price, 1e-300); score > most {
			best, most = pattern{c, slices.Clone(take)}, score
		}
	}
	return best
}

// offer is a candidate and what a pod costs on it.
type offer struct {
	candidate int
	price     float64
}

// anyLine stands for no line in particular.
const anyLine = -1

// fillFrom returns what a node of candidate c takes that has a pod of the line. The
// less is left of a resource, the more it costs. The result is good until it is called again.
func (g *greedy) fillFrom(c, line int) []Portion {
	copy(g.free, g.room[c])
	g.take = g.take[:0]
	g.choose(c)
	n := 1
	if line == anyLine {
		line, n = g.next(c)
	}
	for n > 0 {
		g.put(line, (n+putAtOnce-1)/putAtOnce)
		g.reprice(c)
		line, n = g.next(c)
	}
	return g.take
}

// choose finds the lines that a node of candidate c is filled with: those of which a pod
// is worth most for what it requests. Of many that are worth about as much, some are enough.
func (g *greedy) choose(c int) {
	g.reprice(c)
	items := g.densest(c)
	g.dense, g.live = items, g.live[:0]
	alike := 0
	for alike < len(items) && items[alike].value >= alikeAt*items[0].value {
		alike++
	}
	step := max(1, (alike+enoughLines-1)/enoughLines)
	for at := 0; at < len(items) && len(g.live) < enoughLines; at += step {
		i := items[at].line
		l := g.serves[c][i]
		g.live = append(g.live, choice{l, min(g.fits[c][i], g.count[l])})
	}
}

// densest returns the lines with pods left that candidate c serves, those first of which a
// pod is worth most for what it requests when the node is empty. The result is good until it
// is called again.
func (g *greedy) densest(c int) []density {
	all, known := g.sorted[c]
	if !known {
		for i, l := range g.serves[c] {
			if g.count[l] > 0 && g.values[l] > 0 {
				all = append(all, density{i, g.values[l] / g.load(l)})
			}
		}
		g.budget.Spend(len(all) * (g.dims + 16))
		slices.SortFunc(all, byValue)
		g.sorted[c] = all
	}
	items := g.dense[:0]
	for _, it := range all {
		if g.count[g.serves[c][it.line]] > 0 {
			items = append(items, it)
		}
	}
	g.budget.Spend(2 * len(all))
	return items
}

// load is what a pod of the line requests, at the prices of resources.
func (g *greedy) load(line int) float64 {
	load := 1e-300
	for d, w := range g.lines[line].weight {
		load += g.price[d] * w
	}
	return load
}

// put puts pods of the line on the node.
func (g *greedy) put(line, pods int) {
	for d, v := range g.lines[line].request {
		g.free[d] -= v * int64(pods)
	}
	if at := slices.IndexFunc(g.take, func(t Portion) bool { return t.Item == line }); at >= 0 {
		g.take[at].Pods += pods
	} else {
		g.take = append(g.take, Portion{line, pods})
	}
	if at := slices.IndexFunc(g.live, func(ch choice) bool { return ch.line == line }); at >= 0 {
		g.live[at].most -= pods
	}
}

// reprice sets the prices of resources to what is left of them.
func (g *greedy) reprice(c int) {
	most := 0.0
	for d, v := range g.shadow[c] {
		if room := float64(g.room[c][d]); room > 0 {
			v *= room / max(float64(g.free[d]), nearlyOut*room)
		}
		g.price[d], most = v, max(most, v)
	}
	for d := range g.price {
		g.price[d] += 1e-6 * most // what costs nothing still breaks ties
	}
}

// next returns the line whose pods are worth most for what they request, and how many
// more fit; none when the node is full.
func (g *greedy) next(c int) (line, pods int) {
	most, live := 0.0, g.live[:0]
	for _, ch := range g.live {
		l := &g.lines[ch.line]
		fit := min(whole(g.free, l.request), ch.most)
		if fit == 0 {
			continue
		}
		live = append(live, ch)
		value := g.values[ch.line]
		if l.most > 0 {
			value *= 1 + favour*g.need(ch.line)/g.neediest
		}
		if load := g.load(ch.line); value > most*load && g.compatible(c, g.take, ch.line) {
			line, pods, most = ch.line, fit, value/load
		}
	}
	g.budget.Spend(len(g.live) * (g.dims + 8))
	g.live = live
	return line, pods
}
