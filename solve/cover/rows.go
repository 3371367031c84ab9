// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Bounds of the master problem. Up to fewRows lines are rows of their own.
const (
	fewRows    = 48
	mostRows   = 160
	podsPerRow = 32   // fewer pods are not worth a row of their own
	mostLines  = 1000 // that are priced
)

// lines returns how many lines are priced at most.
func (o Options) lines() int {
	if o.Rows == 0 {
		return mostLines
	}
	return 2 * o.Rows
}

// aggregate returns the lines: the items that some candidate can take, those that
// are equal in one, or sets of similar ones where they are more than most.
func (s *solver) aggregate(most int) []line {
	var served []int
	for i := range s.items {
		if s.left[i] > 0 && slices.ContainsFunc(s.room, func(room []int64) bool { return whole(room, s.items[i].request) > 0 }) {
			served = append(served, i)
		}
	}
	sets := s.equal(served)
	if len(sets) > most {
		sets = s.grouped(s.items, served, s.left, most)
	}
	var lines []line
	for _, set := range sets {
		lines = append(lines, s.row(set))
	}
	return lines
}

// equal divides items into sets of those that are equal, and kept apart from none.
func (s *solver) equal(items []int) [][]int {
	var sets [][]int
	index := map[string]int{}
	for _, i := range items {
		key := fmt.Sprint(s.items[i].class, s.items[i].most, s.items[i].request, s.items[i].spreads(s.left[i]))
		at, ok := index[key]
		if !ok || s.Items[i].Apart != nil {
			at, sets = len(sets), append(sets, nil)
		}
		if s.Items[i].Apart == nil {
			index[key] = at
		}
		sets[at] = append(sets[at], i)
	}
	return sets
}

// rowsOf divides the lines, of which there are so many pods, into rows of similar
// ones: at most so many, or a number that suits them.
func (s *solver) rowsOf(lines []line, count []int, most int) [][]int {
	all, pods := make([]int, len(lines)), 0
	for i := range lines {
		all[i], pods = i, pods+count[i]
	}
	if most == 0 {
		most = min(max(fewRows, pods/podsPerRow), mostRows)
	}
	return s.grouped(lines, all, count, most)
}

// grouped divides some of the lines into sets of similar ones under the same rules.
// Each is a set of its own where they are not more than most.
func (s *solver) grouped(lines []line, some, count []int, most int) [][]int {
	var sets [][]int
	if len(some) <= most {
		for _, i := range some {
			sets = append(sets, []int{i})
		}
		return sets
	}
	index := map[string]int{}
	for _, i := range some {
		key := fmt.Sprint(lines[i].class, lines[i].most, lines[i].request[s.resources:], lines[i].spreads(count[i]))
		at, ok := index[key]
		if !ok {
			at, sets = len(sets), append(sets, nil)
			index[key] = at
		}
		sets[at] = append(sets[at], i)
	}
	return (&splitter{s, lines, count}).split(sets, most)
}

// row returns the line of a set of items: it requests what they do on average.
func (s *solver) row(set []int) line {
	if len(set) == 1 {
		return s.items[set[0]]
	}
	first := &s.items[set[0]]
	request, pods := make([]int64, s.dims), int64(0)
	for _, i := range set {
		n := int64(max(s.left[i], 1))
		pods += n
		for d, v := range s.items[i].request {
			request[d] += v * n
		}
	}
	for d := range request {
		request[d] = (request[d] + pods - 1) / pods
	}
	out := line{request: request, weight: s.scaled(request), class: first.class, members: slices.Clone(set), likely: s.likely(set)}
	if first.most > 0 {
		out.most = first.most * len(set)
	}
	slices.SortStableFunc(out.members, func(a, b int) int { return cmp.Compare(s.size(a), s.size(b)) })
	return out
}

// size compares items: the sum of what they request in units of the largest
// room.
func (s *solver) size(item int) float64 {
	sum := 0.0
	for _, w := range s.items[item].weight {
		sum += w
	}
	return sum
}

// splitter divides sets of lines, of which there are so many pods.
type splitter struct {
	*solver
	lines []line
	count []int
}

// split divides the sets that are widest and hold most, in the middle of what
// they differ in most, until there are enough of them.
func (s *splitter) split(sets [][]int, most int) [][]int {
	type width struct {
		weight float64
		dim    int
	}
	measure := func(set []int) (widest width) {
		for d := range s.resources {
			least, largest, sum := math.Inf(1), 0.0, 0.0
			for _, i := range set {
				v := s.lines[i].weight[d]
				least, largest, sum = min(least, v), max(largest, v), sum+v*float64(s.count[i])
			}
			if w := (largest - least) / max(largest, 1e-9) * sum; w > widest.weight {
				widest = width{w, d}
			}
		}
		s.budget.Spend(len(set) * s.resources)
		return widest
	}
	widths := make([]width, len(sets))
	for i := range sets {
		widths[i] = measure(sets[i])
	}
	for len(sets) < most {
		widest := 0
		for i := range widths {
			if widths[i].weight > widths[widest].weight {
				widest = i
			}
		}
		set, d := sets[widest], widths[widest].dim
		if widths[widest].weight == 0 {
			break
		}
		slices.SortStableFunc(set, func(a, b int) int { return cmp.Compare(s.lines[a].request[d], s.lines[b].request[d]) })
		half := s.middle(set, d)
		sets[widest] = set[:half:half]
		sets = append(sets, set[half:])
		widths[widest] = measure(sets[widest])
		widths = append(widths, measure(sets[len(sets)-1]))
	}
	return sets
}

// middle returns where to cut a sorted set: the cut nearest its middle that
// tells two sizes apart.
func (s *splitter) middle(set []int, d int) int {
	at := func(i int) int64 { return s.lines[set[i]].request[d] }
	for off := range len(set) {
		for _, i := range []int{len(set)/2 - off, len(set)/2 + off} {
			if i > 0 && i < len(set) && at(i-1) != at(i) {
				return i
			}
		}
	}
	return len(set) / 2
}

// apart reports whether pods of the two lines must not share a node. Lines of
// several items do not tell.
func (s *solver) apart(a, b *line) bool {
	if len(a.members) > 1 || len(b.members) > 1 {
		return false
	}
	set := s.Items[a.members[0]].Apart
	return set != nil && set.Has(b.members[0])
}
