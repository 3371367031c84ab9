// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// group looks for nodes that are replaced together for less. Those are asked
// about whose pods are worth least in proportion to what the nodes cost, as many
// as might save something, and halves of that. It returns nil when there are none. Groups
// that cannot save more than the offers for their nodes one by one do are skipped.
func (r *round) group(candidates []int, singles []*offer) (best *offer, skipped bool) {
	sites := r.wasteful(candidates)
	for n := len(sites); n >= 2; n /= 2 {
		most := r.potential(sites[:n])
		if best != nil && most <= enough*best.net() {
			break
		}
		if most < saved(sites[:n], singles)*(1-1e-9) {
			skipped = true
			continue
		}
		if o := r.together(sites[:n]); o.good() && (best == nil || o.net() > best.net()) {
			best = o
		}
	}
	if best != nil {
		best = r.trim(best)
	}
	return best, skipped
}

// enough is how many times what a group saves its half must be able to save to be asked about.
const enough = 2

// potential is what the nodes save at most beyond what they must: all that they cost, less
// what new nodes cost at least for the pods that other nodes have no capacity for.
func (r *round) potential(sites []int) float64 {
	sum := 0.0
	for _, i := range sites {
		sum += max(float64(r.s.Nodes[i].Price)-r.tollOf([]int{i}).moves, 0)
	}
	return sum - r.overflow(sites)
}

// overflow is what new nodes cost at least for the pods of the nodes that the others have no
// capacity for, as far as the sum of one resource tells: of those whose dual value is highest
// for what they request, as many as fit go to other nodes.
func (r *round) overflow(sites []int) float64 {
	leaves := make(map[int]bool, len(sites))
	for _, i := range sites {
		leaves[i] = true
	}
	least := 0.0
	for _, resource := range []int{model.CPU, model.Memory} {
		type lot struct{ request, worth float64 }
		var lots []lot
		for _, i := range sites {
			for j := range r.s.Nodes[i].Movable {
				p := &r.s.Nodes[i].Movable[j]
				if pods, request := float64(len(p.Pods)), p.Shape.Requests.At(resource); request > 0 {
					lots = append(lots, lot{float64(request) * pods, r.worth[p.Shape] * pods})
				}
			}
		}
		slices.SortStableFunc(lots, func(a, b lot) int { return cmp.Compare(b.worth*a.request, a.worth*b.request) })
		free, left := 0.0, 0.0
		for i := range r.rowsNow() {
			if row := &r.rows[i]; !leaves[row.Site] {
				free += max(float64(row.Free.At(resource)), 0)
			}
		}
		for _, l := range lots {
			if l.request > free {
				left += l.worth * (1 - free/l.request)
			}
			free = max(free-l.request, 0)
		}
		least = max(least, left)
	}
	return least
}

// together asks about the nodes, without those whose type stands in the way.
func (r *round) together(sites []int) *offer {
	o := r.weigh(sites)
	for len(o.alike) > 0 {
		if sites = without(sites, o.alike); len(sites) < 2 {
			break
		}
		o = r.weigh(sites)
	}
	return r.rehearsed(o)
}

// newFor is what the pods of the node cost on new nodes at least.
func (r *round) newFor(site int) float64 {
	sum := 0.0
	for i := range r.s.Nodes[site].Movable {
		p := &r.s.Nodes[site].Movable[i]
		sum += r.worth[p.Shape] * float64(len(p.Pods))
	}
	return sum
}

// mostTogether bounds a command: it ends when the last of its replacements is
// ready, and fails as a whole.
const mostTogether = 200

// wasteful returns the candidates, worst first, whose pods would cost less on new
// nodes by what a replacement has to save, taken together.
func (r *round) wasteful(candidates []int) []int {
	type waste struct {
		site         int
		price, worth float64
	}
	var all []waste
	for _, i := range candidates {
		n := &r.s.Nodes[i]
		if n.Price <= 0 {
			continue
		}
		all = append(all, waste{site: i, price: float64(n.Price), worth: r.newFor(i)})
	}
	slices.SortStableFunc(all, func(a, b waste) int { return cmp.Compare(a.worth*b.price, b.worth*a.price) })
	var out []int
	price, worth := 0.0, 0.0
	for _, w := range all {
		if price, worth = price+w.price, worth+w.worth; worth > price*(1-r.policy.Hysteresis) {
			break
		}
		if len(out) == mostTogether {
			break
		}
		if next := append(out, w.site); r.allowed(model.Underutilized, next...) {
			out = next
		} else {
			price, worth = price-w.price, worth-w.worth
		}
	}
	return out
}

// worthTrimming is the least part of what a group saves that must be at stake for a trim.
const worthTrimming = 0.01

// trim leaves out the members that would not pay if all their pods were given new nodes, if
// the group saves more without them.
func (r *round) trim(o *offer) *offer {
	rest, loss := make([]int, 0, len(o.sites)), 0.0
	for _, i := range o.sites {
		if own := r.newFor(i) + r.tollOf([]int{i}).moves - float64(r.s.Nodes[i].Price); own < 0 {
			rest = append(rest, i)
		} else {
			loss += own
		}
	}
	if len(rest) < 2 || loss <= worthTrimming*o.net() {
		return o
	}
	if less := r.rehearsed(r.weigh(rest)); less.good() && less.net() >= o.net() {
		return less
	}
	return o
}

// without returns the sites that are none of those.
func without(sites, those []int) []int {
	return slices.DeleteFunc(slices.Clone(sites), func(i int) bool { return slices.Contains(those, i) })
}

// rank returns the rank of an offer for a group, given those for single nodes. A
// group that saves more than its nodes one by one comes before them.
func rank(group *offer, singles []*offer) float64 {
	if group.net() <= saved(group.sites, singles)*(1+1e-9) {
		return group.yield()
	}
	first := group.yield()
	for _, o := range singles {
		if o.good() && slices.Contains(group.sites, o.sites[0]) {
			first = max(first, o.rank)
		}
	}
	return first
}

// saved is what the good offers for single nodes among the sites save.
func saved(sites []int, singles []*offer) float64 {
	sum := 0.0
	for _, o := range singles {
		if o.good() && slices.Contains(sites, o.sites[0]) {
			sum += o.net()
		}
	}
	return sum
}
