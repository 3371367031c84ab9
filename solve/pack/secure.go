// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// A pool may ask that a share of its nodes' vCPUs is on demand. What is missing is
// made up for by new nodes that would be spot nodes else: those first that cost
// least more for each vCPU.

// secured is one way to launch a new node on demand.
type secured struct {
	bin, offer int
	price      float64 // more per vCPU than as a spot node
}

// secure has new nodes be launched on demand as far as pools ask for it and the pods
// on them allow it.
func secure(x *draft) {
	for pool := range x.catalogue.Pools {
		p := x.catalogue.Pools[pool].Pool
		if p.Aims.OnDemandShare == 0 || !slices.ContainsFunc(x.bins, func(b bin) bool { return x.poolOf(b.offer) == pool }) {
			continue
		}
		x.unroll()
		ways := x.waysToSecure(pool)
		for _, w := range ways {
			secure, all := x.secureNow(pool, false)
			if float64(secure) >= p.Aims.OnDemandShare*float64(all) {
				break
			}
			b := &x.bins[w.bin]
			if !x.mayBecome(pool, b, x.capacity(w.offer)) { // what was launched since took the rest of a limit
				continue
			}
			if len(x.floors[pool]) == 0 { // else what is reserved is for all types it must list
				x.limits.take(pool, b.capacity, -1)
				b.capacity = x.capacity(w.offer)
				x.limits.take(pool, b.capacity, 1)
			}
			b.offer, b.onDemand = w.offer, true
		}
	}
}

// waysToSecure returns how spot nodes of the plan could be launched on demand, those
// first that cost least more.
func (x *draft) waysToSecure(pool int) []secured {
	var out []secured
	for i, b := range x.bins {
		if x.poolOf(b.offer) != pool || x.catalogue.Offers[b.offer].CapacityType != model.Spot {
			continue
		}
		was, requests := x.catalogue.Offers[b.offer], x.podRequests(b)
		best := -1
		b.onDemand = true
		for o := range x.offersOf(b).All() {
			is := x.catalogue.Offers[o]
			row := &x.catalogue.Types[is.Type]
			fits := is.Zone == was.Zone && requests.Fits(row.Free) && (best < 0 || is.Price < x.catalogue.Offers[best].Price)
			if fits && x.mayBecome(pool, &b, row.Capacity) && x.supplied(row, b.take) {
				best = o
			}
		}
		if best < 0 {
			continue
		}
		if b.offer = best; x.spans(x.bins[i]) && !x.spans(b) {
			continue
		}
		more := float64(x.catalogue.Offers[best].Price - was.Price)
		out = append(out, secured{i, best, more / float64(max(x.capacity(best).At(model.CPU), 1))})
	}
	slices.SortStableFunc(out, func(a, b secured) int { return cmp.Compare(a.price, b.price) })
	return out
}

// mayBecome reports whether the limits of its pool let a new node have the capacity.
func (x *draft) mayBecome(pool int, b *bin, capacity model.Resources) bool {
	return x.covered(pool, b.capacity, capacity) || len(x.floors[pool]) == 0 && x.limits.covers(pool, b.capacity, capacity)
}

// secureNow returns how many millicores of the pool's nodes are on demand, or
// reserved, and how many there are: with the new nodes, or with those that are going
// away in their place.
func (x *draft) secureNow(pool int, before bool) (secure, all int64) {
	for i := range x.snapshot.Nodes {
		n := &x.snapshot.Nodes[i]
		if n.Pool != x.catalogue.Pools[pool].Name || !before && x.departs(i) {
			continue
		}
		all += n.Capacity.At(model.CPU)
		if ct, ok := n.Labels.Value(model.LabelCapacityType); ok && ct != model.Spot {
			secure += n.Capacity.At(model.CPU)
		}
	}
	for _, b := range x.bins {
		if before || x.poolOf(b.offer) != pool {
			continue
		}
		cpu := x.capacity(b.offer).At(model.CPU) * int64(b.count)
		all += cpu
		if x.catalogue.Offers[b.offer].CapacityType != model.Spot {
			secure += cpu
		}
	}
	return secure, all
}

// lessSecure reports whether a pool would have less of what it asks for on demand
// than before its nodes went away, and less than it asks for.
func lessSecure(x *draft) bool {
	for pool := range x.catalogue.Pools {
		share := x.catalogue.Pools[pool].Aims.OnDemandShare
		if share == 0 {
			continue
		}
		was, allBefore := x.secureNow(pool, true)
		is, all := x.secureNow(pool, false)
		if float64(is) < share*float64(all) && float64(is)*float64(allBefore) < float64(was)*float64(all) {
			return true
		}
	}
	return false
}
