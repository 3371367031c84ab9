// SPDX-License-Identifier: Apache-2.0

// Package work counts the work of a decision, so that every decision ends.
//
// A Budget is a number of elementary steps: about one comparison or one
// multiplication each, a nanosecond or so on current machines. Steps are
// counted and not timed, so the same Snapshot gives the same Plan on any
// machine, however busy.
package work

// Budget is how many steps may still be taken. A nil Budget is unlimited. It
// is not safe for concurrent use.
type Budget struct {
	left  int64
	total int64
	whole *Budget // that it is a part of, or of whose part; nil = it is one
	lent  int64   // steps taken from parts that were not returned yet
}

// New returns a budget of so many steps.
func New(steps int64) *Budget { return &Budget{left: steps, total: steps} }

// Spend takes n steps from the budget. The budget may become overdrawn by the
// last piece of work that was begun.
func (b *Budget) Spend(n int) {
	if b == nil {
		return
	}
	b.left -= int64(n)
	if b.whole != nil {
		b.whole.lent += int64(n)
	}
}

// Spent reports whether no steps are left.
func (b *Budget) Spent() bool { return b != nil && b.left <= 0 }

// Overdrawn reports whether more than twice the budget was spent.
func (b *Budget) Overdrawn() bool { return b != nil && b.left < -b.total }

// Late reports whether more than twice the whole budget was spent, of which this is a
// part: only what a plan cannot do without is worth doing then.
func (b *Budget) Late() bool {
	if b == nil {
		return false
	}
	whole := b
	if b.whole != nil {
		whole = b.whole
	}
	return whole.left-whole.lent < -whole.total
}

// Left returns how many steps are left.
func (b *Budget) Left() int64 { return b.left }

// Used returns how many steps were taken.
func (b *Budget) Used() int64 { return b.total - b.left }

// Part returns a budget of a fraction of what is left. What is spent of the part
// is not spent of the whole until Return.
func (b *Budget) Part(fraction float64) *Budget {
	if b == nil {
		return nil
	}
	part := New(int64(float64(max(b.left, 0)) * fraction))
	if part.whole = b.whole; part.whole == nil {
		part.whole = b
	}
	return part
}

// Own is Part with a budget that is a whole of its own, so that another goroutine can
// use it.
func (b *Budget) Own(fraction float64) *Budget {
	part := b.Part(fraction)
	if part != nil {
		part.whole = nil
	}
	return part
}

// Return takes what was used of a part from the whole.
func (b *Budget) Return(part *Budget) {
	switch {
	case b == nil:
	case part.whole == nil:
		b.Spend(int(part.Used()))
	default:
		b.left -= part.Used()
		if b.whole == nil {
			b.lent -= part.Used()
		}
	}
}
