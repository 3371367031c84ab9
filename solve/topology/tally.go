package topology

import (
	"math"

	"karpenter/model"
)

// tally counts pods per domain of a key.
type tally struct {
	key     int
	settled bool    // counts only where the domain is settled
	living  bool    // does not count terminating pods
	filter  *filter // which nodes count; nil = all

	counts []int  // by domain, or by site; shorter = 0
	doubt  []int  // by domain: the part of counts that may turn out not to be there
	total  int    // pods that are somewhere
	here   []bool // by domain: some node that counts is in it
	maybe  []bool // by domain: some node that counts may turn out to be in it
	there  []bool // by domain: a node there could be bought

	least      int // smallest count of the known domains, while leastValid
	known      int // how many domains are known, while leastValid
	leastValid bool
}

func (t *tally) at(i int) int { return value(t.counts, i) }

func (t *tally) bump(i, n int) {
	if n < 0 || t.at(i) <= t.least {
		t.leastValid = false
	}
	t.counts = increase(t.counts, i, n)
	t.total += n
}

// add counts n pods at a place; site is -1 on a new node.
func (t *tally) add(nodes []model.Node, p Place, site, n int) {
	if t.filter != nil && (!t.filter.labelled(p) || site >= 0 && !t.allows(nodes, site)) {
		return
	}
	if t.key == Hostname {
		if site >= 0 {
			t.bump(site, n)
		} else {
			t.total += n
		}
		return
	}
	if t.settled && len(p[t.key]) != 1 {
		return
	}
	sure := len(p[t.key]) == 1 && (site < 0 || !nodes[site].Deleting)
	for _, d := range p[t.key] {
		t.bump(d, n)
		if !sure {
			t.doubt = increase(t.doubt, d, n)
		}
	}
}

func (t *tally) allows(nodes []model.Node, site int) bool {
	f := t.filter
	if f.memo == nil {
		f.memo = make([]int8, len(nodes))
	}
	if f.memo[site] == 0 {
		f.memo[site] = 1
		if f.allows(&nodes[site]) {
			f.memo[site] = 2
		}
	}
	return f.memo[site] == 2
}

// fewest returns the smallest count of the known domains; zero when there are
// fewer of them than want.
func (t *tally) fewest(want int) int {
	if !t.leastValid {
		t.least, t.known, t.leastValid = math.MaxInt, 0, true
		for d := range max(len(t.here), len(t.there), len(t.maybe)) {
			known := value(t.here, d) || value(t.there, d)
			if known {
				t.known++
			}
			if known || value(t.maybe, d) {
				t.least = min(t.least, t.at(d)-value(t.doubt, d))
			}
		}
	}
	if t.known < max(want, 1) {
		return 0
	}
	return t.least
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

func increase(s []int, i, n int) []int { return put(s, i, value(s, i)+n) }
