// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
)

// OfferSet is a set of offers that is kept. It has no more words than those from its first
// offer to its last one, which in one pool are few of all, or a list of few offers. It is
// not changed. Equal sets are stored alike.
type OfferSet struct {
	bits   Bits // of the window; nil = list has the members
	window Window
	list   []int32 // ascending
	words  int     // of Bits
}

// mostListed is up to how many offers for each word of the window are a list: as many take
// half of the memory.
const mostListed = 1

// NewOfferSet returns the set, which keeps nothing of b.
func NewOfferSet(b Bits) OfferSet { return SetIn(Window{to: len(b)}, b, 64*len(b)) }

// SetIn returns a set of the window as one of so many offers there are.
func SetIn(w Window, b Bits, offers int) OfferSet {
	s, n := OfferSet{words: (offers + 63) / 64}, b.Count()
	if n == 0 {
		return s
	}
	filled := func(word uint64) bool { return word != 0 }
	from := slices.IndexFunc(b, filled)
	to := len(b)
	for b[to-1] == 0 {
		to--
	}
	if n > mostListed*(to-from) {
		s.window, s.bits = Window{w.from + from, w.from + to}, slices.Clone(b[from:to])
		return s
	}
	s.list = make([]int32, 0, n)
	for i := range b.All() {
		s.list = append(s.list, int32(w.First()+i))
	}
	return s
}

// Bits returns the set, which must not be changed.
func (s OfferSet) Bits() Bits {
	if s.bits != nil && len(s.bits) == s.words {
		return s.bits
	}
	out := make(Bits, s.words)
	copy(s.window.Of(out), s.bits)
	out.set(s.list)
	return out
}

// SetOf returns the set of the offers in the lists, each ascending, of so many offers
// there are.
func SetOf(offers int, lists ...[]int32) OfferSet {
	n, from, to := 0, offers, 0
	for _, list := range lists {
		if len(list) > 0 {
			n, from, to = n+len(list), min(from, int(list[0])), max(to, int(list[len(list)-1])+1)
		}
	}
	s, w := OfferSet{words: (offers + 63) / 64}, Range{from, to}.Window()
	if n == 0 {
		return s
	}
	if n > mostListed*(w.to-w.from) {
		s.window, s.bits = w, w.Empty()
		for _, list := range lists {
			for _, o := range list {
				s.bits.Set(int(o) - w.First())
			}
		}
		return s
	}
	s.list = make([]int32, 0, n)
	for _, list := range lists {
		s.list = append(s.list, list...)
	}
	if len(lists) > 1 {
		slices.Sort(s.list)
	}
	return s
}

// Part returns what of the set is in the window, as a new set of it.
func (s OfferSet) Part(w Window) Bits {
	out := w.Empty()
	if s.bits != nil {
		for i := range out {
			out[i] = s.word(w.from + i)
		}
		return out
	}
	for o := range s.In(Range{w.First(), w.end()}) {
		out.Set(o - w.First())
	}
	return out
}

// All yields the offers in ascending order.
func (s OfferSet) All() iter.Seq[int] {
	if s.bits != nil && s.window.from == 0 {
		return s.bits.All()
	}
	return func(yield func(int) bool) {
		for i := range s.bits.All() {
			if !yield(s.window.First() + i) {
				return
			}
		}
		for _, o := range s.list {
			if !yield(int(o)) {
				return
			}
		}
	}
}

// In yields the offers of the range in ascending order.
func (s OfferSet) In(r Range) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range s.bits.In(s.window.clip(r)) {
			if !yield(s.window.First() + i) {
				return
			}
		}
		at, _ := slices.BinarySearch(s.list, int32(r.From))
		for ; at < len(s.list) && int(s.list[at]) < r.To; at++ {
			if !yield(int(s.list[at])) {
				return
			}
		}
	}
}

// Any reports whether some offer of the range is in the set.
func (s OfferSet) Any(r Range) bool {
	if s.bits != nil {
		return s.bits.Any(s.window.clip(r))
	}
	i, _ := slices.BinarySearch(s.list, int32(r.From))
	return i < len(s.list) && int(s.list[i]) < r.To
}

// Keep takes out of a set of the window what is not in s.
func (s OfferSet) Keep(w Window, b Bits) { b.Keep(s.Part(w)) }

// word returns a word of the set as Bits have it.
func (s OfferSet) word(i int) uint64 {
	if i < s.window.from || i >= s.window.to {
		return 0
	}
	return s.bits[i-s.window.from]
}

// AddTo adds the offers to b.
func (s OfferSet) AddTo(b Bits) {
	if s.bits != nil {
		s.window.Of(b).Add(s.bits)
	}
	b.set(s.list)
}

// AndBits returns the offers that are in both sets.
func (s OfferSet) AndBits(b Bits) Bits {
	out := make(Bits, len(b))
	copy(s.window.Of(out), s.bits)
	s.window.Of(out).Keep(s.window.Of(b))
	for _, o := range s.list {
		if b.Has(int(o)) {
			out.Set(int(o))
		}
	}
	return out
}

// OverlapsBits reports whether some offer is in both sets.
func (s OfferSet) OverlapsBits(b Bits) bool {
	return s.bits.Overlaps(s.window.Of(b)) || slices.ContainsFunc(s.list, func(o int32) bool { return b.Has(int(o)) })
}

// Less returns the offers that are not in b.
func (s OfferSet) Less(b Bits) OfferSet {
	if s.bits != nil {
		return SetIn(s.window, s.bits.Less(s.window.Of(b)), 64*s.words)
	}
	return SetOf(64*s.words, slices.DeleteFunc(slices.Clone(s.list), func(o int32) bool { return b.Has(int(o)) }))
}

// Within reports whether every offer is in one of the other sets.
func (s OfferSet) Within(sets ...Bits) bool {
	for o := range s.All() {
		if !slices.ContainsFunc(sets, func(b Bits) bool { return b.Has(o) }) {
			return false
		}
	}
	return true
}

// Count returns how many offers there are.
func (s OfferSet) Count() int { return s.bits.Count() + len(s.list) }

// And returns the offers that are in both sets.
func (s OfferSet) And(o OfferSet) OfferSet {
	if s.bits != nil && o.bits != nil {
		w := s.window.and(o.window)
		both := s.Part(w)
		o.Keep(w, both)
		return SetIn(w, both, 64*s.words)
	}
	var common []int32
	for i := range s.Common(o) {
		common = append(common, int32(i))
	}
	return SetOf(64*s.words, common)
}

// Common yields the offers that are in both sets in ascending order.
func (s OfferSet) Common(o OfferSet) iter.Seq[int] {
	return func(yield func(int) bool) {
		if s.bits != nil && o.bits != nil {
			w := s.window.and(o.window)
			for i := w.from; i < w.to; i++ {
				for word := s.word(i) & o.word(i); word != 0; word &= word - 1 {
					if !yield(64*i + bits.TrailingZeros64(word)) {
						return
					}
				}
			}
			return
		}
		few, others := s, o
		if s.bits != nil {
			few, others = o, s
		}
		for _, i := range few.list {
			if others.Has(int(i)) && !yield(int(i)) {
				return
			}
		}
	}
}

// Overlaps reports whether some offer is in both sets.
func (s OfferSet) Overlaps(o OfferSet) bool {
	for range s.Common(o) {
		return true
	}
	return false
}

// Equal reports whether the sets are equal.
func (s OfferSet) Equal(o OfferSet) bool {
	return s.window == o.window && slices.Equal(s.bits, o.bits) && slices.Equal(s.list, o.list)
}

// Digest is equal for equal sets, and hardly ever for others.
func (s OfferSet) Digest() uint64 {
	h := s.bits.Digest() + uint64(s.window.from)
	for _, o := range s.list {
		h = mix(h, uint64(o))
	}
	return h
}

// Empty reports whether no offer is in the set.
func (s OfferSet) Empty() bool { return s.bits == nil && len(s.list) == 0 }

// Has reports whether an offer is in the set.
func (s OfferSet) Has(offer int) bool {
	if s.bits != nil {
		i := offer - s.window.First()
		return i >= 0 && i < 64*len(s.bits) && s.bits.Has(i)
	}
	_, ok := slices.BinarySearch(s.list, int32(offer))
	return ok
}

// Key is equal for equal sets.
func (s OfferSet) Key() string {
	if s.bits != nil {
		return string(binary.AppendUvarint(nil, uint64(s.window.from))) + s.bits.Key()
	}
	out := make([]byte, 0, 4*len(s.list))
	for _, i := range s.list {
		out = binary.LittleEndian.AppendUint32(out, uint32(i))
	}
	return string(out)
}
