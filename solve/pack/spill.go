// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"math"
	"slices"

	"karpenter/model"
)

// spillParts is into how many parts the pods are divided that are too many for a spot
// pool: a way to change a node moves one, two, three or all of them to a new node.
const spillParts = 4

// spills returns the ways to keep the node, but without pods of a workload of which
// too many are in its spot pool: they go to other new nodes that have capacity or, if
// none has, to one more node.
func (c *dispersal) spills(i int) []*way {
	b := c.bins[i]
	in := c.spotPoolOf(b.offer)
	var out []*way
	for _, l := range c.in(&b) {
		over := c.loads[l].in[in] - c.most(&c.loads[l], in)
		if c.loads[l].workload == "" || over <= 0 {
			continue
		}
		if w, ok := c.refills(i, l, int(over)); ok {
			out = append(out, w)
			continue
		}
		last := 0
		for part := 1; part <= spillParts; part++ {
			n := (int(over)*part + spillParts - 1) / spillParts
			if n == last {
				continue
			}
			last = n
			if kept, gone := c.without(b, l, n); len(kept.take) > 0 && len(gone.take) > 0 {
				out = append(out, c.beside(i, kept, gone)...)
			}
		}
	}
	return out
}

// without divides the pods of a new node into those that stay, and up to n of a load
// that may go.
func (c *dispersal) without(b bin, l, n int) (kept, gone bin) {
	kept, gone = b, b
	kept.take, gone.take = nil, nil
	for _, t := range b.take {
		stay, move := portion{demand: t.demand}, portion{demand: t.demand}
		if of := c.shared[t.demand]; of != ofSeveral {
			if of == l && c.moves(t.demand) {
				move.pods = min(n, t.pods)
			}
			stay.pods = t.pods - move.pods
			move.chosen, stay.chosen = t.chosen[:move.pods:move.pods], t.chosen[move.pods:]
			t.chosen = nil
		}
		for i, p := range t.chosen {
			to := &stay
			if of, ok := c.loadOf(&t.chosen[i]); ok && of == l && move.pods < n && c.moves(t.demand) {
				to = &move
			}
			to.pods, to.chosen = to.pods+1, append(to.chosen, p)
		}
		n -= move.pods
		if stay.pods > 0 {
			kept.take = append(kept.take, stay)
		}
		if move.pods > 0 {
			gone.take = append(gone.take, move)
		}
	}
	return kept, gone
}

// moves reports whether single pods of the demand may go to another node.
func (c *dispersal) moves(demand int) bool {
	d := c.demands[demand]
	return d.bundle == nil && len(d.Shape.HostPorts)+len(d.Shape.Volumes) == 0
}

// beside returns the ways to launch one more node for the pods that go: the cheapest
// in each of two spot pools that are not that of the node.
func (c *dispersal) beside(i int, kept, gone bin) []*way {
	var out []*way
	offer := c.bins[i].offer
	var used []int
	for _, o := range c.quotes(gone) {
		if p := c.spotPoolOf(o); p != c.spotPoolOf(offer) && !slices.Contains(used, p) && len(used) < 2 {
			used = append(used, p)
			out = append(out, c.way(i, []bin{kept, gone}, []int{offer, o}))
		}
	}
	return out
}

// refills returns the way to plan up to n pods of the load on new nodes of other spot
// pools that have capacity. It reports false if there is none.
func (c *dispersal) refills(i, l, n int) (*way, bool) {
	b := c.bins[i]
	kept, gone := c.without(b, l, n)
	var fills []refill
	for j := range c.bins {
		if to := c.bins[j]; j != i && !c.stay[j] && c.spotPoolOf(to.offer) != c.spotPoolOf(b.offer) {
			c.spend(1 + len(to.take))
			if as, took := c.joined(to, &gone, c.spare(l, to.offer)); took > 0 {
				fills = append(fills, refill{j, as, c.stakes(&to), c.stakes(&as)})
			}
		}
	}
	for _, t := range gone.take {
		kept = c.plus(kept, t.demand, t.chosen)
	}
	if len(fills) == 0 || len(kept.take) == 0 {
		return nil, false
	}
	w := c.way(i, []bin{kept}, []int{b.offer})
	w.fills = fills
	return w, true
}

// spare returns how many more pods of the load may be on nodes of the offer.
func (c *dispersal) spare(l, offer int) int64 {
	if !c.spot(offer) {
		return c.loads[l].total
	}
	in := c.spotPoolOf(offer)
	return c.most(&c.loads[l], in) - c.loads[l].in[in]
}

// joined returns the new node with pods of gone, as many as it has capacity for and at
// most so many, and takes them from gone.
func (c *dispersal) joined(to bin, gone *bin, most int64) (bin, int) {
	row := &c.catalogue.Types[c.catalogue.Offers[to.offer].Type]
	took := 0
	for t := len(gone.take) - 1; t >= 0 && int64(took) < most; t-- {
		from := gone.take[t]
		d := c.demands[from.demand]
		if !d.Offers.Has(to.offer) || slices.ContainsFunc(to.take, func(t portion) bool { return conflict(d, c.demands[t.demand]) }) {
			continue
		}
		fits := min(from.pods, int(min(most-int64(took), math.MaxInt32)))
		for fits > 0 && !c.fitBeside(d.Shape.Requests.Times(int64(fits)), &to, row.Free) {
			fits--
		}
		for ; fits > 0; fits-- {
			next := c.plus(to, from.demand, from.chosen[from.pods-fits:])
			if c.supplied(row, next.take) && c.catalogue.Meets(to.offer, c.askedOf(next)) && !c.spoils(to, d, to.offer) {
				to, took, from.pods = next, took+fits, from.pods-fits
				break
			}
		}
		if from.chosen = from.chosen[:from.pods:from.pods]; from.pods == 0 {
			gone.take = slices.Delete(gone.take, t, t+1)
		} else {
			gone.take[t] = from
		}
	}
	return to, took
}

// plus returns the new node with more pods of a demand.
func (c *dispersal) plus(to bin, demand int, pods []model.Pod) bin {
	to.take = slices.Clone(to.take)
	if j := slices.IndexFunc(to.take, func(t portion) bool { return t.demand == demand }); j >= 0 {
		to.take[j].pods += len(pods)
		to.take[j].chosen = slices.Concat(to.take[j].chosen, pods)
	} else {
		to.take = append(to.take, portion{demand: demand, pods: len(pods), chosen: pods})
	}
	return to
}
