// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"encoding/binary"
	"slices"
)

// offerSet is a set of offers that is kept: of few members a list. Most of many
// alternatives leave few.
type offerSet struct {
	bits  Bits    // nil = list has the members
	list  []int32 // ascending
	words int     // of Bits
}

// compact returns the set. It keeps b, unless that has few members.
func compact(b Bits) offerSet {
	n := b.Count()
	if n > len(b)/2 {
		return offerSet{bits: b, words: len(b)}
	}
	s := offerSet{words: len(b)}
	if n > 0 {
		s.list = make([]int32, 0, n)
	}
	for i := range b.All() {
		s.list = append(s.list, int32(i))
	}
	return s
}

// Bits returns the set, which must not be changed.
func (s offerSet) Bits() Bits {
	if s.bits != nil {
		return s.bits
	}
	out := make(Bits, s.words)
	for _, i := range s.list {
		out.Set(int(i))
	}
	return out
}

// and returns the offers that are in both sets.
func (s offerSet) and(o offerSet) offerSet {
	if s.bits != nil && o.bits != nil {
		return compact(s.bits.And(o.bits))
	}
	if s.bits != nil {
		s, o = o, s
	}
	out := offerSet{words: s.words}
	for _, i := range s.list {
		if o.Has(int(i)) {
			out.list = append(out.list, i)
		}
	}
	return out
}

// Empty reports whether no offer is in the set.
func (s offerSet) Empty() bool { return s.bits == nil && len(s.list) == 0 }

// Has reports whether an offer is in the set.
func (s offerSet) Has(offer int) bool {
	if s.bits != nil {
		return s.bits.Has(offer)
	}
	_, ok := slices.BinarySearch(s.list, int32(offer))
	return ok
}

// Key is equal for equal sets.
func (s offerSet) Key() string {
	if s.bits != nil {
		return s.bits.Key()
	}
	out := make([]byte, 0, 4*len(s.list))
	for _, i := range s.list {
		out = binary.LittleEndian.AppendUint32(out, uint32(i))
	}
	return string(out)
}
