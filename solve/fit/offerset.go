// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"encoding/binary"
	"iter"
	"slices"
)

// OfferSet is a set of offers that is kept: of few members a list. Most of many
// alternatives leave few. It is not changed.
type OfferSet struct {
	bits  Bits    // nil = list has the members
	list  []int32 // ascending
	words int     // of Bits
}

// mostListed is up to how many offers for each word of Bits are a list: as many take
// half of the memory.
const mostListed = 1

// compact returns the set. It keeps b, unless that has few members.
func compact(b Bits) OfferSet {
	if b.Count() > mostListed*len(b) {
		return OfferSet{bits: b, words: len(b)}
	}
	return SetIn(Window{to: len(b)}, b, 64*len(b))
}

// SetIn returns a set of the window as one of so many offers there are.
func SetIn(w Window, b Bits, offers int) OfferSet {
	s := OfferSet{words: (offers + 63) / 64}
	n := b.Count()
	if n > mostListed*s.words {
		s.bits = w.Widen(b, offers)
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
	if s.bits != nil {
		return s.bits
	}
	out := make(Bits, s.words)
	for _, i := range s.list {
		out.Set(int(i))
	}
	return out
}

// SetOf returns the set of the offers in the lists, each ascending, of so many offers
// there are.
func SetOf(offers int, lists ...[]int32) OfferSet {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	s := OfferSet{words: (offers + 63) / 64}
	if n > mostListed*s.words {
		s.bits = NewBits(offers)
	} else {
		s.list = make([]int32, 0, n)
	}
	for _, list := range lists {
		if s.bits != nil {
			s.bits.set(list)
		} else {
			s.list = append(s.list, list...)
		}
	}
	if len(lists) > 1 {
		slices.Sort(s.list)
	}
	return s
}

// All yields the offers in ascending order.
func (s OfferSet) All() iter.Seq[int] {
	if s.bits != nil {
		return s.bits.All()
	}
	return func(yield func(int) bool) {
		for _, o := range s.list {
			if !yield(int(o)) {
				return
			}
		}
	}
}

// Keep takes out of a set of the window what is not in s.
func (s OfferSet) Keep(w Window, b Bits) {
	if s.bits != nil {
		b.Keep(w.Of(s.bits))
		return
	}
	both := w.Empty()
	from, _ := slices.BinarySearch(s.list, int32(w.First()))
	for _, i := range s.list[from:] {
		if int(i) >= w.end() {
			break
		}
		if b.Has(int(i) - w.First()) {
			both.Set(int(i) - w.First())
		}
	}
	copy(b, both)
}

// Overlaps reports whether some offer is in both sets.
func (s OfferSet) Overlaps(b Bits) bool {
	if s.bits != nil {
		return s.bits.Overlaps(b)
	}
	return slices.ContainsFunc(s.list, func(o int32) bool { return b.Has(int(o)) })
}

// In reports whether every offer is in one of the other sets.
func (s OfferSet) In(sets ...Bits) bool {
	for o := range s.All() {
		if !slices.ContainsFunc(sets, func(b Bits) bool { return b.Has(o) }) {
			return false
		}
	}
	return true
}

// Count returns how many offers there are.
func (s OfferSet) Count() int {
	if s.bits != nil {
		return s.bits.Count()
	}
	return len(s.list)
}

// Any reports whether some offer of the range is in the set.
func (s OfferSet) Any(r Range) bool {
	if s.bits != nil {
		return s.bits.Any(r)
	}
	i, _ := slices.BinarySearch(s.list, int32(r.From))
	return i < len(s.list) && int(s.list[i]) < r.To
}

// and returns the offers that are in both sets.
func (s OfferSet) and(o OfferSet) OfferSet {
	if s.bits != nil && o.bits != nil {
		return compact(s.bits.And(o.bits))
	}
	if s.bits != nil {
		s, o = o, s
	}
	out := OfferSet{words: s.words}
	for _, i := range s.list {
		if o.Has(int(i)) {
			out.list = append(out.list, i)
		}
	}
	return out
}

// Empty reports whether no offer is in the set.
func (s OfferSet) Empty() bool { return s.bits == nil && len(s.list) == 0 }

// Has reports whether an offer is in the set.
func (s OfferSet) Has(offer int) bool {
	if s.bits != nil {
		return s.bits.Has(offer)
	}
	_, ok := slices.BinarySearch(s.list, int32(offer))
	return ok
}

// Key is equal for equal sets.
func (s OfferSet) Key() string {
	if s.bits != nil {
		return s.bits.Key()
	}
	out := make([]byte, 0, 4*len(s.list))
	for _, i := range s.list {
		out = binary.LittleEndian.AppendUint32(out, uint32(i))
	}
	return string(out)
}
