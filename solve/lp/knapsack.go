// SPDX-License-Identifier: Apache-2.0

package lp

import "slices"

// Knapsack asks what a room is worth at most when it is filled with items,
// fractions allowed:
//
//	maximise Σ value_i·x_i  subject to  Σ request_i·x_i ≤ room,  0 ≤ x ≤ most
//
// It is solved by the simplex method with bounded variables, whose basis is as
// large as there are resources: a handful. A Knapsack is used again and again;
// it is not safe for concurrent use.
type Knapsack struct {
	Room    []float64 // by resource
	Value   []float64 // by item
	Most    []float64 // by item
	Request []float64 // by item, then resource

	basis   []int     // by position: an item, or -1-r for the slack of resource r
	inverse []float64 // of the basis, by position, then resource
	amount  []float64 // by position
	price   []float64
	column  []float64
	full    []bool // by item: not in the basis and taken whole
	inside  []bool // by item: in the basis
}

// Reset forgets the items and sets the room.
func (k *Knapsack) Reset(room []float64) {
	k.Room = append(k.Room[:0], room...)
	k.Value, k.Most, k.Request, k.basis = k.Value[:0], k.Most[:0], k.Request[:0], k.basis[:0]
}

// Add adds an item of which there are most.
func (k *Knapsack) Add(value, most float64, request []float64) {
	k.Value, k.Most = append(k.Value, value), append(k.Most, most)
	k.Request = append(k.Request, request...)
}

// Bound returns Σ price·room + Σ max(0, value − price·request)·most. For any
// prices of the resources, none negative, the room is worth no more than that
// (Lagrange).
func (k *Knapsack) Bound(price []float64) float64 {
	sum := 0.0
	for r, v := range k.Room {
		sum += price[r] * v
	}
	n := len(k.Room)
	for i, v := range k.Value {
		for r, q := range k.Request[i*n : i*n+n] {
			v -= price[r] * q
		}
		if v > 0 {
			sum += v * k.Most[i]
		}
	}
	return sum
}

// pivots bounds the steps of one relaxation; it ends long before.
const pivots = 500

// Relax sets price to the prices at which Bound is least, and returns it and
// after how many pivots it was found.
func (k *Knapsack) Relax(price []float64) (limit float64, steps int) {
	k.start()
	return k.optimise(price)
}

// RelaxAgain is Relax of a knapsack of which nothing but values has changed since it was
// relaxed last, if it ever was: it begins with what was taken then, which still fits.
func (k *Knapsack) RelaxAgain(price []float64) (limit float64, steps int) {
	if len(k.basis) != len(k.Room) || len(k.inside) != len(k.Value) {
		return k.Relax(price)
	}
	k.reprice(len(k.Room))
	return k.optimise(price)
}

// optimise goes from filling to filling until none is worth more.
func (k *Knapsack) optimise(price []float64) (limit float64, steps int) {
	for ; steps < pivots; steps++ {
		enter, down := k.entering()
		if enter == none || !k.move(enter, down) {
			break
		}
	}
	for r, p := range k.price {
		price[r] = max(p, 0)
	}
	return k.Bound(price), steps + 1
}

// Taken returns how much of an item Relax took.
func (k *Knapsack) Taken(item int) float64 {
	switch {
	case k.full[item]:
		return k.Most[item]
	case k.inside[item]:
		return k.amount[slices.Index(k.basis, item)]
	}
	return 0
}

// none stands for no item and no slack.
const none = 1 << 30

// start is the empty room: every slack in the basis.
func (k *Knapsack) start() {
	n := len(k.Room)
	k.basis, k.amount = k.basis[:0], append(k.amount[:0], k.Room...)
	k.inverse = zeros(k.inverse, n*n)
	k.price, k.column = zeros(k.price, n), zeros(k.column, n)
	for r := range n {
		k.basis = append(k.basis, -1-r)
		k.inverse[r*n+r] = 1
	}
	k.full, k.inside = falses(k.full, len(k.Value)), falses(k.inside, len(k.Value))
}

func zeros(s []float64, n int) []float64 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

func falses(s []bool, n int) []bool {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

// entering returns what would raise the worth most if it moved, and whether it
// would have to go down: an item that is taken whole. Prices are up to date.
func (k *Knapsack) entering() (enter int, down bool) {
	n := len(k.Room)
	enter, best := none, 0.0
	for i, v := range k.Value {
		if k.inside[i] {
			continue
		}
		gain := v
		for r, q := range k.Request[i*n : i*n+n] {
			gain -= k.price[r] * q
		}
		if k.full[i] {
			gain = -gain
		}
		if gain > tolerance*v && gain*k.Most[i] > best {
			enter, best, down = i, gain*k.Most[i], k.full[i]
		}
	}
	for r, p := range k.price {
		if gain := -p * k.Room[r]; gain > best && !slices.Contains(k.basis, -1-r) {
			enter, best, down = -1-r, gain, false
		}
	}
	return enter, down
}

// move brings an item or slack into the basis, or from one of its ends to the
// other, and the prices up to date. It reports false when nothing stops it,
// which rounding alone can bring about.
func (k *Knapsack) move(enter int, down bool) bool {
	n := len(k.Room)
	k.direct(enter)
	sign, step, out := 1.0, none*1.0, -1
	if down {
		sign = -1
	}
	if enter >= 0 {
		step = k.Most[enter]
	}
	for b, d := range k.column {
		d *= sign
		switch at := k.basis[b]; {
		case d > 1e-12 && k.amount[b] < step*d:
			step, out = k.amount[b]/d, b
		case d < -1e-12 && at >= 0 && k.Most[at]-k.amount[b] < -step*d:
			step, out = (k.Most[at]-k.amount[b])/-d, b
		}
	}
	if step == none {
		return false
	}
	for b, d := range k.column {
		k.amount[b] = max(k.amount[b]-sign*d*step, 0)
	}
	if out < 0 {
		k.full[enter] = !down
		return true
	}
	if old := k.basis[out]; old >= 0 {
		k.inside[old], k.full[old] = false, sign*k.column[out] < 0
	}
	if enter >= 0 {
		k.inside[enter], k.full[enter] = true, false
	}
	k.basis[out], k.amount[out] = enter, step
	if down {
		k.amount[out] = k.Most[enter] - step
	}
	k.eliminate(out, n)
	k.reprice(n)
	return true
}

// direct sets column to the inverse times the column of enter.
func (k *Knapsack) direct(enter int) {
	n := len(k.Room)
	for b := range k.column {
		row := k.inverse[b*n : b*n+n]
		sum := 0.0
		if enter < 0 {
			sum = row[-1-enter]
		} else {
			for r, q := range k.Request[enter*n : enter*n+n] {
				sum += row[r] * q
			}
		}
		k.column[b] = sum
	}
}

// eliminate makes the inverse that of the basis with column at position out.
func (k *Knapsack) eliminate(out, n int) {
	pivot := k.inverse[out*n : out*n+n]
	for r := range pivot {
		pivot[r] /= k.column[out]
	}
	for b, d := range k.column {
		if b == out || d == 0 {
			continue
		}
		for r, v := range pivot {
			k.inverse[b*n+r] -= d * v
		}
	}
}

// reprice sets the prices to the values of the basis times the inverse.
func (k *Knapsack) reprice(n int) {
	clear(k.price)
	for b, at := range k.basis {
		if at < 0 {
			continue
		}
		for r := range n {
			k.price[r] += k.Value[at] * k.inverse[b*n+r]
		}
	}
}
