// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/datadriven"

	"karpenter/model"
)

// TestLanguage runs testdata: print shows how Print writes a text, error what
// is said about a mistake.
func TestLanguage(t *testing.T) {
	files := fstest.MapFS{"two.txt": {Data: []byte("type m cpu=2 zones=a spot=0.1\nbad line\n")}, "loop.txt": {Data: []byte("include loop.txt")}}
	datadriven.Walk(t, "testdata/language", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s, err := Read(strings.NewReader(d.Input), files)
			if d.Cmd == "error" {
				if err == nil {
					t.Fatalf("%s: no error", d.Pos)
				}
				return err.Error()
			}
			if err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			var out bytes.Buffer
			if err := Print(&out, s.Snapshot); err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			return out.String()
		})
	})
}

func TestParseQuantity(t *testing.T) {
	for _, c := range []struct {
		position int
		text     string
		want     int64 // -1 = no quantity
	}{
		{model.CPU, "2", 2000}, {model.CPU, "500m", 500}, {model.CPU, "1.5", 1500}, {model.CPU, ".5", 500}, {model.CPU, "100u", 1},
		{model.CPU, "1k", 1_000_000}, {model.CPU, "0", 0}, {model.CPU, "0.0001", 1},
		{model.Memory, "8Gi", 8 << 30}, {model.Memory, "1.5Gi", 3 << 29}, {model.Memory, "100M", 100_000_000}, {model.Memory, "2e3", 2000},
		{model.Memory, "12Ki", 12 << 10}, {model.Memory, "1Ei", 1 << 60}, {model.Memory, "1500m", 2}, {model.Memory, "2E", 2e18},
		{model.Memory, "9E", 9e18}, {model.Memory, "10E", -1}, {model.Memory, "8EiB", -1}, {model.Memory, "Gi", -1}, {model.Memory, "", -1},
		{model.Memory, "1e99999999", -1}, {model.Memory, "1/3", -1}, {model.Memory, "0x10", -1}, {model.Memory, "1_000", -1},
		{model.Memory, strings.Repeat("9", 50), -1}, {model.Pods, "110", 110}, {model.Pods, "1.1.1", -1}, {model.Pods, "inf", -1},
	} {
		got, err := ParseQuantity(c.position, c.text)
		if err != nil {
			got = -1
		}
		if got != c.want {
			t.Errorf("%q at %d: got %d (%v), want %d", c.text, c.position, got, err, c.want)
		}
	}
}

func TestPrice(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0.096", "0.096"}, {"$1.50", "1.5"}, {"0", "0"}, {"10", "10"}, {"0.000000001", "0.000000001"}, {"-0.5", "-0.5"},
		{"0.0000000001", "error"}, {"1e30", "error"}, {"abc", "error"}, {"", "error"},
	} {
		p, err := ParsePrice(c.text)
		got := FormatPrice(p)
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%q: got %s (%v), want %s", c.text, got, err, c.want)
		}
	}
}

// TestAxisMustBeStandard: vectors mean nothing on another axis.
func TestAxisMustBeStandard(t *testing.T) {
	if err := Print(&bytes.Buffer{}, &model.Snapshot{Resources: []string{"memory", "cpu"}}); err == nil {
		t.Error("printed a snapshot whose axis is not known")
	}
}

// TestErrorIsLocated: an editor can jump to the mistake.
func TestErrorIsLocated(t *testing.T) {
	_, err := Parse(strings.NewReader("pool a\n\n# comment\npool b weight=x\n"))
	var located *Error
	if !errors.As(err, &located) || located.Line != 4 {
		t.Fatalf("got %v, want an *Error at line 4", err)
	}
}

// TestPrintPlan shows every part of a plan once, whatever order it comes in.
func TestPrintPlan(t *testing.T) {
	s, err := Parse(strings.NewReader("pool general requires=arch=amd64"))
	if err != nil {
		t.Fatal(err)
	}
	pods := func(names ...string) []model.Pod {
		var out []model.Pod
		for _, n := range names {
			out = append(out, podNamed(n))
		}
		return out
	}
	plan := &model.Plan{
		Placements: []model.Placement{{Pod: podNamed("web-10"), Node: "n2"}, {Pod: podNamed("web-9"), Node: "n2"}, {Pod: podNamed("kube-system/dns"), Node: "n1"}},
		Launches: []model.Launch{{
			Pool: "general", Type: "m.large", Zone: "a", CapacityType: "spot", Price: 31_000_000, Pods: pods("web-3", "web-1", "web-2", "db", "a1"),
			Requests: model.Resources{1500, 2 << 30}, CapacityTypes: []string{"on-demand", "spot"},
			Types: []string{"m.large", "b", "c", "d", "e", "f", "g"}, ReservationIDs: []string{"cr-1", "cr-2"},
			MinValues: []model.Relaxed{{Key: model.LabelInstanceType, Spans: 3}, {Key: "team", Spans: 1}},
			Requirements: model.NewRequirements(model.NewRequirement(model.LabelArch, model.In, "amd64"),
				model.NewRequirement(model.LabelNodePool, model.In, "general"), model.NewRequirement(model.LabelZone, model.In, "a", "b")),
		}},
		Verdicts: []model.Verdict{{Pods: pods("big-1", "big-2"), Nodes: 3, Pools: []model.PoolVerdict{{Pool: "general", Steps: []model.Step{
			{Constraint: "offerings", Left: 4}, {Constraint: "requests cpu=9", Left: 0, Hint: "too large"}}}}}},
		Commands: []model.Command{
			{Reason: model.Empty, Nodes: []model.Target{{Node: "n4", Claim: "general-x"}}},
			{Reason: model.Drifted, Nodes: []model.Target{{Claim: "general-y"}}, Cost: 20_000_000, Savings: -10_000_000,
				Launches: []model.Launch{{Pool: "general", Type: "m.large", Zone: "a", CapacityType: "spot", Price: 30_000_000}}},
			{Reason: model.Underutilized, Nodes: []model.Target{{Node: "n6", Claim: "n6"}, {Node: "n7", Claim: "n7"}}, Cost: 90_000_000, Savings: 60_000_000,
				Moves: []model.Placement{{Pod: podNamed("x-2"), Node: "n2"}, {Pod: podNamed("x-1"), Node: "n2"}, {Pod: podNamed("y"), Node: "n1"}},
				Launches: []model.Launch{{Pool: "general", Type: "m.large", Zone: "a", CapacityType: "spot", CapacityTypes: []string{"spot"}, Price: 30_000_000,
					Types: []string{"m.large"}, Requests: model.Resources{500}, Pods: pods("z-1", "z-2")}},
				Scores: []model.Score{{Pool: "general", Value: 1.25, Savings: 0.125, Disruption: 0.1}}},
			{Reason: model.Underutilized, Nodes: []model.Target{{Node: "n8"}}, Cost: 90_000_000, Savings: 90_000_000, Moves: []model.Placement{{Pod: podNamed("w"), Node: "n1"}}},
		},
		Stays: []model.Stay{{Node: "n5", Claim: "n5", Reason: model.Empty, Why: "blocked"},
			{Node: "n9", Claim: "n9", Reason: model.Underutilized, Cause: model.ByPrice, Why: "would cost $0.2/h instead of $0.1/h"}},
		Cost: 31_000_000, Bound: 30_000_000,
	}
	want := `place  kube-system/dns on n1
place  web-9..10 on n2
launch general m.large a spot $0.031/h pods=a1,db,web-1..3 requests=cpu:1500m,memory:2Gi ct=on-demand,spot reservations=cr-1,cr-2 spans=type:3,team:1 requires="zone In [a b]" types=7 (m.large b c d e f …)
remove n4 (claim general-x) as Empty
replace general-y as Drifted, paying $0.01/h more than $0.02/h: a new m.large
  launch general m.large a spot $0.03/h
replace n6, n7 as Underutilized, saving $0.06/h of $0.09/h, score 1.25 for general (12.5% of its cost, 10% of its disruption): y to n1, x-1..2 to n2, z-1..2 to a new m.large
  launch general m.large a spot $0.03/h pods=z-1..2 requests=cpu:500m types=1 (m.large)
remove n8 as Underutilized, saving $0.09/h: w to n1
stay   n5: not removed as Empty: blocked
stay   n9: not removed as Underutilized (no saving): would cost $0.2/h instead of $0.1/h
pending big-1..2: nodepool general: 4 offerings → 0 after requests cpu=9 (too large); existing nodes: none of 3 takes it
cost   $0.031/h bound $0.03/h gap 3.3%
`
	if got := Text(s, plan); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Text(s, &model.Plan{}); got != "nothing to do\n" {
		t.Errorf("an empty plan prints %q", got)
	}
}

// TestInclude: files are found, mistakes in them bear their name, loops end.
func TestInclude(t *testing.T) {
	files := fstest.MapFS{"types.txt": {Data: []byte("type m cpu=2 zones=a spot=0.1\n")}}
	s, err := Read(strings.NewReader("include types.txt\npool p"), files)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(len(s.Snapshot.Pools[0].Types)); got != "1" {
		t.Errorf("the pool has %s types, want 1", got)
	}
	if _, err := Parse(strings.NewReader("include types.txt")); err == nil {
		t.Error("Parse included a file although it has none")
	}
}
