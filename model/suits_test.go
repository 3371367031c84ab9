// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSuits compares Suits with all alternatives, on labels of which some are not settled.
func TestSuits(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	keys, values := []string{"a", "b", "c"}, []string{"1", "2", "3"}
	requirement := func() Requirement {
		key := keys[rng.IntN(len(keys))]
		switch op := []Operator{In, NotIn, Exists, DoesNotExist}[rng.IntN(4)]; op {
		case In, NotIn:
			return NewRequirement(key, op, values[rng.IntN(3)], values[rng.IntN(3)])
		default:
			return NewRequirement(key, op)
		}
	}
	some := func(most int) Requirements {
		var out Requirements
		for range rng.IntN(most + 1) {
			out = out.And(requirement())
		}
		return out
	}
	terms := func() []Requirements {
		var out []Requirements
		for range rng.IntN(3) {
			out = append(out, some(2))
		}
		return out
	}
	suited := 0
	for range 5000 {
		labels := some(3)
		s := &Shape{Selector: some(1), Terms: terms(), VolumeTerms: terms(), DeviceTerms: terms(), GroupTerms: terms()}
		want := slices.ContainsFunc(s.Alternatives(), func(alt Requirements) bool { _, ok := labels.Satisfies(alt); return ok })
		if s.Suits(labels) != want {
			t.Fatalf("seed %d: %v suits %v with %v, %v, %v and %v: %t, want %t", seed, labels, s.Selector, s.Terms, s.VolumeTerms, s.DeviceTerms, s.GroupTerms, !want, want)
		}
		if want {
			suited++
		}
	}
	if suited == 0 {
		t.Errorf("seed %d: no labels suit any shape", seed)
	}
}
