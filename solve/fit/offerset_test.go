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
		bits, others := bitsOf(offers, members), bitsOf(offers, other)
		o := NewOfferSet(others)
		for _, s := range []OfferSet{SetOf(offers, short(members[cut:]), short(members[:cut])), NewOfferSet(bits)} {
			from := rng.IntN(offers)
			r := Range{from, from + rng.IntN(offers-from)}
			outside := func(o int) bool { return o < r.From || r.To <= o }
			among := slices.DeleteFunc(slices.Clone(members), outside)
			added, window := slices.Clone(others), r.Window()
			s.AddTo(added)
			for what, wrong := range map[string]bool{
				"All":          !slices.Equal(slices.Collect(s.All()), members),
				"Bits":         !slices.Equal(s.Bits(), bits),
				"Empty":        s.Empty() != (len(members) == 0),
				"Has":          s.Has(from) != slices.Contains(members, from),
				"In":           !slices.Equal(slices.Collect(s.In(r)), among),
				"Any":          s.Any(r) != (len(among) > 0),
				"Count":        s.Count() != len(members),
				"Within":       s.Within(others) != slices.Equal(others.And(bits), bits),
				"Within parts": !s.Within(bitsOf(offers, members[:cut]), bitsOf(offers, members[cut:])),
				"Part":         !slices.Equal(s.Part(window), window.Of(bits)),
				"AddTo":        !slices.Equal(added, bits.Or(others)),
				"AndBits":      !slices.Equal(s.AndBits(others), bits.And(others)),
				"And":          !s.And(o).Equal(NewOfferSet(bits.And(others))),
				"Less":         !s.Less(others).Equal(NewOfferSet(bits.Less(others))),
				"Overlaps":     s.Overlaps(o) != bits.Overlaps(others),
				"OverlapsBits": s.OverlapsBits(others) != bits.Overlaps(others),
				"Equal":        s.Equal(o) != slices.Equal(bits, others),
				"Key":          (s.Key() == o.Key()) != slices.Equal(bits, others),
				"Digest":       s.Digest() != NewOfferSet(bits).Digest(),
			} {
				if wrong {
					t.Fatalf("seed %d: %s is wrong for %v and %v of %d offers, and for %v", seed, what, members, other, offers, r)
				}
			}
		}
	}
}

// drawOffers draws some of the offers in a range, ascending.
func drawOffers(rng *rand.Rand, offers int) []int {
	var out []int
	share, from := rng.Float64(), rng.IntN(offers)
	for o := from; o < from+1+rng.IntN(offers-from); o++ {
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
		for _, s := range []OfferSet{SetOf(offers, short(members)), NewOfferSet(bitsOf(offers, members))} {
			kept := slices.Clone(part)
			if s.Keep(w, kept); !slices.Equal(w.Widen(kept, offers), want) {
				t.Fatalf("seed %d: of %v, %v keep %v", seed, r, members, kept)
			}
			if got := SetIn(w, kept, offers); !slices.Equal(got.Bits(), want) || got.Key() != NewOfferSet(want).Key() {
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
