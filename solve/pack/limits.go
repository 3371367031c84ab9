// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// limits keeps what each pool may still add. Capacity is reserved when a node
// is planned, so a plan as a whole never overshoots.
type limits struct {
	pools []poolLimit // by index of Catalogue.Pools
}

type poolLimit struct {
	resources []int   // positions that are limited
	left      []int64 // what may still be added, by the same index
}

func newLimits(c *fit.Catalogue) *limits {
	l := &limits{pools: make([]poolLimit, len(c.Pools))}
	for i := range c.Pools {
		p := &l.pools[i]
		for _, limit := range c.Pools[i].Limits {
			p.resources = append(p.resources, limit.Resource)
			p.left = append(p.left, limit.Max-c.Pools[i].Usage.At(limit.Resource))
		}
	}
	return l
}

// noLimits is limits of which no pool has any.
func noLimits(c *fit.Catalogue) *limits { return &limits{pools: make([]poolLimit, len(c.Pools))} }

// any reports whether one of the pools has limits.
func (l *limits) any(pools fit.Range) bool {
	return slices.ContainsFunc(l.pools[pools.From:pools.To], func(p poolLimit) bool { return len(p.resources) > 0 })
}

// allow returns how many nodes of this capacity the pool may add, at most want.
func (l *limits) allow(pool int, capacity model.Resources, want int) int {
	n := int64(want)
	p := &l.pools[pool]
	for i, r := range p.resources {
		switch c := capacity.At(r); {
		case p.left[i] < 0:
			return 0
		case c > 0:
			n = min(n, p.left[i]/c)
		}
	}
	return int(n)
}

// take reserves count nodes of this capacity.
func (l *limits) take(pool int, capacity model.Resources, count int) {
	p := &l.pools[pool]
	for i, r := range p.resources {
		p.left[i] -= capacity.At(r) * int64(count)
	}
}

// share returns how much of what is left of the pool's limits a node of this
// capacity takes: the largest fraction of any of them.
func (l *limits) share(pool int, capacity model.Resources) float64 {
	most := 0.0
	p := &l.pools[pool]
	for i, r := range p.resources {
		if p.left[i] > 0 {
			most = max(most, float64(capacity.At(r))/float64(p.left[i]))
		}
	}
	return most
}

// relief returns how much it helps if nodes of the pool take less by this, as parts of what they take
// beyond its limits.
func (l *limits) relief(pool int, less model.Resources) float64 {
	sum := 0.0
	p := &l.pools[pool]
	for i, r := range p.resources {
		if p.left[i] < 0 {
			sum += float64(less.At(r)) / float64(-p.left[i])
		}
	}
	return sum
}

func (l *limits) clone() *limits {
	out := &limits{}
	for _, p := range l.pools {
		out.pools = append(out.pools, poolLimit{p.resources, slices.Clone(p.left)})
	}
	return out
}

// covers reports whether the pool has room to turn a reservation for old into one
// that also covers bigger.
func (l *limits) covers(pool int, old, bigger model.Resources) bool {
	p := &l.pools[pool]
	for i, r := range p.resources {
		if more := bigger.At(r) - old.At(r); more > 0 && more > p.left[i] {
			return false
		}
	}
	return true
}

// raise turns a reservation for old into one that also covers bigger, and
// reports whether the pool had room for that.
func (l *limits) raise(pool int, old, bigger model.Resources) bool {
	if !l.covers(pool, old, bigger) {
		return false
	}
	p := &l.pools[pool]
	for i, r := range p.resources {
		p.left[i] -= max(bigger.At(r)-old.At(r), 0)
	}
	return true
}
