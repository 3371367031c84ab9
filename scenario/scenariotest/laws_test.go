// SPDX-License-Identifier: Apache-2.0

package scenariotest

import (
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
)

// TestBroken breaks each law in turn.
func TestBroken(t *testing.T) {
	const text = `
type small cpu=2 zones=a spot=0.1
type large cpu=8 zones=a spot=0.4
pool general limits=cpu:8 taints=t:NoSchedule
node n1 cpu=2 pods=10 labels=zone=a
node n2 cpu=2 pods=10 taints=x:NoExecute
node n3 cpu=2 pods=10 deleting
pods web-1..2 cpu=1500m select=zone=a tolerate=t`
	s, err := scenario.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	web := s.Pending[0].Pods
	launch := func(pods []model.Pod, types ...string) model.Launch {
		return model.Launch{Pool: "general", Type: types[0], Types: types, Pods: pods, Price: model.Dollar / 10}
	}
	place := func(nodes ...string) []model.Placement {
		var out []model.Placement
		for i, n := range nodes {
			out = append(out, model.Placement{Pod: web[i], Node: n})
		}
		return out
	}
	for _, c := range []struct {
		name, want string // want is part of what is said; "" = no law is broken
		plan       model.Plan
	}{
		{"sound", "", model.Plan{Placements: place("n1"), Launches: []model.Launch{launch(web[1:], "large")}, Cost: model.Dollar / 10}},
		{"pending", "", model.Plan{Verdicts: []model.Verdict{{Pods: web}}}},
		{"forgotten", "web-2 is in the plan 0 times", model.Plan{Placements: place("n1")}},
		{"twice", "web-1 is in the plan 2 times", model.Plan{Placements: place("n1"), Verdicts: []model.Verdict{{Pods: web}}}},
		{"unknown", "other/x was not pending", model.Plan{Verdicts: []model.Verdict{{Pods: append([]model.Pod{{Namespace: "other", Name: "x"}}, web...)}}}},
		{"no node", "which is no node", model.Plan{Placements: place("n1", "n9")}},
		{"full", "n1 has no room", model.Plan{Placements: place("n1", "n1")}},
		{"taint", "taint x:NoExecute", model.Plan{Placements: place("n2", "n1")}},
		{"deleting", "deleting (true)", model.Plan{Placements: place("n3", "n1")}},
		{"labels", "against its labels", model.Plan{Placements: place("n2", "n1")}},
		{"too small", "do not fit small", model.Plan{Launches: []model.Launch{launch(web, "large", "small")}, Cost: model.Dollar / 10}},
		{"limit", "may exceed its limit of cpu: 10 of 8",
			model.Plan{Launches: []model.Launch{launch(web[:1], "small", "large"), launch(web[1:], "small")}, Cost: model.Dollar / 5}},
		{"no types", "not among its types", model.Plan{Launches: []model.Launch{{Pool: "general", Type: "small", Pods: web}}}},
		{"sum", "the plan says $0.3", model.Plan{Launches: []model.Launch{launch(web, "large")}, Cost: 3 * model.Dollar / 10}},
		{"bound", "above the cost", model.Plan{Launches: []model.Launch{launch(web, "large")}, Cost: model.Dollar / 10, Bound: model.Dollar}},
	} {
		got := strings.Join(Broken(s, &c.plan), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := check(s, &model.Plan{Verdicts: []model.Verdict{{Pods: web}}}, demands{placed: true, buys: -1}); len(got) != 1 {
		t.Errorf("pending pods that the case wants placed: got %q", got)
	}
	if got := check(s, &model.Plan{Verdicts: []model.Verdict{{Pods: web}}, Launches: []model.Launch{}}, demands{cost: 1, buys: -1}); len(got) != 0 {
		t.Errorf("a plan that costs nothing is within any price: got %q", got)
	}
	command := &model.Plan{Verdicts: []model.Verdict{{Pods: web}}, Commands: []model.Command{{Reason: model.Empty, Nodes: []model.Target{{Node: "n2"}, {Node: "n1"}}}}}
	for _, c := range []struct {
		want demands
		ok   bool
	}{
		{demands{buys: -1}, true}, {demands{takes: "n1,n2", as: "Empty", buys: 0}, true},
		{demands{takes: "n1", buys: -1}, false}, {demands{takes: "none", buys: -1}, false}, {demands{as: "Drifted", buys: -1}, false}, {demands{buys: 1}, false},
	} {
		if got := check(s, command, c.want); c.ok != (len(got) == 0) {
			t.Errorf("%+v: got %q", c.want, got)
		}
	}
}
