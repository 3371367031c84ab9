// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"karpenter/model"
)

// TestInCommon checks of drawn types that what some of them have in common is each
// label that all of them list values for, with all these values.
func TestInCommon(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		w := newWording()
		var types []*model.InstanceType
		for i := range 1 + rng.IntN(8) {
			var all []model.Requirement
			for key := range 4 {
				operator := []model.Operator{model.In, model.In, model.In, model.NotIn, model.Exists}[rng.IntN(5)]
				values := []string{fmt.Sprint(rng.IntN(5)), fmt.Sprint(rng.IntN(5))}
				if operator == model.Exists {
					values = nil
				}
				if rng.IntN(6) > 0 {
					all = append(all, model.NewRequirement(fmt.Sprint("key-", key), operator, values...))
				}
			}
			types = append(types, &model.InstanceType{Name: fmt.Sprint("type-", i), Requirements: model.NewRequirements(all...)})
		}
		var some []*model.InstanceType
		for _, kind := range types {
			if rng.IntN(3) > 0 {
				some = append(some, kind)
			}
		}
		var want model.Requirements
		for key := range 4 {
			var values []string
			name, all := fmt.Sprint("key-", key), len(some) > 0
			for _, kind := range some {
				q, ok := kind.Requirements.Get(name)
				all = all && ok && !q.Complement
				values = append(values, q.Values...)
			}
			if all {
				want = want.And(model.NewRequirement(name, model.In, values...))
			}
		}
		w.inCommon(types) // labels and values are known that are not asked about
		if got := w.inCommon(some); !slices.EqualFunc(got, want, func(a, b model.Requirement) bool { return a.String() == b.String() }) {
			t.Fatalf("seed %d: %d types have %v in common, not %v", seed, len(some), got, want)
		}
	}
}
