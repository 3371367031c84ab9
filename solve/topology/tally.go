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
	total  int    // pods that are somewhere
	here   []bool // by domain: some node that counts is in it
	there  []bool // by domain: a node there could be bought

	least      int // smallest count of the known domains, while leastValid
	known      int // how many domains are known, while leastValid
	leastValid bool
}

func (t *tally) at(i int) int {
	if i < len(t.counts) {
		return t.counts[i]
	}
	return 0
}

func (t *tally) bump(i, n int) {
	for len(t.counts) <= i {
		t.counts = append(t.counts, 0)
	}
	if n < 0 || t.counts[i] <= t.least {
		t.leastValid = false
	}
	t.counts[i] += n
	t.total += n
}

// add counts n pods at a place; site is -1 on a new node.
func (t *tally) add(nodes []model.Node, p Place, site, n int) {
	if t.filter != nil && (!t.filter.settled(p) || site >= 0 && !t.allows(nodes, site)) {
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
	for _, d := range p[t.key] {
		t.bump(d, n)
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
		for d := range max(len(t.here), len(t.there)) {
			if at(t.here, d) || at(t.there, d) {
				t.known++
				t.least = min(t.least, t.at(d))
			}
		}
	}
	if t.known == 0 || t.known < want {
		return 0
	}
	return t.least
}

func at(b []bool, i int) bool { return i < len(b) && b[i] }

func set(b []bool, i int) []bool {
	for len(b) <= i {
		b = append(b, false)
	}
	b[i] = true
	return b
}
