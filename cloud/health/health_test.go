// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/cloud"
	"karpenter/cloud/health"
)

func start() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

func bound(n int) *time.Duration {
	d := minutes(n)
	return &d
}

// fallback is a valid policy without an expression.
func fallback() cloud.RepairPolicy {
	return cloud.RepairPolicy{ConditionType: "Ready", ConditionStatus: corev1.ConditionFalse, Toleration: minutes(30), TerminationGracePeriod: bound(10), Priority: 5, Action: cloud.ReplaceNode}
}

// policy is one for GPU=False and a reason.
func policy(reason string, toleration int, action cloud.RepairAction) cloud.RepairPolicy {
	return cloud.RepairPolicy{ConditionType: "GPU", ConditionStatus: corev1.ConditionFalse, ReasonRegex: reason, Toleration: minutes(toleration), Action: action}
}

func (c condition) on(name string, status corev1.ConditionStatus) corev1.NodeCondition {
	at := metav1.Time{}
	if c.since != nil {
		at = metav1.NewTime(start().Add(minutes(*c.since)))
	}
	return corev1.NodeCondition{Type: corev1.NodeConditionType(name), Status: status, Reason: c.reason, LastTransitionTime: at}
}

// condition is a False one; since is in minutes after the node's creation, nil =
// not known.
type condition struct {
	name, reason string
	since        *int
}

func since(n int) *int { return &n }

func node(conditions ...condition) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start())}}
	for _, c := range conditions {
		n.Status.Conditions = append(n.Status.Conditions, c.on(c.name, corev1.ConditionFalse))
	}
	return n
}

func policies(t *testing.T, all ...cloud.RepairPolicy) *health.Policies {
	t.Helper()
	set, err := health.New(all)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestInvalidPolicies: spec 48/10.
func TestInvalidPolicies(t *testing.T) {
	with := func(change func(*cloud.RepairPolicy)) []cloud.RepairPolicy {
		p := policy("X", 10, cloud.ReplaceNode)
		change(&p)
		return []cloud.RepairPolicy{fallback(), p}
	}
	rebooting := fallback()
	rebooting.Action = cloud.RebootNode
	for _, tc := range []struct {
		name string
		set  []cloud.RepairPolicy
		want []string
	}{
		{"two fallbacks", []cloud.RepairPolicy{fallback(), fallback()}, []string{"2 repair policies have no reason expression"}},
		{"none", nil, []string{"0 repair policies have no reason expression"}},
		{".* is no fallback", []cloud.RepairPolicy{policy(".*", 1, cloud.ReplaceNode)}, []string{"0 repair policies"}},
		{"fallback that reboots", []cloud.RepairPolicy{rebooting}, []string{"must have the action ReplaceNode"}},
		{"expression", with(func(p *cloud.RepairPolicy) { p.ReasonRegex = "(" }), []string{"missing closing )"}},
		{"type", with(func(p *cloud.RepairPolicy) { p.ConditionType = "" }), []string{"the condition type is empty"}},
		{"status", with(func(p *cloud.RepairPolicy) { p.ConditionStatus = "Maybe" }), []string{`condition status "Maybe"`}},
		{"toleration", with(func(p *cloud.RepairPolicy) { p.Toleration = -1 }), []string{"toleration -1ns is negative"}},
		{"bound", with(func(p *cloud.RepairPolicy) { p.TerminationGracePeriod = bound(-1) }), []string{"termination grace period is negative"}},
		{"low priority", with(func(p *cloud.RepairPolicy) { p.Priority = -1 }), []string{"priority -1"}},
		{"high priority", with(func(p *cloud.RepairPolicy) { p.Priority = 101 }), []string{"priority 101"}},
		{"action", with(func(p *cloud.RepairPolicy) { p.Action = "Wish" }), []string{`action "Wish"`}},
		{"several faults", with(func(p *cloud.RepairPolicy) { p.Priority, p.Action, p.ConditionType = 101, "Wish", "" }), []string{"priority 101", `action "Wish"`, "type is empty"}},
	} {
		_, err := health.New(tc.set)
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", tc.name, err, want)
			}
		}
	}
	if _, err := health.New([]cloud.RepairPolicy{policy(".*", 0, cloud.RebootNode), fallback()}); err != nil {
		t.Errorf("valid policies: %v", err)
	}
}

// diagnosis is what is found at a minute after the node's creation.
func diagnosis(set *health.Policies, n *corev1.Node, at, floor int) string {
	var end time.Time
	if floor > 0 {
		end = start().Add(minutes(floor))
	}
	d, sick := set.Diagnose(n, start().Add(minutes(at)), end)
	if !sick {
		return "nothing"
	}
	b := "unbounded"
	if d.Bound != nil {
		b = d.Bound.String()
	}
	return fmt.Sprintf("%s for %s, priority %d, bound %s", d.Action, d.Condition.Type, d.Policy.Priority, b)
}

func TestDiagnose(t *testing.T) {
	slow, quick := policy("^Slow", 40, cloud.ReplaceNode), policy("Quick", 10, cloud.RebootNode)
	quick.TerminationGracePeriod, quick.Priority = bound(5), 90
	disk := cloud.RepairPolicy{ConditionType: "Disk", ConditionStatus: corev1.ConditionFalse, ReasonRegex: ".*", Toleration: minutes(10), TerminationGracePeriod: bound(10), Action: cloud.ReplaceNode, Priority: 90}
	again := disk
	again.ConditionType = "Apple"
	set := policies(t, fallback(), slow, quick, disk, again)
	for _, tc := range []struct {
		name      string
		node      *corev1.Node
		at, floor int
		want      string
	}{
		{"spec 48/11 a specific policy keeps the fallback out while it tolerates", node(condition{"GPU", "Slow", since(0)}), 39, 0, "nothing"},
		{"spec 48/11 its toleration is over", node(condition{"GPU", "Slow", since(0)}), 40, 0, "ReplaceNode for GPU, priority 0, bound unbounded"},
		{"spec 48/12 unknown reason", node(condition{"GPU", "Odd", since(0)}), 30, 0, "ReplaceNode for GPU, priority 5, bound 10m0s"},
		{"spec 48/12 unknown reason, tolerated", node(condition{"GPU", "Odd", since(0)}), 29, 0, "nothing"},
		{"spec 48/12 unknown type", node(condition{"Odd", "Quick", since(0)}), 999, 0, "nothing"},
		{"spec 48/13 a transition starts the age anew", node(condition{"GPU", "Quick", since(5)}), 14, 0, "nothing"},
		{"spec 48/13 a transition before the node's creation", node(condition{"GPU", "Quick", since(-60)}), 9, 0, "nothing"},
		{"spec 48/13 no transition time", node(condition{"GPU", "Quick", nil}), 9, 0, "nothing"},
		{"spec 48/13 no transition time, over", node(condition{"GPU", "Quick", nil}), 10, 0, "RebootNode for GPU, priority 90, bound 5m0s"},
		{"spec 48/14 replacing beats rebooting, the shortest bound holds", node(condition{"GPU", "Quick", since(0)}, condition{"Disk", "", since(0)}), 10, 0, "ReplaceNode for Disk, priority 90, bound 5m0s"},
		{"spec 48/15 equal: the earlier one", node(condition{"Apple", "", since(1)}, condition{"Disk", "", since(0)}), 20, 0, "ReplaceNode for Disk, priority 90, bound 10m0s"},
		{"spec 48/15 equal and as early: the smaller type", node(condition{"Disk", "", since(0)}, condition{"Apple", "", since(0)}), 20, 0, "ReplaceNode for Apple, priority 90, bound 10m0s"},
		{"spec 48/26 after a reboot", node(condition{"GPU", "Quick", since(0)}), 24, 15, "nothing"},
		{"spec 48/26 long after a reboot", node(condition{"GPU", "Quick", since(0)}), 25, 15, "RebootNode for GPU, priority 90, bound 5m0s"},
	} {
		if got := diagnosis(set, tc.node, tc.at, tc.floor); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	if set.Sick(node(condition{"Odd", "", nil})) || !set.Sick(node(condition{"GPU", "whatever", nil})) {
		t.Error("a node is sick if the type and the status of a condition are known")
	}
	ready := node()
	ready.Status.Conditions = []corev1.NodeCondition{{Type: "GPU", Status: corev1.ConditionUnknown}}
	if got := diagnosis(set, ready, 999, 0); got != "nothing" {
		t.Errorf("spec 48/12 unknown status: %s", got)
	}
}

// TestScore: spec 48/16, 48/17.
func TestScore(t *testing.T) {
	low, high := policy("Low", 0, cloud.ReplaceNode), policy("High", 0, cloud.ReplaceNode)
	low.Priority, high.Priority = 10, 90
	last := fallback()
	last.Priority = 10
	set := policies(t, last, low, high)
	score := func(n *corev1.Node, at int) float64 {
		d, sick := set.Diagnose(n, start().Add(minutes(at)), time.Time{})
		if !sick {
			t.Fatal("healthy")
		}
		return d.Score
	}
	lowFor := func(age int) float64 { return score(node(condition{"GPU", "Low", since(100 - age)}), 100) }
	highFor := func(age int) float64 { return score(node(condition{"GPU", "High", since(100 - age)}), 100) }
	if lowFor(0) >= highFor(0) || lowFor(31) <= highFor(0) || lowFor(29) >= highFor(0) {
		t.Errorf("spec 48/16: scores %v, %v and %v against %v", lowFor(0), lowFor(29), lowFor(31), highFor(0))
	}
	both := func(lowAge int) float64 {
		n := node(condition{"GPU", "Low", since(100 - lowAge)}, condition{"GPU", "High", since(100)})
		return score(n, 100)
	}
	if both(10) != highFor(0) || both(50) != lowFor(50) {
		t.Errorf("spec 48/17: scores %v and %v, want %v and %v", both(10), both(50), highFor(0), lowFor(50))
	}
}
