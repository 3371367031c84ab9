package solve_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// inhabited are the kinds of situations where something could be taken away.
func inhabited() []draw {
	return []draw{
		{name: "plain", Draw: solvetest.Draw{Bound: true}},
		{name: "spread", Draw: solvetest.Draw{Bound: true, Spread: true}},
		{name: "affinity", Draw: solvetest.Draw{Bound: true, Affinity: true}},
		{name: "ports and volumes", Draw: solvetest.Draw{Bound: true, Ports: true, Volumes: true}},
		{name: "minValues", Draw: solvetest.Draw{Bound: true, MinValues: true}},
		{name: "reserved", Draw: solvetest.Draw{Bound: true, Reserved: true}},
		{name: "everything", Draw: solvetest.Draw{
			Bound: true, Spread: true, Affinity: true, Preferences: true, Ports: true, Volumes: true, MinValues: true, Reserved: true,
		}},
	}
}

// spotToSpot is the default policy with spot nodes replaced by spot nodes.
func spotToSpot() model.Policy {
	p := model.DefaultPolicy()
	p.SpotToSpot = true
	return p
}

// TestCommandsAreValid holds every command against the independent checker.
func TestCommandsAreValid(t *testing.T) {
	for _, d := range inhabited() {
		t.Run(d.name, func(t *testing.T) {
			counts := map[string]int{}
			situations(t, d.Draw, 500, func(s *model.Snapshot) []string {
				var wrong []string
				for _, policy := range []model.Policy{model.DefaultPolicy(), spotToSpot()} {
					plan := solve.Decide(s, policy)
					wrong = append(wrong, solvetest.Check(s, policy, plan)...)
					count(counts, plan)
				}
				return wrong
			})
			t.Log(counts)
			for _, kind := range []string{"Empty", "Drifted", "Drifted with launches", "Underutilized", "Underutilized with launches"} {
				if counts[kind] < 10 {
					t.Errorf("only %d commands are %s", counts[kind], kind)
				}
			}
		})
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

// rounds is how many plans in a row may find something to take away: a drifted
// node makes room, the budgets let one node go at a time.
const rounds = 25

// TestCommandsComeToRest carries out plans and decides again: nothing that is
// taken away to save makes the nodes cost more, whatever machines the launches
// become, and soon nothing more is taken away.
func TestCommandsComeToRest(t *testing.T) {
	for _, d := range inhabited() {
		t.Run(d.name, func(t *testing.T) {
			situations(t, d.Draw, 150, func(s *model.Snapshot) []string {
				rng := rand.New(rand.NewPCG(3, 4))
				for range rounds {
					plan := solve.Decide(s, spotToSpot())
					if len(plan.Commands) == 0 && len(plan.Launches) == 0 && len(plan.Placements) == 0 {
						return nil
					}
					next := solvetest.Apply(rng, s, plan)
					if wrong := dearer(s, next, plan); wrong != "" {
						return []string{wrong + "\n" + scenario.Text(s, plan)}
					}
					s = next
				}
				return []string{fmt.Sprintf("not at rest after %d rounds:\n%s", rounds, scenario.Text(s, solve.Decide(s, spotToSpot())))}
			})
		})
	}
}

// dearer says by how much a plan that only saves makes the nodes dearer.
func dearer(before, after *model.Snapshot, plan *model.Plan) string {
	drift := func(c model.Command) bool { return c.Reason == model.Drifted }
	if len(plan.Launches) > 0 || slices.ContainsFunc(plan.Commands, drift) {
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
	for _, d := range inhabited() {
		t.Run(d.name, func(t *testing.T) {
			situations(t, d.Draw, 150, func(s *model.Snapshot) []string {
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
	for _, d := range inhabited() {
		t.Run(d.name, func(t *testing.T) {
			tried := 0
			situations(t, d.Draw, 400, func(s *model.Snapshot) []string {
				tiny := *s
				tiny.Pending = nil
				if many(&tiny) {
					return nil
				}
				can := solvetest.Deletable(&tiny, model.DefaultPolicy())
				if lawful { // nodes whose price is not known stay yet
					can = slices.DeleteFunc(can, func(name string) bool {
						return slices.ContainsFunc(tiny.Nodes, func(n model.Node) bool { return n.Name == name && n.Price == 0 })
					})
				}
				if len(can) == 0 {
					return nil
				}
				tried++
				if plan := solve.Decide(&tiny, model.DefaultPolicy()); len(plan.Commands) == 0 {
					return []string{fmt.Sprintf("any of %v could go:\n%s", can, scenario.Text(&tiny, plan))}
				}
				return nil
			})
			if tried < 50 {
				t.Errorf("in only %d situations some node could go", tried)
			}
		})
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
