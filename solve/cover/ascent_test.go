// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"karpenter/solve/fit"
	"karpenter/solve/work"
)

// TestAscentHolds asks of every candidate whether some node of it is worth more than
// it costs at the values that the ascent finds.
func TestAscentHolds(t *testing.T) {
	problems(t, 400, 12, func(p *Problem, rng *rand.Rand) error {
		budget := work.New(rng.Int64N(100_000))
		s := newSolver(p, budget)
		pr := newPricer(s, s.items)
		for i := range p.Items {
			pr.count[i] = p.Items[i].Count
		}
		copy(pr.values, pr.ascend().best)
		for c := range p.Candidates {
			if worth, price := pr.limit(c, 0), p.Candidates[c].Price; worth > price*(1+1e-9) {
				return fmt.Errorf("candidate %d is worth %g and costs %g", c, worth, price)
			}
		}
		return nil
	})
}

// TestStartSavesWork covers problems within limits: one that starts with what a problem without them
// found has the same cover, and takes less work.
func TestStartSavesWork(t *testing.T) {
	var with, without int64
	problems(t, 400, 12, func(p *Problem, _ *rand.Rand) error {
		free := *p
		free.Limits = []int64{math.MaxInt64}
		o := Unlimited()
		afresh, started := work.New(math.MaxInt64), work.New(math.MaxInt64)
		want := Solve(p, o, afresh)
		o.Start = Solve(&free, o, nil).Start
		got := Solve(p, o, started)
		with, without = with+started.Used(), without+afresh.Used()
		if !reflect.DeepEqual(got.Nodes, want.Nodes) || !slices.Equal(got.Values, want.Values) {
			return fmt.Errorf("%+v with values %v, and afresh %+v with values %v", got.Nodes, got.Values, want.Nodes, want.Values)
		}
		return nil
	})
	if with >= without {
		t.Errorf("%d steps, and %d afresh", with, without)
	}
}

// TestAscentIsTight compares with what nodes cost that are filled in fractions, where
// that is easy to see.
func TestAscentIsTight(t *testing.T) {
	serves := fit.NewBits(1)
	serves.Set(0)
	both := []Item{{Request: []int64{2, 1}, Count: 100}, {Request: []int64{1, 2}, Count: 50}}
	for _, c := range []struct {
		name  string
		items []Item
		want  float64
	}{
		{"250 of the first resource, of which a node has 20", both, 12.5 * 10},
		{"40 nodes for the sake of pods that share none, and room there for all others", append(both, Item{Request: []int64{1, 1}, Count: 40, Most: 1}), 40 * 10},
	} {
		p := &Problem{Candidates: []Candidate{{Price: 10, Room: []int64{20, 20}, Serves: serves}}, Items: c.items}
		s := newSolver(p, nil)
		pr := newPricer(s, s.items)
		for i := range p.Items {
			pr.count[i] = p.Items[i].Count
		}
		sum := 0.0
		for i, v := range pr.ascend().best {
			sum += v * float64(p.Items[i].Count)
		}
		if sum < 0.99*c.want || sum > c.want*(1+1e-9) {
			t.Errorf("%s: values of %g, want %g", c.name, sum, c.want)
		}
	}
}
