// SPDX-License-Identifier: Apache-2.0

package cover

import "slices"

// hand fills one node with pods of items, and respects every rule of the
// problem while it does.
type hand struct {
	*Problem
	candidate int
	left      []int   // by item: pods there are
	free      []int64 // by resource
	grouped   []int   // by group: pods on the node
	pods      []int   // by item: pods on the node
	take      []Portion
	items     []int // of take
}

func newHand(p *Problem, resources int) *hand {
	return &hand{Problem: p, free: make([]int64, resources), grouped: make([]int, len(p.Groups)), pods: make([]int, len(p.Items))}
}

// begin starts an empty node, for pods of which so many are there.
func (h *hand) begin(c int, left []int) {
	for _, t := range h.take {
		h.pods[t.Item] = 0
	}
	clear(h.grouped)
	h.candidate, h.left, h.take, h.items = c, left, h.take[:0], h.items[:0]
	copy(h.free, h.Candidates[c].Room)
}

// load puts up to n pods of an item on the node and returns how many it took.
func (h *hand) load(item, n int) int {
	it := &h.Items[item]
	n = min(n, h.left[item]-h.pods[item])
	if it.Most > 0 {
		n = min(n, it.Most-h.pods[item])
	}
	for r, v := range it.Request {
		if v > 0 {
			n = min(n, int(max(h.free[r], 0)/v))
		}
	}
	for _, g := range it.Groups {
		n = min(n, h.Groups[g]-h.grouped[g])
	}
	if n <= 0 || !h.joins(item) {
		return 0
	}
	if h.Supplied != nil {
		if n = h.Supplied(h.candidate, h.taken(), item, n); n == 0 {
			return 0
		}
	}
	for r, v := range it.Request {
		h.free[r] -= v * int64(n)
	}
	for _, g := range it.Groups {
		h.grouped[g] += n
	}
	if h.pods[item] == 0 {
		h.take, h.items = append(h.take, Portion{Item: item}), append(h.items, item)
	}
	h.pods[item] += n
	return n
}

// taken returns what is on the node.
func (h *hand) taken() []Portion {
	for i := range h.take {
		h.take[i].Pods = h.pods[h.take[i].Item]
	}
	return h.take
}

// joins reports whether pods of the item may share the node with those on it.
func (h *hand) joins(item int) bool {
	if h.pods[item] > 0 || len(h.take) == 0 {
		return true
	}
	if apart := h.Items[item].Apart; apart != nil && slices.ContainsFunc(h.items, apart.Has) {
		return false
	}
	return h.Agree == nil || h.Agree(h.candidate, append(slices.Clone(h.items), item))
}

// loadLine puts up to n pods of a line on the node and returns how many it took: of
// its items, large and small in turn, so that they come out at the average.
func (h *hand) loadLine(l *line, n int) int {
	if len(l.members) == 1 {
		return h.load(l.members[0], n)
	}
	low, high, wanted := 0, len(l.members)-1, n
	for large := true; n > 0 && low <= high; large = !large {
		i := low
		if large {
			i = high
		}
		got := h.load(l.members[i], 1)
		n -= got
		if got == 0 || h.left[l.members[i]] == h.pods[l.members[i]] || l.most > 0 {
			if large {
				high--
			} else {
				low++
			}
		}
	}
	return wanted - n
}

// has reports whether pods of the line are left beside those on the node.
func (h *hand) has(l *line) bool {
	return slices.ContainsFunc(l.members, func(i int) bool { return h.left[i] > h.pods[i] })
}

// misses is how many items of a line topUp looks at that do not fit.
const misses = 4

// topUp adds pods of the line, largest first, as long as some fit.
func (h *hand) topUp(l *line) {
	missed := 0
	for i := len(l.members) - 1; i >= 0 && missed < misses; i -= 1 + missed*len(l.members)/8 {
		item := l.members[i]
		if h.left[item] > h.pods[item] && h.load(item, h.left[item]) == 0 {
			missed++
		}
	}
}
