// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// inhabited are the kinds of situations where something could be removed.
func inhabited() []draw {
	return []draw{
		{name: "refused", Draw: solvetest.Draw{Bound: true, Refused: true}},
		{name: "plain", Draw: solvetest.Draw{Bound: true}},
		{name: "spread", Draw: solvetest.Draw{Bound: true, Spread: true}},
		{name: "affinity", Draw: solvetest.Draw{Bound: true, Affinity: true}},
		{name: "ports and volumes", Draw: solvetest.Draw{Bound: true, Ports: true, Volumes: true}},
		{name: "minValues", Draw: solvetest.Draw{Bound: true, MinValues: true}},
		{name: "reserved", Draw: solvetest.Draw{Bound: true, Reserved: true}},
		{name: "devices", Draw: solvetest.Draw{Bound: true, Devices: true}},
		{name: "groups", Draw: solvetest.Draw{Bound: true, Groups: true}},
		{name: "crowd", Draw: solvetest.Draw{Bound: true, Crowd: true}},
		{name: "crowd of everything", Draw: solvetest.Draw{
			Bound: true, Crowd: true, Spread: true, Affinity: true, Preferences: true, Ports: true, Volumes: true, MinValues: true, Reserved: true,
		}},
		{name: "everything", Draw: solvetest.Draw{
			Bound: true, Spread: true, Affinity: true, Preferences: true, Ports: true, Volumes: true, MinValues: true, Reserved: true,
		}},
	}
}

// controlled is inhabited, and situations with workloads that are spread over spot
// pools, for which nodes stay that could go, and odd ones.
func controlled() []draw {
	return append(inhabited(),
		draw{name: "workloads", Draw: solvetest.Draw{Bound: true, Crowd: true, Workloads: true}},
		draw{name: "odd", Draw: solvetest.Draw{Bound: true, Odd: true, Spread: true, Reserved: true, Workloads: true}})
}

// spotToSpot is the default policy with spot nodes replaced by spot nodes.
func spotToSpot() model.Policy {
	p := model.DefaultPolicy()
	p.SpotToSpot = true
	return p
}

// TestCommandsAreValid holds every command against the independent checker.
func TestCommandsAreValid(t *testing.T) {
	counts := map[string]int{}
	for _, d := range controlled() {
		t.Run(d.name, func(t *testing.T) {
			situations(t, d.Draw, 50, func(s *model.Snapshot) []string {
				var wrong []string
				for _, policy := range []model.Policy{model.DefaultPolicy(), spotToSpot()} {
					plan := solve.Decide(s, policy)
					wrong = append(wrong, solvetest.Check(s, policy, plan)...)
					count(counts, plan)
				}
				return wrong
			})
		})
	}
	t.Log(counts)
	for _, kind := range []string{"Empty", "Drifted", "Drifted with launches", "Underutilized", "Underutilized with launches"} {
		if counts[kind] < 3 {
			t.Errorf("only %d commands are %s", counts[kind], kind)
		}
	}
}

// count adds up the kinds of commands of a plan.
func count(counts map[string]int, plan *model.Plan) {
	for _, c := range plan.Commands {
		kind := string(c.Reason)
		if len(c.Launches) > 0 {
			kind += " with launches"
		}
		counts[kind]++
		if len(c.Nodes) > 1 {
			counts[kind+" of several nodes"]++
		}
	}
}

// rounds is how many plans in a row may find something to remove: a drifted
// node makes room, the budgets let one node go at a time.
const rounds = 25

// patience is how often a pod may be moved on the way: from a drifted node, and
// when what was launched for it has become something expensive, again.
const patience = 6

// TestCommandsComeToRest carries out plans and decides again: nothing that is
// removed to save makes the nodes cost more, whatever instances the launches
// become, no one is moved often, and soon nothing more is removed.
func TestCommandsComeToRest(t *testing.T) {
	for _, d := range controlled() {
		t.Run(d.name, func(t *testing.T) {
			situations(t, d.Draw, 50, func(s *model.Snapshot) []string {
				rng := rand.New(rand.NewPCG(3, 4))
				moves := map[string]int{}
				for range rounds {
					plan := solve.Decide(s, spotToSpot())
					if len(plan.Commands) == 0 && len(plan.Launches) == 0 && len(plan.Placements) == 0 {
						return nil
					}
					next := solvetest.Apply(rng, s, plan)
					if wrong := dearer(s, next, plan); wrong != "" {
						return []string{wrong + "\n" + scenario.Text(s, plan)}
					}
					for _, c := range plan.Commands {
						for pod := range solvetest.Places(&model.Plan{Placements: c.Moves, Launches: c.Launches}) {
							if moves[pod]++; moves[pod] > patience {
								return []string{fmt.Sprintf("%s is moved %d times:\n%s", pod, moves[pod], scenario.Text(s, plan))}
							}
						}
					}
					s = next
				}
				return []string{fmt.Sprintf("not at rest after %d rounds:\n%s", rounds, scenario.Text(s, solve.Decide(s, spotToSpot())))}
			})
		})
	}
}

// dearer says by how much a plan that only saves makes the nodes more expensive.
func dearer(before, after *model.Snapshot, plan *model.Plan) string {
	pays := func(c model.Command) bool { return c.Reason == model.Drifted || c.Reason == model.Unhealthy }
	if len(plan.Launches) > 0 || slices.ContainsFunc(plan.Commands, pays) {
		return ""
	}
	if a, b := solvetest.Spent(before), solvetest.Spent(after); b > a {
		return fmt.Sprintf("the nodes cost %d, and %d after commands that save", a, b)
	}
	return ""
}

// TestCommandsAreConfirmed decides again with the commands as intents: the same
// nodes go for the same reasons.
func TestCommandsAreConfirmed(t *testing.T) {
	for _, d := range controlled() {
		t.Run(d.name, func(t *testing.T) {
			situations(t, d.Draw, 50, func(s *model.Snapshot) []string {
				first := solve.Decide(s, model.DefaultPolicy())
				next := *s
				next.Intents = solvetest.Intents(first)
				again := solve.Decide(&next, model.DefaultPolicy())
				wrong := solvetest.Check(&next, model.DefaultPolicy(), again)
				confirmed := solvetest.Intents(again)
				for _, in := range next.Intents {
					if !slices.ContainsFunc(confirmed, func(c model.Intent) bool { return reflect.DeepEqual(c, in) }) {
						wrong = append(wrong, fmt.Sprintf("%v is not confirmed:\n%s", in, scenario.Text(&next, again)))
					}
				}
				return wrong
			})
		})
	}
}

// TestWhatCanGoGoes: when some node could go, for all that every way to share
// out its pods tells, one does.
func TestWhatCanGoGoes(t *testing.T) {
	tried := 0
	for _, d := range inhabited() {
		if d.Crowd {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			mostSituations(t, d.Draw, 80, mayStay, func(s *model.Snapshot) []string {
				tiny := *s
				tiny.Pending = nil
				if many(&tiny) {
					return nil
				}
				can := solvetest.Deletable(&tiny, model.DefaultPolicy())
				if len(can) == 0 {
					return nil
				}
				tried++
				if plan := solve.Decide(&tiny, model.DefaultPolicy()); len(plan.Commands) == 0 {
					return []string{fmt.Sprintf("any of %v could go:\n%s", can, scenario.Text(&tiny, plan))}
				}
				return nil
			})
		})
	}
	if tried < 30 {
		t.Errorf("in only %d situations some node could go", tried)
	}
}

// many reports whether trying every place would take long.
func many(s *model.Snapshot) bool {
	return len(s.Nodes) > 5 || slices.ContainsFunc(s.Nodes, func(n model.Node) bool {
		pods := 0
		for _, m := range n.Movable {
			pods += len(m.Pods)
		}
		return pods > 4
	})
}

// TestWhatCanBeReplacedIs: when the pods of some node, planned as if it were
// gone, would cost so much less that the checker approves of the command, and
// save what pays whatever the launches become, some command takes nodes away.
func TestWhatCanBeReplacedIs(t *testing.T) {
	tried := 0
	for _, d := range inhabited() {
		t.Run(d.name, func(t *testing.T) {
			mostSituations(t, d.Draw, 50, mayStay, func(s *model.Snapshot) []string {
				calm := *s
				calm.Pending = nil
				var can []string
				for i := range calm.Nodes {
					cmd := instead(&calm, i)
					pays := float64(solvetest.Dearest(&calm, cmd)) <= float64(cmd.Cost)-solvetest.Owed(&calm, spotToSpot(), cmd)
					if pays && solvetest.Approves(&calm, spotToSpot(), cmd) {
						can = append(can, calm.Nodes[i].Name)
					}
				}
				if len(can) == 0 {
					return nil
				}
				tried++
				if plan := solve.Decide(&calm, spotToSpot()); len(plan.Commands) == 0 {
					return []string{fmt.Sprintf("any of %v could be replaced:\n%s", can, scenario.Text(&calm, plan))}
				}
				return nil
			})
		})
	}
	if tried < 10 {
		t.Errorf("in only %d situations some node could be replaced", tried)
	}
}

// instead plans for the pods of a node as if it were gone, and makes a command
// of that.
func instead(s *model.Snapshot, i int) *model.Command {
	n := &s.Nodes[i]
	without := *s
	without.Pending, without.Nodes = n.Movable, slices.Clone(s.Nodes)
	for j := range without.Nodes {
		o := &without.Nodes[j]
		o.Closed = o.Disruption.Settling || !o.Disruption.Drifted.IsZero() || o.Claim != "" && !o.Initialized
		o.Disruption = model.NodeDisruption{}
	}
	without.Nodes = slices.Delete(without.Nodes, i, i+1)
	plan := solve.Decide(&without, spotToSpot())
	cmd := &model.Command{Reason: model.Underutilized, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}},
		Moves: plan.Placements, Launches: plan.Launches, Cost: n.Price, Savings: n.Price}
	for j := range cmd.Launches {
		solvetest.Pin(s, &cmd.Launches[j])
		cmd.Savings -= cmd.Launches[j].Price
	}
	return cmd
}

// TestCommandsAreRepeatable decides with a planner that has decided on many
// other situations, and with its lists in another order.
func TestCommandsAreRepeatable(t *testing.T) {
	for _, d := range controlled() {
		t.Run(d.name, func(t *testing.T) {
			planner := &solve.Planner{}
			situations(t, d.Draw, 25, func(s *model.Snapshot) []string {
				first := solve.Decide(s, spotToSpot())
				if again := planner.Decide(s, spotToSpot()); scenario.Text(s, again) != scenario.Text(s, first) {
					return []string{fmt.Sprintf("first\n%s\nagain\n%s", scenario.Text(s, first), scenario.Text(s, again))}
				}
				other := *s
				other.Pools = slices.Clone(s.Pools)
				slices.Reverse(other.Pools)
				if again := solve.Decide(&other, spotToSpot()); !reflect.DeepEqual(sorted(solvetest.Intents(first)), sorted(solvetest.Intents(again))) {
					return []string{fmt.Sprintf("first\n%s\nwith pools in another order\n%s", scenario.Text(s, first), scenario.Text(&other, again))}
				}
				return nil
			})
		})
	}
}

// TestCommandsOverTime decides with a planner again and again while nothing but the time
// changes, or only what it keeps its last decision by.
func TestCommandsOverTime(t *testing.T) {
	for _, d := range controlled() {
		t.Run(d.name, func(t *testing.T) {
			situations(t, d.Draw, 10, func(s *model.Snapshot) []string {
				planner, rng := &solve.Planner{}, rand.New(rand.NewPCG(7, 8))
				for range 5 {
					plan := planner.Decide(s, spotToSpot())
					if fresh := solve.Decide(s, spotToSpot()); !reflect.DeepEqual(plan, fresh) {
						return []string{fmt.Sprintf("at %s\n%s\nof a new planner\n%s", s.Now, scenario.Text(s, plan), scenario.Text(s, fresh))}
					}
					placed := planner.Place(s, spotToSpot())
					if fresh := new(solve.Planner).Place(s, spotToSpot()); !reflect.DeepEqual(placed, fresh) {
						return []string{fmt.Sprintf("at %s, only placed\n%s\nby a new planner\n%s", s.Now, scenario.Text(s, placed), scenario.Text(s, fresh))}
					}
					next := *s
					next.Now = next.Now.Add(time.Duration(rng.IntN(1 << 40)))
					if rng.IntN(3) == 0 {
						next.Intents = solvetest.Intents(plan)
					}
					if rng.IntN(4) == 0 && len(next.Nodes) > 0 {
						next.Nodes = slices.Delete(slices.Clone(next.Nodes), 0, 1)
					}
					s = &next
				}
				return nil
			})
		})
	}
}

func sorted(intents []model.Intent) []string {
	var out []string
	for _, in := range intents {
		out = append(out, fmt.Sprint(in))
	}
	slices.Sort(out)
	return out
}

// TestIntentsThatAreOld confirms what no one planned: whatever the intents say,
// the plan is valid.
func TestIntentsThatAreOld(t *testing.T) {
	for _, d := range inhabited() {
		t.Run(d.name, func(t *testing.T) {
			situations(t, d.Draw, 50, func(s *model.Snapshot) []string {
				rng := rand.New(rand.NewPCG(5, 6))
				next := *s
				next.Intents = nil
				for range 1 + rng.IntN(4) {
					in := model.Intent{Reason: []model.Reason{model.Empty, model.Drifted, model.Underutilized}[rng.IntN(3)], Claims: []string{"nobody"}}
					for _, n := range s.Nodes {
						if rng.IntN(3) == 0 {
							in.Claims = append(in.Claims, n.Claim)
						}
					}
					in.Claims = in.Claims[min(len(in.Claims)-1, rng.IntN(6)):]
					slices.Sort(in.Claims)
					next.Intents = append(next.Intents, in)
				}
				return solvetest.Check(&next, spotToSpot(), solve.Decide(&next, spotToSpot()))
			})
		})
	}
}
