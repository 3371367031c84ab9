// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"karpenter/solve/fit"
	"karpenter/solve/work"
)

// problems runs f on random problems of a fresh seed, which it prints when f finds
// something wrong.
func problems(t *testing.T, n int, items int, f func(p *Problem, rng *rand.Rand) error) {
	t.Helper()
	seed := rand.Uint64()
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		p := draw(rng, items)
		if err := f(p, rng); err != nil {
			t.Fatalf("seed %d, problem %d: %v\n%+v", seed, i, err, p)
		}
	}
}

// draw draws a problem of up to so many items, with every kind of rule.
func draw(rng *rand.Rand, most int) *Problem {
	p := &Problem{Groups: []int{1 + rng.IntN(4), 1 + rng.IntN(2)}, Limits: []int64{math.MaxInt64}}
	limited := rng.IntN(3) == 0
	if limited {
		p.Limits[0] = int64(rng.IntN(60))
	}
	for range 1 + rng.IntN(6) {
		size := int64(1 + rng.IntN(16))
		c := Candidate{
			Price: float64(size) * (0.5 + rng.Float64()), Room: []int64{size * 1000, size * int64(1000+rng.IntN(3000)), int64(1 + rng.IntN(20))},
			Serves: fit.NewBits(3),
		}
		for class := range 3 {
			if rng.IntN(4) > 0 {
				c.Serves.Set(class)
			}
		}
		if limited {
			c.Uses = []Use{{0, size}}
		}
		p.Candidates = append(p.Candidates, c)
	}
	slices.SortFunc(p.Candidates, func(a, b Candidate) int { return int(math.Copysign(1, a.Price-b.Price)) })
	n := 1 + rng.IntN(most)
	for range n {
		it := Item{Request: []int64{int64(rng.IntN(4000)), int64(rng.IntN(6000)), 1}, Count: 1 + rng.IntN(12), Class: rng.IntN(3)}
		it.Most = max(rng.IntN(6)-2, 0)
		for g := range p.Groups {
			if rng.IntN(5) == 0 {
				it.Groups = append(it.Groups, g)
			}
		}
		p.Items = append(p.Items, it)
	}
	for range rng.IntN(n) {
		a, b := rng.IntN(n), rng.IntN(n)
		if a == b {
			continue
		}
		for _, pair := range [][2]int{{a, b}, {b, a}} {
			if p.Items[pair[0]].Apart == nil {
				p.Items[pair[0]].Apart = fit.NewBits(n)
			}
			p.Items[pair[0]].Apart.Set(pair[1])
		}
	}
	return p
}

// check returns what is wrong with a cover.
func check(p *Problem, r *Result) error {
	placed, used := make([]int, len(p.Items)), slices.Clone(p.Limits)
	for _, n := range r.Nodes {
		c := &p.Candidates[n.Candidate]
		room, grouped := slices.Clone(c.Room), make([]int, len(p.Groups))
		for _, t := range n.Take {
			it := &p.Items[t.Item]
			placed[t.Item] += t.Pods * n.Count
			for d, v := range it.Request {
				room[d] -= v * int64(t.Pods)
			}
			for _, g := range it.Groups {
				grouped[g] += t.Pods
			}
			switch {
			case t.Pods <= 0:
				return fmt.Errorf("a portion of %d pods", t.Pods)
			case !c.Serves.Has(it.Class):
				return fmt.Errorf("candidate %d does not serve item %d", n.Candidate, t.Item)
			case it.Most > 0 && t.Pods > it.Most:
				return fmt.Errorf("%d pods of item %d on a node", t.Pods, t.Item)
			case it.Apart != nil && slices.ContainsFunc(n.Take, func(o Portion) bool { return it.Apart.Has(o.Item) }):
				return fmt.Errorf("item %d shares a node with one it is kept apart from", t.Item)
			}
		}
		if slices.Min(room) < 0 {
			return fmt.Errorf("candidate %d is overfull: %v left", n.Candidate, room)
		}
		for g, pods := range grouped {
			if pods > p.Groups[g] {
				return fmt.Errorf("%d pods of group %d on a node", pods, g)
			}
		}
		for _, u := range c.Uses {
			used[u.Limit] -= u.Amount * int64(n.Count)
		}
	}
	for i := range used {
		if used[i] < 0 && p.Limits[i] >= 0 {
			return fmt.Errorf("limit overshot by %d", -used[i])
		}
	}
	for i := range p.Items {
		if placed[i]+r.Left[i] != p.Items[i].Count {
			return fmt.Errorf("item %d: %d pods placed and %d left of %d", i, placed[i], r.Left[i], p.Items[i].Count)
		}
		for c := range p.Candidates {
			if r.Left[i] > 0 && len(used) == 0 && p.Candidates[c].Serves.Has(p.Items[i].Class) && whole(p.Candidates[c].Room, p.Items[i].Request) > 0 {
				return fmt.Errorf("item %d is left, but candidate %d takes it", i, c)
			}
		}
	}
	return nil
}

func cost(p *Problem, r *Result) float64 {
	sum := 0.0
	for _, n := range r.Nodes {
		sum += p.Candidates[n.Candidate].Price * float64(n.Count)
	}
	return sum
}

// TestCoverIsValid holds covers of random problems against every rule, with a
// budget that suffices, with one that ends anywhere, and with rows of several
// items.
func TestCoverIsValid(t *testing.T) {
	problems(t, 400, 12, func(p *Problem, rng *rand.Rand) error {
		for _, steps := range []int64{1 << 40, rng.Int64N(200_000), 0} {
			for _, rows := range []int{0, 3} {
				r := Solve(p, Options{Most: math.Inf(1), Rows: rows, Prove: true}, work.New(steps))
				if err := check(p, r); err != nil {
					return fmt.Errorf("%d steps, %d rows: %w", steps, rows, err)
				}
			}
		}
		return nil
	})
}

// TestProofHolds compares what is proved with what a cover costs: were the proof
// wrong, some cover would be cheaper than it says is possible.
func TestProofHolds(t *testing.T) {
	problems(t, 600, 6, func(p *Problem, rng *rand.Rand) error {
		p.Limits, p.Candidates = nil, slices.Clone(p.Candidates)
		for c := range p.Candidates {
			p.Candidates[c].Uses = nil
		}
		r := Solve(p, Unlimited(), work.New(1<<40))
		rough, roughMaster := Values(p, Options{Most: math.Inf(1), Rows: 2}, work.New(1<<40))
		for _, steps := range []int64{1 << 40, rng.Int64N(50_000), 0} {
			for _, values := range [][]float64{r.Values, scaled(r.Values, 1+rng.Float64()), rough} {
				for _, towards := range [][]float64{nil, r.Master, scaled(r.Master, 1+rng.Float64()), roughMaster} {
					bound := 0.0
					for i, v := range Prove(p, values, towards, work.New(steps)) {
						bound += v * float64(p.Items[i].Count-r.Left[i])
					}
					if c := cost(p, r); bound > c*(1+1e-9) {
						return fmt.Errorf("%d steps: a bound of %g, but a cover costs %g", steps, bound, c)
					}
				}
			}
		}
		return nil
	})
}

// TestNoNodeIsWorthMoreThanItsPrice looks at every candidate again, knowing nothing of how
// the values were lowered and raised.
func TestNoNodeIsWorthMoreThanItsPrice(t *testing.T) {
	problems(t, 1500, 12, func(p *Problem, rng *rand.Rand) error {
		values, master := Values(p, Options{Most: math.Inf(1), Rows: 1 + rng.IntN(8)}, work.New(1<<40))
		for i := range master {
			master[i] *= 1 + rng.Float64()
		}
		proven := Prove(p, values, master, work.New(1<<40))
		for c := range p.Candidates {
			again := newItemPricer(p, work.New(1<<40))
			again.values = again.highest(proven)
			price := p.Candidates[c].Price - p.Epsilon
			worth := again.limit(c, 0)
			if _, exact := again.search(c); min(worth, exact) > price*(1+negligible) { // search follows no branch that is closer
				return fmt.Errorf("candidate %d costs %g, and a node of it may be worth %g", c, price, min(worth, exact))
			}
		}
		return nil
	})
}

// TestCoverIsCheap compares with the best cover of one item, which is a knapsack
// that can be solved by trying everything.
func TestCoverIsCheap(t *testing.T) {
	worse, tried := 0, 0
	problems(t, 500, 1, func(p *Problem, _ *rand.Rand) error {
		p.Limits, p.Groups, p.Items[0].Groups = nil, nil, nil
		p.Items[0].Count = min(p.Items[0].Count, 8)
		for c := range p.Candidates {
			p.Candidates[c].Uses = nil
		}
		r := Solve(p, Unlimited(), work.New(1<<40))
		if r.Left[0] > 0 {
			return nil
		}
		best := make([]float64, p.Items[0].Count+1)
		for n := 1; n < len(best); n++ {
			best[n] = math.Inf(1)
			for c := range p.Candidates {
				fits := whole(p.Candidates[c].Room, p.Items[0].Request)
				if most := p.Items[0].Most; most > 0 {
					fits = min(fits, most)
				}
				if fits > 0 && p.Candidates[c].Serves.Has(p.Items[0].Class) {
					best[n] = min(best[n], p.Candidates[c].Price+best[max(n-fits, 0)])
				}
			}
		}
		tried++
		if got := cost(p, r); got > best[len(best)-1]*1.01 {
			worse++
		} else if got < best[len(best)-1]*(1-1e-9) {
			return fmt.Errorf("a cover costs %g, less than the best, %g", got, best[len(best)-1])
		}
		return nil
	})
	if worse > tried/100 {
		t.Errorf("%d of %d covers cost over 1%% more than the best", worse, tried)
	}
}

// TestManyNodesForOneItem: where one node takes only one pod of each item, the items with
// most pods are all that the cover costs, and many others with few pods must not hide that
// in the values.
func TestManyNodesForOneItem(t *testing.T) {
	p := &Problem{Candidates: []Candidate{{Price: 1, Room: []int64{1000}, Serves: fit.NewBits(1)}}}
	p.Candidates[0].Serves.Set(0)
	for i := range 3 * fewRows {
		p.Items = append(p.Items, Item{Request: []int64{int64(1 + i%5)}, Count: 2 + i%3, Most: 1})
	}
	p.Items[7].Count = 190
	r := Solve(p, Unlimited(), nil)
	if r.Count() != 190 {
		t.Errorf("%d nodes, want 190", r.Count())
	}
	sum := 0.0
	for i, v := range Prove(p, r.Values, nil, nil) {
		sum += v * float64(p.Items[i].Count)
	}
	if sum < 189 {
		t.Errorf("the values prove %.1f, want 190", sum)
	}
}
