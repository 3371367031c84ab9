// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"karpenter/model"
	"karpenter/solve/fit"
)

// market is the phase that launches new nodes, of the pools of one tier.
type market struct {
	*draft
	tier     tier
	sold     []candidate // of the tier, whatever limits allow; nil = to be found
	proving  bool        // limits only count if they allow no node at all
	relaxing bool        // launches need not span what their pools demand
	partial  bool        // the candidates of some pool with minValues are not all there are
	several  bool        // pods may run in some pool with minValues under several of their terms
}

// candidate is an offer worth launching, with the classes of demands it may serve
// and the room that every type has which its launches must list.
type candidate struct {
	offer  int
	pool   int
	price  float64 // charged
	free   model.Resources
	room   []int64  // of free, what anyone requests
	serves fit.Bits // over classes

	capacity model.Resources // what a node of it is reserved in its pool's limits
}

// canTake reports whether one pod of d may run on an empty such node.
func (c *candidate) canTake(d *demand) bool {
	return c.serves.Has(d.class) && d.Shape.Requests.Fits(c.free)
}

// strict reports whether launches of the pool must span values.
func (m *market) strict(pool int) bool { return len(m.floors[pool]) > 0 && !m.relaxing }

// unaffordable reports whether the limits of its pool leave no room for even
// one node of the candidate.
func (m *market) unaffordable(c candidate) bool {
	return m.limits.allow(c.pool, c.capacity, 1) == 0
}
