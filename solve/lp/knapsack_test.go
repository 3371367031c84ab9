// SPDX-License-Identifier: Apache-2.0

package lp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestKnapsack checks strong duality: the least bound is what the filling the
// relaxation ends at is worth, and that filling fits.
func TestKnapsack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range 2000 {
		var k Knapsack
		k.Reset([]float64{1 + 9*rng.Float64(), 1 + 9*rng.Float64(), float64(1 + rng.IntN(9))})
		for range 1 + rng.IntN(12) {
			k.Add(rng.Float64(), float64(1+rng.IntN(5)), []float64{rng.Float64(), rng.Float64() * float64(rng.IntN(2)), 1})
		}
		price := make([]float64, 3)
		bound, _ := k.Relax(price)
		if worth := k.worth(); math.Abs(worth-bound) > 1e-9*(1+bound) {
			t.Fatalf("round %d: the bound is %g, the filling is worth %g", n, bound, worth)
		}
		for r, v := range k.Room {
			for i, x := range k.taken() {
				v -= x * k.Request[i*3+r]
			}
			if v < -1e-9 {
				t.Fatalf("round %d: the filling overdraws resource %d by %g", n, r, -v)
			}
		}
	}
}

// TestKnapsackAgain checks that a knapsack whose values change, or that is filled again after
// a Reset, is worth what a new one is.
func TestKnapsackAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var k Knapsack
	for n := range 500 {
		var anew Knapsack
		k.Reset([]float64{1 + 9*rng.Float64(), 1 + 9*rng.Float64(), float64(1 + rng.IntN(9))})
		for range 1 + rng.IntN(20) {
			k.Add(0, float64(1+rng.IntN(5)), []float64{rng.Float64(), rng.Float64() * float64(rng.IntN(2)), 1})
		}
		price := make([]float64, 3)
		for again := range 40 {
			anew.Reset(k.Room)
			for i := range k.Value {
				k.Value[i] = max(rng.Float64()-0.2, 0)
				anew.Add(k.Value[i], k.Most[i], k.Request[i*3:i*3+3])
			}
			bound, _ := k.RelaxAgain(price)
			if least, _ := anew.Relax(price); math.Abs(least-bound) > 1e-9*(1+least) {
				t.Fatalf("round %d: after %d changes of values the bound is %g, not %g", n, again, bound, least)
			}
		}
	}
}

// taken returns how much of each item the last relaxation took.
func (k *Knapsack) taken() []float64 {
	out := make([]float64, len(k.Value))
	for i, full := range k.full {
		if full {
			out[i] = k.Most[i]
		}
	}
	for b, at := range k.basis {
		if at >= 0 {
			out[at] = k.amount[b]
		}
	}
	return out
}

func (k *Knapsack) worth() float64 {
	sum := 0.0
	for i, x := range k.taken() {
		sum += x * k.Value[i]
	}
	return sum
}
