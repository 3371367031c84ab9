// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"math"
	"slices"

	"karpenter/model"
)

// tally counts pods per domain of a key.
type tally struct {
	key     int
	settled bool           // counts only where the domain is settled
	living  bool           // does not count terminating pods
	filter  *filter        // which nodes count; nil = all
	term    *model.PodTerm // of anti-affinity; nil = the tally is another rule's
	holders bool           // counts the pods that have the term, not those it selects
	minded  bool           // of holders: the term selects pods that are to be placed

	counts sums // by domain, or by site
	doubt  sums // by domain: the part of counts that may turn out not to be there
	total  int  // pods that are somewhere
	unsure sums // by site: its pods that are in doubt

	// These are replaced and never changed, so that tallies share them.
	here  []bool  // by domain: some node that counts is in it
	maybe [][]int // by domain: the sites that count and may turn out to be in it
	there []bool  // by domain: a node there could be launched

	bottom
}

// emptiest is the node with fewest pods, for a tally of nodes.
type emptiest struct {
	valid bool // the others hold
	site  int
	least int // how many pods it has
	known int // how many nodes are certain to count; not all of them were looked at if the least is none
}

// sights is what was seen of the domains of spread constraints.
type sights struct {
	lookouts map[lookout]*tally // the first that sees them
	scratch  []int              // memory to list sites in
}

// lookout is what the domains of a spread depend on.
type lookout struct {
	chosen *model.Requirements // the first of a filter; nil = any node
	sites  string              // the domains that are there, and the sites that may be in others
	key    int
}

// bottom is the smallest count of the domains of a tally.
type bottom struct {
	leastValid bool // the others hold

	least  int  // smallest count of the known domains
	lowest int  // how many domains that are certain have it, or fewer than do
	held   bool // a domain has it that is not certain
	known  int  // how many domains are certain

	emptiest emptiest // if the domains are nodes
}

func (t *tally) at(i int) int { return t.counts.at(i) }

func (t *tally) bump(i, n int) {
	t.emptiest.valid = t.emptiest.valid && n > 0 && (t.at(i) > t.emptiest.least || t.emptiest.least == 0 && i != t.emptiest.site)
	switch {
	case n < 0 || t.at(i)-t.doubt.at(i) <= t.least && !t.certain(i):
		t.leastValid = false
	case t.at(i)-t.doubt.at(i) <= t.least:
		t.lowest--
		t.leastValid = t.leastValid && (t.held || t.lowest > 0)
	}
	t.counts.add(i, n)
	t.total += n
}

// fewest returns the smallest count of the known domains; zero when there are
// fewer of them than want.
func (t *tally) fewest(want int) int {
	if !t.leastValid {
		t.least, t.lowest, t.held, t.known, t.leastValid = math.MaxInt, 0, false, 0, true
		for d := range max(len(t.here), len(t.there), len(t.maybe)) {
			certain := t.certain(d)
			if certain {
				t.known++
			}
			if certain || len(value(t.maybe, d)) > 0 && !(t.held && t.least == 0) {
				t.sink(t.low(d), certain)
			}
		}
	}
	if t.known < max(want, 1) {
		return 0
	}
	return t.least
}

// sink takes into account that a known domain has so few pods.
func (t *tally) sink(low int, certain bool) {
	if low > t.least {
		return
	}
	if low < t.least {
		t.least, t.lowest, t.held = low, 0, false
	}
	if certain {
		t.lowest++
	} else {
		t.held = true
	}
}

// certain reports whether the domain is there in any case.
func (t *tally) certain(d int) bool { return value(t.here, d) || value(t.there, d) }

// knows reports whether the domain may be the one with fewest pods.
func (t *tally) knows(d int) bool { return t.certain(d) || len(value(t.maybe, d)) > 0 }

// low returns how many pods a domain has at least, if it is there: where only
// sites that are not settled may be in it, one of them is.
func (t *tally) low(d int) int {
	n := t.at(d) - t.doubt.at(d)
	if t.certain(d) {
		return n
	}
	least := math.MaxInt
	for _, site := range t.maybe[d] {
		if least = min(least, t.unsure.at(site)); least == 0 {
			break
		}
	}
	return n + least
}

// value returns what is at a position; zero beyond the end.
func value[T any](s []T, i int) (v T) {
	if i < len(s) {
		v = s[i]
	}
	return v
}

// put sets a position of a slice, which grows to have it.
func put[T any](s []T, i int, v T) []T {
	var none T
	for len(s) <= i {
		s = append(s, none)
	}
	s[i] = v
	return s
}

// sums are numbers by position, of which most are zero: the pods of a Deployment
// are on few of all nodes. They are stored in pages, nil for a page of zeros.
type sums []*[pageSize]int32

const pageSize = 32

func (s sums) at(i int) int {
	if page := value(s, i/pageSize); page != nil {
		return int(page[i%pageSize])
	}
	return 0
}

func (s *sums) add(i, n int) {
	page := value(*s, i/pageSize)
	if page == nil {
		page = new([pageSize]int32)
		*s = put(*s, i/pageSize, page)
	}
	page[i%pageSize] += int32(n)
}

// positive returns the positions of numbers that are positive, ascending.
func (s sums) positive() (out []int) {
	for i := range len(s) * pageSize {
		if s.at(i) > 0 {
			out = append(out, i)
		}
	}
	return out
}

func (s sums) clone() sums {
	out := slices.Clone(s)
	for i, page := range out {
		if page != nil {
			same := *page
			out[i] = &same
		}
	}
	return out
}
