// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/sim/upstream"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

const most = 200 // commands, passes

var (
	seeds = flag.Uint64("seeds", 6, "half-empty clusters of each kind")
	first = flag.Uint64("first", 0, "seed of the first of them")
)

// mostOver is what clusters cost on average in units of the bound, at most. The clusters are
// launched by the planner, so that every change of it draws others: the average of two varies by a hundredth.
const mostOver = 1.05

// TestHalfEmptyClusters has half of the pods leave clusters of few large nodes and
// of many cheap ones, and consolidates what is left by our rules and by upstream's.
// On average we end below upstream and at most at mostOver of what is proven to be the
// least; of twelve clusters, one ends 0.9% above upstream. The log tells how many pods move for that, and how many had moved when we had
// saved what upstream saves.
func TestHalfEmptyClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("many plans")
	}
	sums := map[string]*sum{}
	for seed := *first; seed < *first+*seeds; seed++ {
		for _, start := range []struct {
			name    string
			premium float64
		}{{"few large nodes", 1000}, {"cheap nodes", 0.01}} {
			t.Run(fmt.Sprintf("%s, seed %d", start.name, seed), func(t *testing.T) {
				s, bound := halfEmpty(t, rand.New(rand.NewPCG(seed, 3)), start.premium)
				from := solvetest.Spent(s)
				var planner solve.Planner
				ours := consolidate(s, planner.Decide)
				theirs := consolidate(s, new(upstream.Rules).Decide)
				t.Logf("$%.2f/h, at least $%.2f/h\nours   %s, %.0f pods for what theirs saves\ntheirs %s",
					from.Dollars(), bound.Dollars(), ours.text(from, bound), ours.movedFor(from-theirs.cost), theirs.text(from, bound))
				if sums[start.name] == nil {
					sums[start.name] = &sum{}
				}
				sums[start.name].add(from, bound, &ours, &theirs)
				if over := float64(ours.cost) / float64(bound); over > 1.1 {
					t.Errorf("it ends at %.3f of the bound", over)
				}
				if float64(ours.cost) > 1.01*float64(theirs.cost) {
					t.Errorf("it ends at $%.2f/h, by upstream's rules at $%.2f/h", ours.cost.Dollars(), theirs.cost.Dollars())
				}
			})
		}
	}
	for name, s := range sums {
		t.Logf("from %s, on average of %.0f: it ends at %.3f of the bound, by upstream's rules at %.3f; for the saving of upstream's rules %.0f pods are moved, by upstream's rules %.0f; for each dollar per hour in all %.1f and %.1f",
			name, s.n, s.over/s.n, s.theirOver/s.n, s.moved/s.n, s.theirMoved/s.n, s.perDollar/s.n, s.theirPerDollar/s.n)
		if s.over >= s.theirOver {
			t.Errorf("from %s it ends at %.3f of the bound on average, by upstream's rules at %.3f", name, s.over/s.n, s.theirOver/s.n)
		}
		if mean := s.over / s.n; mean > mostOver {
			t.Errorf("from %s it ends at %.3f of the bound on average", name, mean)
		}
	}
}

// sum adds up what became of clusters.
type sum struct {
	n, over, theirOver, moved, theirMoved, perDollar, theirPerDollar float64
}

func (s *sum) add(from, bound model.Price, ours, theirs *account) {
	s.n++
	s.over += float64(ours.cost) / float64(bound)
	s.theirOver += float64(theirs.cost) / float64(bound)
	s.moved += ours.movedFor(from - theirs.cost)
	s.theirMoved += float64(theirs.moved)
	s.perDollar += ours.perDollar(from)
	s.theirPerDollar += theirs.perDollar(from)
}

// halfEmpty is a cluster of which half of the pods have gone, and what is proven to
// be the least that the others cost.
func halfEmpty(t *testing.T, rng *rand.Rand, premium float64) (*model.Snapshot, model.Price) {
	t.Helper()
	s, err := scenario.Parse(strings.NewReader(market(rng)))
	if err != nil {
		t.Fatal(err)
	}
	policy := model.DefaultPolicy()
	policy.NodeCountPremium = premium
	s = solvetest.Apply(rng, s, solve.Decide(s, policy))
	rest := *s
	rest.Nodes = nil
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Requested, n.Residents, n.Disruption.Cost = n.DaemonRequested, nil, 1
		kept := n.Movable
		n.Movable = nil
		for _, p := range kept {
			p.Pods = slices.DeleteFunc(slices.Clone(p.Pods), func(model.Pod) bool { return rng.IntN(2) == 0 })
			for range p.Pods {
				n.Requested = n.Requested.Plus(p.Shape.Requests)
				n.Disruption.Cost++
			}
			if len(p.Pods) > 0 {
				n.Movable = append(n.Movable, p)
			}
		}
		rest.Pending = append(rest.Pending, n.Movable...)
		n.Disruption.Empty = len(n.Movable) == 0
	}
	return s, solve.Decide(&rest, model.DefaultPolicy()).Bound
}

// market is what there is to launch, and 990 pods.
func market(rng *rand.Rand) string {
	var b strings.Builder
	for _, family := range []struct {
		name  string
		ratio int
		price float64
	}{{"c", 2, 0.0425}, {"m", 4, 0.048}, {"r", 8, 0.063}} {
		for _, cpu := range []int{2, 4, 8, 16, 32, 48} {
			fmt.Fprintf(&b, "type %s%d cpu=%d mem=%dGi pods=110 overhead=cpu:100m,memory:512Mi zones=a,b,c on-demand=%.4f\n",
				family.name, cpu, cpu, cpu*family.ratio, family.price*float64(cpu))
		}
	}
	b.WriteString("pool general budgets=200\n")
	for shape := range 22 {
		cpu, gib := 100+100*rng.IntN(25), 1+rng.IntN(8)
		fmt.Fprintf(&b, "pods w%d-1..45 cpu=%dm mem=%dGi\n", shape, cpu, gib)
	}
	return b.String()
}

// account is what consolidation has come to.
type account struct {
	cost                    model.Price
	commands, passes, moved int
	hours                   int
	steps                   []step
}

// step is what has come of the commands up to one.
type step struct {
	saved model.Price // per hour
	moved int
}

// movedFor returns how many pods had moved when so much was saved, as if each command
// could be carried out in part.
func (a account) movedFor(saved model.Price) float64 {
	var before step
	for _, now := range a.steps {
		if now.saved >= saved {
			part := float64(saved-before.saved) / float64(now.saved-before.saved)
			return float64(before.moved) + part*float64(now.moved-before.moved)
		}
		before = now
	}
	return math.Inf(1)
}

func (a account) perDollar(from model.Price) float64 {
	return float64(a.moved) / max((from-a.cost).Dollars(), 1e-9)
}

func (a account) text(from, bound model.Price) string {
	return fmt.Sprintf("$%.2f/h, %.3f of the bound: %d commands in %d passes, the last after %d hours, %d pods moved, %.1f for each dollar per hour",
		a.cost.Dollars(), float64(a.cost)/float64(bound), a.commands, a.passes, a.hours, a.moved, a.perDollar(from))
}

// consolidate carries out what is decided until there is nothing more. Nodes to which
// pods were moved are fresh for the rest of the hour.
func consolidate(s *model.Snapshot, decide func(*model.Snapshot, model.Policy) *model.Plan) account {
	rng, out := rand.New(rand.NewPCG(1, 1)), account{}
	for hour := 0; ; hour++ {
		any := false
		for range most {
			plan := decide(s, model.DefaultPolicy())
			if len(plan.Commands) == 0 {
				break
			}
			any = true
			out.passes++
			s = carryOut(rng, s, plan, &out)
		}
		if !any {
			break
		}
		out.hours = hour
		later := *s
		later.Nodes = slices.Clone(s.Nodes) // a Snapshot does not change
		for i := range later.Nodes {
			later.Nodes[i].Disruption.Fresh = false
		}
		s = &later
	}
	out.cost = solvetest.Spent(s)
	return out
}

func carryOut(rng *rand.Rand, s *model.Snapshot, plan *model.Plan, out *account) *model.Snapshot {
	received := map[string]bool{}
	for i := range s.Nodes {
		received[s.Nodes[i].Name] = s.Nodes[i].Disruption.Fresh
	}
	known := len(received)
	for _, c := range plan.Commands {
		out.commands++
		for _, m := range c.Moves {
			out.moved++
			received[m.Node] = true
		}
		for _, l := range c.Launches {
			out.moved += len(l.Pods)
		}
		now := step{c.Savings, out.moved}
		if n := len(out.steps); n > 0 {
			now.saved += out.steps[n-1].saved
		}
		out.steps = append(out.steps, now)
	}
	next := solvetest.Apply(rng, s, plan)
	for i := range next.Nodes {
		n := &next.Nodes[i]
		fresh, old := received[n.Name]
		n.Disruption.Fresh = fresh || !old && known > 0
	}
	return next
}
