// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/cmd/karpenter/plan"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

func decider(policy model.Policy) plan.Decider {
	return plan.Decider{
		Decide: func(s *model.Snapshot) *model.Plan { return solve.Decide(s, policy) },
		Place:  func(s *model.Snapshot) *model.Plan { return new(solve.Planner).Place(s, policy) },
	}
}

// situations are those of the documents, and the ones decisions are tested with.
func situations(t *testing.T) map[string]scenario.Situation {
	t.Helper()
	out := map[string]scenario.Situation{}
	for _, dir := range []string{"../../../docs/plan", "../../../docs/reasons"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".txt" {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			s, err := scenario.Read(f, os.DirFS(filepath.Dir(path)))
			out[path] = s
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) < 40 {
		t.Fatalf("%d situations", len(out))
	}
	return out
}

// TestPlanIsDecision: what the report says of a dump of a situation is what a
// decision on the situation itself does, command by command.
func TestPlanIsDecision(t *testing.T) {
	commands, launches := 0, 0
	for name, situation := range situations(t) {
		var dump bytes.Buffer
		if err := situation.Print(&dump); err != nil {
			t.Fatal(err)
		}
		again, err := scenario.Read(&dump, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := plan.Of(again.Snapshot, decider(again.Policy))
		p := solve.Decide(situation.Snapshot, situation.Policy)
		if diff := cmp.Diff(decided(p), reported(r)); diff != "" {
			t.Errorf("%s: the plan is not the decision (-decision +plan):\n%s", name, diff)
		}
		commands, launches = commands+len(r.Commands), launches+len(r.Launches)
		if again := plan.Of(again.Snapshot, decider(again.Policy)); !cmp.Equal(r, again) {
			t.Errorf("%s: made twice, two plans: %s", name, cmp.Diff(r, again))
		}
	}
	if commands < 5 || launches < 5 {
		t.Errorf("%d commands and %d launches prove little", commands, launches)
	}
}

// line is a command, or what is done for pods that wait, in a few words.
type line struct {
	Reason   string
	Nodes    []string
	Launches []string
	Pods     []string // of the launches, sorted
	Moves    int
}

func decided(p *model.Plan) []line {
	of := func(reason model.Reason, nodes []model.Target, launches []model.Launch, moves int) line {
		out := line{Reason: string(reason), Moves: moves}
		for _, n := range nodes {
			out.Nodes = append(out.Nodes, n.Node)
		}
		for _, l := range launches {
			out.Launches = append(out.Launches, l.Pool+" "+l.Type+" "+l.Zone+" "+l.CapacityType)
			out.Pods = append(out.Pods, pods(l.Pods)...)
		}
		slices.Sort(out.Pods)
		return out
	}
	all := []line{of("", nil, p.Launches, len(p.Placements))}
	for _, c := range p.Commands {
		all = append(all, of(c.Reason, c.Nodes, c.Launches, len(c.Moves)))
	}
	return all
}

func pods(all []model.Pod) []string {
	var out []string
	for _, p := range all {
		out = append(out, p.Key())
	}
	return out
}

func reported(r plan.Report) []line {
	of := func(reason string, nodes []plan.Leaving, launches []plan.Launch, moves []plan.Place) line {
		out := line{Reason: reason}
		for _, n := range nodes {
			out.Nodes = append(out.Nodes, n.Name)
		}
		for _, l := range launches {
			out.Launches = append(out.Launches, l.Pool+" "+l.InstanceType+" "+l.Zone+" "+l.CapacityType)
			out.Pods = append(out.Pods, l.PodNames...)
		}
		slices.Sort(out.Pods)
		for _, m := range moves {
			out.Moves += len(m.Pods)
		}
		return out
	}
	all := []line{of("", nil, r.Launches, r.Placements)}
	for _, c := range r.Commands {
		all = append(all, of(c.Reason, c.Nodes, c.Launches, c.Moves))
	}
	return all
}

// TestTotals: the figures fit each other, whatever the situation.
func TestTotals(t *testing.T) {
	for name, situation := range situations(t) {
		r := plan.Of(situation.Snapshot, decider(situation.Policy))
		evictions, gone, launched, saved := 0, 0, len(r.Launches), plan.Price(0)
		for _, c := range r.Commands {
			evictions, gone, launched, saved = evictions+c.Evictions, gone+len(c.Nodes), launched+len(c.Launches), saved+c.Savings
		}
		leaving := 0
		for i := range situation.Snapshot.Nodes {
			if n := &situation.Snapshot.Nodes[i]; n.Claim != "" && n.Deleting {
				leaving++
			}
		}
		if evictions != r.Evictions || r.After.Nodes != r.Before.Nodes-leaving-gone+launched {
			t.Errorf("%s: nodes %d → %d, %d evictions do not follow from the rest", name, r.Before.Nodes, r.After.Nodes, r.Evictions)
		}
		if want := r.Before.Cost + r.LaunchCost - saved; leaving == 0 && (r.After.Cost-want > 1e-9 || want-r.After.Cost > 1e-9) {
			t.Errorf("%s: costs $%v/h after, and $%v/h by its commands", name, float64(r.After.Cost), float64(want))
		}
		if r.Fresh.Cost < r.Bound || r.LaunchCost < r.LaunchBound {
			t.Errorf("%s: cheaper than what is proven: %+v", name, r)
		}
		if r.After.Pending != total(r.Pending) || r.WouldChange != (gone+launched > 0) {
			t.Errorf("%s: %+v", name, r)
		}
		if len(r.Stays)+gone+leaving != r.Before.Nodes {
			t.Errorf("%s: %d stay, %d go and %d are going, of %d", name, len(r.Stays), gone, leaving, r.Before.Nodes)
		}
	}
}

func total(all []plan.Refusal) (n int) {
	for _, p := range all {
		n += len(p.Pods)
	}
	return n
}

// TestScreen: a large plan is cut to about a screen, and names what is left
// out.
func TestScreen(t *testing.T) {
	text := "type small cpu=1 mem=2Gi zones=a on-demand=0.1\npool general\npods big cpu=3\n"
	for i := range 40 {
		text += "pods p" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + " cpu=900m\n"
		text += "node n" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + " pool=general type=small zone=a ct=on-demand used=cpu:950m\n"
	}
	s, err := scenario.Read(strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := plan.Of(s.Snapshot, decider(s.Policy)).Text(&out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n > 40 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	for _, want := range []string{"launch 40 nodes for 40 pods, at $4.0000/h", "37 more", "nodes that stay: 40"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, out.String())
		}
	}
}
