// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"testing"
)

// TestManyTolerations compares taints with tolerations of their key as with all.
func TestManyTolerations(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	for range 2000 {
		var taints []Taint
		for range rng.IntN(4) {
			taints = append(taints, Taint{Key: one("a", "b", "c"), Value: one("", "x"), Effect: Effect(one("NoSchedule", "NoExecute"))})
		}
		var tolerations []Toleration
		for range rng.IntN(6) {
			tolerations = append(tolerations, Toleration{Key: one("a", "b", "c", ""), Exists: rng.IntN(2) == 0, Value: one("", "x"), Effect: Effect(one("", "NoSchedule"))})
		}
		want, bad := Untolerated(taints, tolerations)
		if got, also := untoleratedByKey(taints, tolerations); got != want || also != bad {
			t.Fatalf("seed %d: of %v with %v %v (%t) is not tolerated, want %v (%t)", seed, taints, tolerations, got, also, want, bad)
		}
	}
}
