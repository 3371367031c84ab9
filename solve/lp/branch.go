// SPDX-License-Identifier: Apache-2.0

package lp

import "math"

// Brancher asks what the room of a Knapsack is worth at most when items are taken whole,
// by branch and bound: fractions are most of what a relaxation finds where items are large.
// It is used again and again; it is not safe for concurrent use.
type Brancher struct {
	rest  Knapsack // what a branch leaves open
	items []int    // by item of the rest
	price []float64

	branches []*branch // those in use come first
	open     []*branch
}

// branch is the ways to fill the room with so many of each item.
type branch struct {
	limit       float64   // no way is worth more
	least, most []float64 // by item
	taken       []float64 // by item: where fractions are allowed, how many are worth most
}

// wholeEnough is how near to a whole number an amount is one, for all that rounding tells.
const wholeEnough = 1e-6

// Most returns what the room is worth at most, and how much of each item is taken for that,
// which is good until the next call. Most of the knapsack's items are whole numbers. As few
// items are fractions as so many branches can show.
func (b *Brancher) Most(k *Knapsack, branches int) (limit float64, taken []float64) {
	b.price = zeros(b.price, len(k.Room))
	all := b.branch(0, len(k.Value))
	clear(all.least)
	copy(all.most, k.Most)
	b.relax(k, all)
	b.open = append(b.open[:0], all)
	for used := 1; ; used++ {
		at := b.best()
		from := b.open[at]
		item := broken(k, from)
		if item < 0 || used > branches {
			return from.limit, from.taken
		}
		more, whole := b.branch(used, len(k.Value)), math.Floor(from.taken[item])
		copy(more.least, from.least)
		copy(more.most, from.most)
		from.most[item], more.least[item] = whole, whole+1
		before := from.limit
		b.relax(k, from) // it always has a way: as many as are taken at least
		if from.limit = min(from.limit, before); b.relax(k, more) {
			more.limit = min(more.limit, before)
			b.open = append(b.open, more)
		}
	}
}

// branch returns the branch of that number for so many items.
func (b *Brancher) branch(number, items int) *branch {
	if number == len(b.branches) {
		b.branches = append(b.branches, &branch{})
	}
	out := b.branches[number]
	out.least, out.most, out.taken = zeros(out.least, items), zeros(out.most, items), zeros(out.taken, items)
	return out
}

// best returns the position of the open branch with the highest limit.
func (b *Brancher) best() int {
	best := 0
	for i, o := range b.open {
		if o.limit > b.open[best].limit {
			best = i
		}
	}
	return best
}

// broken returns the most valuable item of which a fraction is taken, or -1.
func broken(k *Knapsack, b *branch) int {
	item := -1
	for i, n := range b.taken {
		if math.Abs(n-math.Round(n)) > wholeEnough && (item < 0 || k.Value[i] > k.Value[item]) {
			item = i
		}
	}
	return item
}

// relax finds the limit of a branch where fractions are allowed of items of which the room
// takes a whole one. It reports false if there is no room for the least of each item.
func (b *Brancher) relax(k *Knapsack, of *branch) bool {
	n := len(k.Room)
	b.rest.Reset(k.Room)
	room := b.rest.Room
	of.limit = 0
	for i, least := range of.least {
		if of.taken[i] = least; least > 0 {
			of.limit += least * k.Value[i]
			for r, q := range k.Request[i*n : i*n+n] {
				room[r] -= least * q
			}
		}
	}
	for r := range room {
		if room[r] < -wholeEnough {
			return false
		}
		room[r] = max(room[r], 0)
	}
	b.items = b.items[:0]
	for i, v := range k.Value {
		most := of.most[i] - of.least[i]
		if v <= 0 || most <= 0 {
			continue
		}
		request := k.Request[i*n : i*n+n]
		for r, q := range request {
			if q > 0 {
				most = min(most, math.Floor(room[r]/q+wholeEnough))
			}
		}
		if most > 0 {
			b.rest.Add(v, most, request)
			b.items = append(b.items, i)
		}
	}
	limit, _ := b.rest.Relax(b.price)
	of.limit += limit
	for j, i := range b.items {
		of.taken[i] += b.rest.Taken(j)
	}
	return true
}
