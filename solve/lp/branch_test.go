// SPDX-License-Identifier: Apache-2.0

package lp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBrancher compares what whole items are worth at most with all ways to take some.
func TestBrancher(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	var b Brancher
	for range 2000 {
		var k Knapsack
		k.Reset([]float64{1, float64(rng.IntN(2)), 1})
		for range 1 + rng.IntN(6) {
			k.Add(max(rng.Float64()-0.1, 0), float64(rng.IntN(4)), []float64{1 / float64(1+rng.IntN(4)), rng.Float64() * float64(rng.IntN(2)), 0.2})
		}
		relaxed, _ := k.Relax(make([]float64, 3))
		best := bestWhole(&k, k.Room, 0)
		for _, branches := range []int{0, 2, 1 << 12} {
			limit, taken := b.Most(&k, branches)
			if limit < best-1e-9 || limit > relaxed+1e-9 {
				t.Fatalf("seed %d: with %d branches the room of %+v is worth %g, want at least %g and at most %g", seed, branches, k, limit, best, relaxed)
			}
			if exact := branches > 100; exact && limit > best+1e-4 {
				t.Fatalf("seed %d: the room of %+v is worth %g, want %g", seed, k, limit, best)
			}
			worth := 0.0
			for i, n := range taken {
				if worth += n * k.Value[i]; n < 0 || n > k.Most[i] {
					t.Fatalf("seed %d: of %+v, %v are taken", seed, k, taken)
				}
			}
			if math.Abs(worth-limit) > 1e-4 {
				t.Fatalf("seed %d: %v of %+v are worth %g, not %g", seed, taken, k, worth, limit)
			}
		}
	}
}

// bestWhole tries all ways to fill the room with items from this one on.
func bestWhole(k *Knapsack, room []float64, item int) float64 {
	if item == len(k.Value) {
		return 0
	}
	best, left := 0.0, append([]float64(nil), room...)
	for n := 0.0; n <= k.Most[item]; n++ {
		best = max(best, n*k.Value[item]+bestWhole(k, left, item+1))
		for r := range left {
			if left[r] -= k.Request[3*item+r]; left[r] < -1e-9 {
				return best
			}
		}
	}
	return best
}
