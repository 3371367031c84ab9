// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
)

// cluster is what the plans of TestCheck are about.
const cluster = `
type m cpu=4 mem=8Gi pods=10 zones=a,b spot=0.1
type l cpu=8 mem=16Gi pods=10 zones=a spot=0.3
offer l a reserved 0 reservation=cr-1 left=1
pool p requires="type Exists minValues 2" limits=nodes:3
pool q types=m,l
node n1 pool=q type=m zone=a ct=spot runs="1 app=web" ports=80 attached="ebs 0 of 1"
node n2 pool=q type=m zone=b ct=spot
daemonset proxy ports=443
`

// TestCheck shows the checker plans that each break one rule.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, pods, plan, want string }{
		{"sound", `pods a-1..2 cpu=1 labels=app=web spread="zone of app=web"`, "a-1 n2; a-2 n2", ""},
		{"skew", `pods a-1..2 cpu=1 labels=app=web spread="zone of app=web"`, "a-1 n1; a-2 n1", "spread over topology.kubernetes.io/zone"},
		{"an order there is", `pods a-1..3 cpu=1 labels=app=web spread="zone of app=web"`, "a-1 n1; a-2 n2; a-3 n2", ""},
		{"minDomains", `pods a cpu=1 labels=app=web spread="zone min=3 of app=web"`, "a n1", "0 elsewhere"},
		{"skew of a launch that is not settled", `pods a cpu=1 labels=app=web spread="zone of app=web"`, "a q:m:0.1:", "which is not settled"},
		{"skew of a launch", `pods a cpu=1 labels=app=web spread="zone of app=web"`, "a q:m:0.1:zone=b", ""},
		{"affinity", `pods a cpu=1 near="zone of app=web"`, "a n2", "no such pod in b"},
		{"affinity of the first", `pods a-1..2 cpu=1 labels=app=x near="zone of app=x"`, "a-1 n1; a-2 n2", "no such pod in"},
		{"affinity, together", `pods a-1..2 cpu=1 labels=app=x near="zone of app=x"`, "a-1 n2; a-2 n2", ""},
		{"anti-affinity", `pods a cpu=1 anti="zone of app=web"`, "a n1", "anti-affinity on topology.kubernetes.io/zone"},
		{"anti-affinity of others", "pods a cpu=1 labels=app=x anti=\"host of app=y\"\npods b cpu=1 labels=app=y", "a n2; b n2", "anti-affinity on kubernetes.io/hostname"},
		{"port", `pods a cpu=1 ports=80`, "a n1", "the same host port"},
		{"port of a daemon", `pods a cpu=1 ports=443`, "a q:m:0.1:", "the same host port"},
		{"volumes", `pods a-1..2 cpu=1 volumes="ebs 1"`, "a-1 n1; a-2 n1", "more volumes than it can"},
		{"minValues", `pods a cpu=1`, "a p:m:0.1:", "spans 1 values"},
		{"price", `pods a cpu=1`, "a q:m:0.3:", "its cheapest offering costs"},
		{"too full", `pods a-1..5 cpu=1`, "a-1 n1; a-2 n1; a-3 n1; a-4 n1; a-5 n1", "overfull"},
		{"forgotten", `pods a-1..2 cpu=1`, "a-1 n1", "mentioned 0 times"},
		{"reserved twice", `pods a-1..2 cpu=1`, "a-1 q:l:0:reserved; a-2 q:l:0:reserved", "which has no more"},
		{"reserved once", `pods a cpu=1`, "a q:l:0:reserved", ""},
	} {
		s, err := scenario.Parse(strings.NewReader(cluster + c.pods))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(Check(s, model.DefaultPolicy(), planOf(t, s, c.plan)), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// planOf reads "pod node; pod POOL:TYPE:PRICE:WHERE", where WHERE is a
// requirement, or reserved.
func planOf(t *testing.T, s *model.Snapshot, text string) *model.Plan {
	plan := &model.Plan{}
	for part := range strings.SplitSeq(text, "; ") {
		name, place, _ := strings.Cut(part, " ")
		pod := model.Pod{Namespace: "default", Name: name}
		f := strings.Split(place, ":")
		if len(f) == 1 {
			plan.Placements = append(plan.Placements, model.Placement{Pod: pod, Node: place})
			continue
		}
		price, err := scenario.ParsePrice(f[2])
		if err != nil {
			t.Fatal(err)
		}
		l := model.Launch{Pool: f[0], Types: f[1:2], CapacityTypes: []string{model.Spot}, Pods: []model.Pod{pod}, Price: price}
		for i := range s.Pools {
			if s.Pools[i].Name == l.Pool {
				l.Requirements = s.Pools[i].Requirements
			}
		}
		if key, zone, ok := strings.Cut(f[3], "="); ok && key == "zone" {
			l.Requirements = l.Requirements.And(model.NewRequirement(model.LabelZone, model.In, zone))
		}
		if f[3] == model.Reserved {
			l.CapacityTypes, l.ReservationIDs = []string{model.Reserved}, []string{"cr-1"}
		}
		plan.Launches = append(plan.Launches, l)
		plan.Cost += price
	}
	return plan
}

// TestAddable: a pod that is pending and could run is found, one that could
// not is left alone.
func TestAddable(t *testing.T) {
	for _, c := range []struct{ pods, want string }{
		{`pods a cpu=1`, "node n1"},
		{`pods a cpu=1 ports=80`, "node n2"},
		{`pods a cpu=1 anti="zone of app=web"`, "node n2"},
		{`pods a cpu=6`, "a new l in a"},
		{`pods a cpu=9`, ""},
		{`pods a cpu=1 near="zone of app=none"`, ""},
		{`pods a cpu=6 anti="zone of app=web"`, ""},
	} {
		s, err := scenario.Parse(strings.NewReader(cluster + c.pods))
		if err != nil {
			t.Fatal(err)
		}
		plan := &model.Plan{Verdicts: []model.Verdict{{Pods: s.Pending[0].Pods, Shape: s.Pending[0].Shape}}}
		got := strings.Join(Addable(s, model.DefaultPolicy(), plan, true), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.pods, got, c.want)
		}
	}
}

// TestShrink: what is left fails, and less of it would not.
func TestShrink(t *testing.T) {
	s, err := scenario.Parse(strings.NewReader(cluster + "pods a-1..9 cpu=1 labels=app=web spread=\"zone of app=web\"\npods b cpu=1"))
	if err != nil {
		t.Fatal(err)
	}
	least := Shrink(s, func(s *model.Snapshot) bool { return len(s.Pending) > 0 && len(s.Pending[0].Pods) >= 2 })
	if len(least.Pending) != 1 || len(least.Pending[0].Pods) != 2 || len(least.Nodes)+len(least.Pools)+len(least.Daemons)+len(least.Pending[0].Shape.Spread) != 0 {
		t.Errorf("left are %+v", least)
	}
	if len(s.Pending[0].Pods) != 9 || len(s.Nodes) != 2 {
		t.Error("the situation itself was changed")
	}
}
