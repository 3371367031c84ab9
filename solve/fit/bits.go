// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// Bits is a set of small integers. Sets that are combined have equal length.
type Bits []uint64

// NewBits returns an empty set for the integers 0 to n-1.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// Set adds i.
func (b Bits) Set(i int) { b[i/64] |= 1 << (i % 64) }

// Unset removes i.
func (b Bits) Unset(i int) { b[i/64] &^= 1 << (i % 64) }

// Has reports whether i is in the set.
func (b Bits) Has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// And returns the intersection with c.
func (b Bits) And(c Bits) Bits {
	out := make(Bits, len(b))
	for i := range b {
		out[i] = b[i] & c[i]
	}
	return out
}

// Or returns the union with c.
func (b Bits) Or(c Bits) Bits {
	out := make(Bits, len(b))
	for i := range b {
		out[i] = b[i] | c[i]
	}
	return out
}

// Add makes b the union with c.
func (b Bits) Add(c Bits) {
	for i, w := range c {
		b[i] |= w
	}
}

// Keep takes out of b what is not in c.
func (b Bits) Keep(c Bits) {
	for i, w := range c {
		b[i] &= w
	}
}

// Remove takes the members of c out of b.
func (b Bits) Remove(c Bits) {
	for i, w := range c {
		b[i] &^= w
	}
}

// common returns how many integers are in both sets.
func (b Bits) common(c Bits) int {
	n := 0
	for i, w := range b {
		n += bits.OnesCount64(w & c[i])
	}
	return n
}

// Range is a half-open interval of indices.
type Range struct{ From, To int }

// Window is the words of Bits that have the integers of a range, which may be few of
// all. They are a set by themselves, of integers less than those of the words before.
type Window struct{ from, to int }

// Window returns the window with the integers of the range.
func (r Range) Window() Window { return Window{r.From / 64, (r.To + 63) / 64} }

// Of returns what of b is in the window. It is a part of b.
func (w Window) Of(b Bits) Bits { return b[w.from:w.to] }

// First is the integer that is 0 in the window.
func (w Window) First() int { return 64 * w.from }

// end is the first integer after the window.
func (w Window) end() int { return 64 * w.to }

// clip returns what of the range is in the window, as integers of its sets.
func (w Window) clip(r Range) Range {
	return Range{max(r.From, w.First()) - w.First(), min(r.To, w.end()) - w.First()}
}

// and is the words that are in both windows.
func (w Window) and(o Window) Window {
	from := max(w.from, o.from)
	return Window{from, max(from, min(w.to, o.to))}
}

// Empty returns a set for the integers of the window.
func (w Window) Empty() Bits { return make(Bits, w.to-w.from) }

// Add adds the integers of the range to a set of the window.
func (w Window) Add(b Bits, r Range) { b.addRange(Range{r.From - w.First(), r.To - w.First()}) }

// Any reports whether some integer of the range is in a set of the window.
func (w Window) Any(b Bits, r Range) bool { return b.Any(Range{r.From - w.First(), r.To - w.First()}) }

// Widen returns a set of the window as one for the integers 0 to n-1.
func (w Window) Widen(b Bits, n int) Bits {
	out := NewBits(n)
	copy(w.Of(out), b)
	return out
}

// addRange adds the integers of the range.
func (b Bits) addRange(r Range) {
	i := r.From
	for ; i < r.To && i%64 != 0; i++ {
		b.Set(i)
	}
	for ; i+64 <= r.To; i += 64 {
		b[i/64] = ^uint64(0)
	}
	for ; i < r.To; i++ {
		b.Set(i)
	}
}

// set adds the members of a list.
func (b Bits) set(list []int32) {
	for _, i := range list {
		b.Set(int(i))
	}
}

// unset takes the members of a list out of b.
func (b Bits) unset(list []int32) {
	for _, i := range list {
		b.Unset(int(i))
	}
}

// Any reports whether some integer of the range is in the set.
func (b Bits) Any(r Range) bool {
	for i := r.From; i < r.To; i = i&^63 + 64 {
		rest := b[i/64] >> (i % 64)
		if left := r.To - i; left < 64 {
			rest &= 1<<left - 1
		}
		if rest != 0 {
			return true
		}
	}
	return false
}

// In yields the members in the range in ascending order.
func (b Bits) In(r Range) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := r.From; i < r.To; i++ {
			rest := b[i/64] >> (i % 64)
			if rest == 0 {
				i |= 63
				continue
			}
			if i += bits.TrailingZeros64(rest); i >= r.To || !yield(i) {
				return
			}
		}
	}
}

// Less returns the members that are not in c.
func (b Bits) Less(c Bits) Bits {
	out := make(Bits, len(b))
	for i := range b {
		out[i] = b[i] &^ c[i]
	}
	return out
}

// Count returns how many integers are in the set.
func (b Bits) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty reports whether the set has no members.
func (b Bits) Empty() bool { return !slices.ContainsFunc(b, func(w uint64) bool { return w != 0 }) }

// Overlaps reports whether some integer is in both sets.
func (b Bits) Overlaps(c Bits) bool {
	for i, w := range b {
		if w&c[i] != 0 {
			return true
		}
	}
	return false
}

// Contains reports whether every member of c is in b.
func (b Bits) Contains(c Bits) bool {
	for i := range c {
		if c[i]&^b[i] != 0 {
			return false
		}
	}
	return true
}

// All yields the members in ascending order.
func (b Bits) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range b {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// Digest is equal for equal sets, and hardly ever for others.
func (b Bits) Digest() uint64 {
	h := uint64(len(b))
	for _, w := range b {
		h = mix(h, w)
	}
	return h
}

// mix returns the digest of what h is the digest of, and a word.
func mix(h, word uint64) uint64 { return bits.RotateLeft64((h^word)*0x9e3779b97f4a7c15, 29) }

// Key returns a text that is equal for equal sets.
func (b Bits) Key() string {
	out := make([]byte, 0, 8*len(b))
	for _, w := range b {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return string(out)
}
