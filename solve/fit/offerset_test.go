// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"math/rand/v2"
	"slices"
	"testing"

	"karpenter/model"
)

// TestOfferSet has sets of few and of many offers, which are stored differently, answer
// as their members do.
func TestOfferSet(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	draw := func(offers int) []int {
		var out []int
		share := rng.Float64()
		for o := range offers {
			if rng.Float64() < share*share*share {
				out = append(out, o)
			}
		}
		return out
	}
	bitsOf := func(offers int, list []int) Bits {
		out := NewBits(offers)
		for _, o := range list {
			out.Set(o)
		}
		return out
	}
	for range 1000 {
		offers := 1 + rng.IntN(300)
		members, other := draw(offers), draw(offers)
		cut := rng.IntN(len(members) + 1)
		bits := bitsOf(offers, members)
		for _, s := range []OfferSet{SetOf(offers, members[cut:], members[:cut]), compact(slices.Clone(bits))} {
			from := rng.IntN(offers)
			r := Range{from, from + rng.IntN(offers-from)}
			within := slices.ContainsFunc(members, func(o int) bool { return r.From <= o && o < r.To })
			common := slices.ContainsFunc(members, func(o int) bool { return slices.Contains(other, o) })
			switch {
			case !slices.Equal(slices.Collect(s.All()), members), !slices.Equal(s.Bits(), bits), s.Empty() != (len(members) == 0):
				t.Fatalf("seed %d: of %d offers, %v became %v", seed, offers, members, slices.Collect(s.All()))
			case s.Has(from) != slices.Contains(members, from):
				t.Fatalf("seed %d: %v has %d: %t", seed, members, from, s.Has(from))
			case s.Any(r) != within:
				t.Fatalf("seed %d: %v has some of %v: %t", seed, members, r, s.Any(r))
			case s.Count() != len(members):
				t.Fatalf("seed %d: %v has %d members", seed, members, s.Count())
			case !s.In(bitsOf(offers, members[:cut]), bitsOf(offers, members[cut:])), s.In(bitsOf(offers, other)) != slices.Equal(bitsOf(offers, other).And(bits), bits):
				t.Fatalf("seed %d: %v in %v: %t", seed, members, other, s.In(bitsOf(offers, other)))
			case s.Overlaps(bitsOf(offers, other)) != common:
				t.Fatalf("seed %d: %v overlaps %v: %t", seed, members, other, !common)
			}
		}
	}
}

// TestDivide divides offers by two labels, with those that lack one apart.
func TestDivide(t *testing.T) {
	sets := [][]int{{0, 1, 2, 3, 4}}
	for _, of := range [][]int32{{0, 1, 0, -1, 1}, {0, 0, 0, 0, 1}} {
		sets = divide(sets, &Spelling{Of: of, Labels: make([]model.Requirement, 2)}, make([]int, 5))
	}
	if want := [][]int{{0, 2}, {1}, {4}, {3}}; !slices.EqualFunc(sets, want, slices.Equal) {
		t.Errorf("divided into %v, want %v", sets, want)
	}
}
