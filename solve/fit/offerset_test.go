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
	for range 1000 {
		offers := 1 + rng.IntN(300)
		members, other := drawOffers(rng, offers), drawOffers(rng, offers)
		cut := rng.IntN(len(members) + 1)
		bits := bitsOf(offers, members)
		for _, s := range []OfferSet{SetOf(offers, short(members[cut:]), short(members[:cut])), compact(slices.Clone(bits))} {
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

// drawOffers draws some of the offers, ascending.
func drawOffers(rng *rand.Rand, offers int) []int {
	var out []int
	share := rng.Float64()
	for o := range offers {
		if rng.Float64() < share*share*share {
			out = append(out, o)
		}
	}
	return out
}

// short returns the list as sets store it.
func short(list []int) []int32 {
	var out []int32
	for _, o := range list {
		out = append(out, int32(o))
	}
	return out
}

func bitsOf(offers int, list []int) Bits {
	out := NewBits(offers)
	for _, o := range list {
		out.Set(o)
	}
	return out
}

// TestWindow has sets of a window answer as those of all offers do.
func TestWindow(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 1000 {
		offers := 1 + rng.IntN(1000)
		from := rng.IntN(offers)
		r := Range{from, from + rng.IntN(offers-from+1)}
		all := NewBits(offers)
		all.addRange(r)
		w := r.Window()
		part := w.Empty()
		w.Add(part, r)
		if !slices.Equal(w.Widen(part, offers), all) {
			t.Fatalf("seed %d: %v of %d offers became %v", seed, r, offers, part)
		}
		members := drawOffers(rng, offers)
		want := bitsOf(offers, members).And(all)
		for _, s := range []OfferSet{SetOf(offers, short(members)), compact(bitsOf(offers, members))} {
			kept := slices.Clone(part)
			if s.Keep(w, kept); !slices.Equal(w.Widen(kept, offers), want) {
				t.Fatalf("seed %d: of %v, %v keep %v", seed, r, members, kept)
			}
			if got := SetIn(w, kept, offers); !slices.Equal(got.Bits(), want) || got.Key() != compact(want).Key() {
				t.Fatalf("seed %d: %v of %v became %v", seed, members, r, got)
			}
			if some := (Range{r.From, r.From + (r.To-r.From)/2}); w.Any(kept, some) != want.Any(some) {
				t.Fatalf("seed %d: %v has some of %v: %t", seed, want, some, w.Any(kept, some))
			}
		}
	}
}

// TestDivide divides offers by two labels, with those that lack one apart.
func TestDivide(t *testing.T) {
	sets := [][]int32{{0, 1, 2, 3, 4}}
	for _, of := range [][]int32{{0, 1, 0, -1, 1}, {0, 0, 0, 0, 1}} {
		sets = divide(sets, &Spelling{Of: of, Labels: make([]model.Requirement, 2)}, make([]int32, 5), nil)
	}
	if want := [][]int32{{0, 2}, {1}, {4}, {3}}; !slices.EqualFunc(sets, want, slices.Equal) {
		t.Errorf("divided into %v, want %v", sets, want)
	}
}
