// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/health"
	"karpenter/kube/meter"
)

// ward is a stage on which unhealthy nodes are repaired: for Bad=True after a
// minute, with the bound given; for Stuck=True rebooted after a minute, within 5
// minutes; for Odd=True without any bound.
func ward(t *testing.T, bound time.Duration, lines ...string) *stage {
	s := newStage(t)
	bad := cloud.RepairPolicy{ConditionType: "BadNode", ConditionStatus: corev1.ConditionTrue, Toleration: time.Minute, TerminationGracePeriod: &bound, Action: cloud.ReplaceNode}
	stuck, five, odd := bad, 5*time.Minute, bad
	stuck.ConditionType, stuck.ReasonRegex, stuck.TerminationGracePeriod, stuck.Action = "Stuck", ".*", &five, cloud.RebootNode
	odd.ConditionType, odd.ReasonRegex, odd.TerminationGracePeriod = "Odd", ".*", nil
	loose := odd
	loose.ConditionType, loose.Action = "Loose", cloud.RebootNode
	policies, err := health.New([]cloud.RepairPolicy{bad, stuck, odd, loose})
	s.must(err)
	s.loop.Repairs = &Repairs{Policies: policies, Counts: meter.NewUnhealthy(s.metrics)}
	for _, line := range lines {
		s.declare(line)
	}
	for _, n := range s.nodes() {
		n.Labels = map[string]string{v1.NodePoolLabelKey: "general", v1.NodeInitializedLabelKey: n.Labels[v1.NodeInitializedLabelKey]}
		s.must(s.client.Update(t.Context(), &n))
	}
	return s
}

func (s *stage) nodes() []corev1.Node {
	list := &corev1.NodeList{}
	s.must(s.client.List(s.t.Context(), list))
	return list.Items
}

func (s *stage) claim(name string) *v1.NodeClaim {
	c := &v1.NodeClaim{}
	s.must(s.client.Get(s.t.Context(), types.NamespacedName{Name: name}, c))
	return c
}

// ails gives the nodes the condition, as of now.
func (s *stage) ails(condition string, names ...string) {
	for _, name := range names {
		n := s.node(name)
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeConditionType(condition), Status: corev1.ConditionTrue, Reason: "Tested", LastTransitionTime: metav1.NewTime(s.clock.Now()),
		})
		s.must(s.client.Status().Update(s.t.Context(), n))
	}
}

// after runs a pass after the time.
func (s *stage) after(d time.Duration) string {
	s.clock.Step(d)
	return s.pass()
}

func (s *stage) want(what string, got, want any) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (s *stage) deadline(claim string) string {
	return s.claim(claim).Annotations[v1.NodeClaimTerminationTimestampAnnotationKey]
}

func (s *stage) in(d time.Duration) string { return s.clock.Now().Add(d).UTC().Format(time.RFC3339) }

func (s *stage) deleting(claim string) bool { return s.claim(claim).DeletionTimestamp != nil }

// TestRepairWithoutPods: spec 48/19, spec 48/33, spec 48/37.
func TestRepairWithoutPods(t *testing.T) {
	s := ward(t, 5*time.Minute, "pool general budget=1", "node n1 busy", "node n2 busy", "node n3 busy", "node n4 busy", "node n5 busy")
	s.ails("BadNode", "n1")
	s.after(59 * time.Second)
	s.want("spec 48/19: deleted while it is tolerated", s.deleting("c-n1"), false)
	s.after(time.Second)
	s.want("deleted", s.deleting("c-n1"), true)
	s.want("deadline", s.deadline("c-n1"), s.in(5*time.Minute))
	s.after(time.Second)
	s.want("claims created", s.creates, 0)
	const labels = "capacity_type=spot,consolidation_policy=,nodepool=general,reason=unhealthy,termination_mode=graceful"
	s.want("disrupted", s.counts("nodeclaims_disrupted_total"), "karpenter_nodeclaims_disrupted_total{"+labels+"} 1\n")
	s.want("unhealthy", s.counts("unhealthy_disrupted_total"), "karpenter_nodeclaims_unhealthy_disrupted_total{capacity_type=spot,condition=bad_node,image_id=,nodepool=general,termination_mode=eventual} 1\n")
	s.want("decisions", s.counts("decisions_total"), "karpenter_voluntary_disruption_decisions_total{consolidation_type=,decision=delete,reason=unhealthy} 1\n")
}

// TestRepairReplacesFirst: spec 48/33, spec 48/34, spec 48/35 and spec 48/36 with a
// plan that replaces the node.
func TestRepairReplacesFirst(t *testing.T) {
	s := ward(t, 0, "pool general budget=1", "node n1", "node n2", "node n3", "node n4", "node n5", "pod a node=n1")
	s.ails("BadNode", "n1")
	s.clock.Step(time.Minute)
	s.plan("Unhealthy n1 launch=general:r1")
	s.pass()
	s.want("spec 48/33: deleted before the replacement is there", s.deleting("c-n1"), false)
	s.after(time.Second)
	s.want("spec 48/34: deadline", s.deadline("c-n1"), "")
	s.after(time.Hour)
	s.script.Commands = nil
	s.after(time.Second)
	s.want("spec 48/34: deleted after the replacement never came", s.deleting("c-n1"), false)
	s.want("spec 48/34: taints after the rollback", len(s.node("n1").Spec.Taints), 0)
	s.want("spec 48/34: deadline after the rollback", s.deadline("c-n1"), "")
	s.want("spec 48/37: abandoned commands count nothing", s.counts("unhealthy_disrupted_total"), "none\n")

	s.plan("Unhealthy n1 launch=general:r2")
	s.pass()
	r2 := s.claim("r2")
	r2.StatusConditions(s.clock.Now()).SetTrue(v1.InitializedCondition)
	s.must(s.client.Status().Update(t.Context(), r2))
	s.stale.Store(true)
	s.after(time.Second)
	s.want("spec 48/36: deleted although its deadline could not be set", s.deleting("c-n1"), false)
	s.after(time.Second)
	s.want("deleted", s.deleting("c-n1"), true)
	s.want("spec 48/35: deadline", s.deadline("c-n1"), s.in(0))
	s.want("spec 48/37: mode", strings.Contains(s.counts("unhealthy_disrupted_total"), "termination_mode=forceful"), true)
}

// TestRepairBounds: spec 48/35.
func TestRepairBounds(t *testing.T) {
	for _, tc := range []struct {
		name, annotation, want string
	}{
		{"an earlier deadline stays", "2026-01-02T03:00:00Z", "2026-01-02T03:00:00Z"},
		{"a later one is brought forward", "2026-01-03T03:00:00Z", "2026-01-02T03:10:05Z"},
		{"one that cannot be read is replaced", "tomorrow", "2026-01-02T03:10:05Z"},
		{"none: the shorter of both bounds", "", "2026-01-02T03:10:05Z"},
	} {
		s := ward(t, 10*time.Minute, "pool general budget=1", "node n1 busy")
		c := s.claim("c-n1")
		c.Annotations = map[string]string{v1.NodeClaimTerminationTimestampAnnotationKey: tc.annotation}
		c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: 5 * time.Minute}
		s.must(s.client.Update(t.Context(), c))
		s.ails("BadNode", "n1")
		s.after(time.Minute)
		s.want(tc.name, s.deadline("c-n1"), tc.want)
	}
}

// TestRepairFails: a node whose claim could not be deleted loses its deadline, and
// is repaired again after a pause.
func TestRepairFails(t *testing.T) {
	s := ward(t, 5*time.Minute, "pool general budget=1", "node n1 busy", "node n2 busy", "node n3 busy", "node n4 busy", "node n5 busy")
	s.ails("BadNode", "n1")
	s.broken = true
	s.after(time.Minute)
	s.want("deadline before the deletion", s.deadline("c-n1"), s.in(5*time.Minute))
	s.after(11 * time.Minute)
	s.after(time.Second)
	s.want("deadline after the repair was given up", s.deadline("c-n1"), "")
	s.broken = false
	s.after(50 * time.Second)
	s.want("repaired again at once", s.deleting("c-n1"), false)
	s.after(20 * time.Second)
	s.want("repaired again after a pause", s.deleting("c-n1"), true)
}

// TestRepairVetoes: spec 48/20, spec 48/22, spec 48/24.
func TestRepairVetoes(t *testing.T) {
	const held = "pod default/a has the annotation karpenter.sh/do-not-disrupt"
	for _, tc := range []struct {
		name      string
		condition string
		change    func(s *stage)
		event     string // "" = it is repaired
	}{
		{"spec 48/20 veto", "BadNode", func(s *stage) { s.annotate("n1", v1.DoNotRepairAnnotationKey, "true") }, v1.DoNotRepairAnnotationKey},
		{"spec 48/20 veto of a reboot", "Stuck", func(s *stage) { s.annotate("n1", v1.DoNotRepairAnnotationKey, "true") }, v1.DoNotRepairAnnotationKey},
		{"spec 48/20 false is no veto", "BadNode", func(s *stage) { s.annotate("n1", v1.DoNotRepairAnnotationKey, "false") }, ""},
		{"spec 48/20 veto before bound", "Odd", func(s *stage) { s.held = held; s.annotate("n1", v1.DoNotRepairAnnotationKey, "true") }, v1.DoNotRepairAnnotationKey},
		{"a veto on the NodeClaim", "BadNode", func(s *stage) {
			c := s.claim("c-n1")
			c.Annotations = map[string]string{v1.DoNotRepairAnnotationKey: "true"}
			s.must(s.client.Update(t.Context(), c))
		}, v1.DoNotRepairAnnotationKey},
		{"spec 48/22 blocking pods and no bound", "Odd", func(s *stage) { s.held = held }, "repair requires a termination grace period to bypass blocking pods"},
		{"spec 48/22 blocking pods and a policy's bound", "BadNode", func(s *stage) { s.held = held }, ""},
		{"spec 48/22 blocking pods and the claim's bound", "Odd", func(s *stage) {
			s.held = held
			c := s.claim("c-n1")
			c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Minute}
			s.must(s.client.Update(t.Context(), c))
		}, ""},
		{"spec 48/24 no NodePool", "BadNode", func(s *stage) {
			c := s.claim("c-n1")
			c.Labels = nil
			s.must(s.client.Update(t.Context(), c))
		}, "repair requires a NodePool"},
		{"spec 48/21 do-not-disrupt", "BadNode", func(s *stage) { s.blocked["n1"] = "the node has the annotation karpenter.sh/do-not-disrupt" }, ""},
		{"spec 48/23 nominated", "BadNode", func(s *stage) { s.blocked["n1"] = "the node is nominated for a pending pod" }, "nothing"},
	} {
		s := ward(t, time.Minute, "pool general budget=1", "node n1 busy", "node n2 busy", "node n3 busy", "node n4 busy", "node n5 busy")
		tc.change(s)
		s.ails(tc.condition, "n1")
		if out := s.pass(); strings.Contains(out, "repair") {
			t.Errorf("%s: before the toleration is over: %s", tc.name, out)
		}
		out := s.after(time.Minute)
		repaired := s.deleting("c-n1") || conditions.IsTrue(s.claim("c-n1"), v1.RebootingCondition)
		if repaired != (tc.event == "") || tc.event != "nothing" && !strings.Contains(out, tc.event) {
			t.Errorf("%s: repaired: %t, events: %s", tc.name, repaired, out)
		}
	}
}

func (s *stage) annotate(node, key, value string) {
	n := s.node(node)
	n.Annotations = map[string]string{key: value}
	s.must(s.client.Update(s.t.Context(), n))
}

// TestRepairOff: spec 48/27.
func TestRepairOff(t *testing.T) {
	s := ward(t, 0, "pool general budget=1", "node n1 busy")
	s.loop.Repairs = nil
	s.ails("BadNode", "n1")
	s.after(time.Hour)
	s.want("deleted", s.deleting("c-n1"), false)
}

// TestRepairBreaker: spec 48/30.
func TestRepairBreaker(t *testing.T) {
	nodes := func(n int) []string {
		return []string{"node n1 busy", "node n2 busy", "node n3 busy", "node n4 busy", "node n5 busy", "node n6 busy", "node n7 busy", "node n8 busy", "node n9 busy", "node n10 busy"}[:n]
	}
	s := ward(t, 0, append(nodes(10), "pool general budget=10")...)
	s.ails("BadNode", "n1")
	s.clock.Step(time.Minute)
	s.ails("BadNode", "n2", "n3")
	out := s.pass()
	s.want("deleted with 3 of 10 unhealthy", s.deleting("c-n1"), false)
	for _, on := range []string{"n1", "c-n1", "general"} {
		if !strings.Contains(out, "event on "+on+" NodeRepairBlocked: ") {
			t.Errorf("no event on %s: %s", on, out)
		}
	}
	s = ward(t, 0, append(nodes(3), "pool general budget=10")...)
	s.ails("BadNode", "n1")
	s.after(time.Minute)
	s.want("deleted with 1 of 3 unhealthy", s.deleting("c-n1"), true)

	// Nodes that start do not count: a scale-up does not stop repairs.
	s = ward(t, 0, append(nodes(3), "pool general budget=10", "node b1 uninitialized", "node b2 uninitialized", "node b3 uninitialized")...)
	s.ails("BadNode", "n1")
	s.clock.Step(time.Minute)
	s.ails("BadNode", "b1", "b2", "b3")
	s.pass()
	s.want("deleted while three nodes start", s.deleting("c-n1"), true)
}

// TestRepairBudget: spec 48/28, spec 48/29.
func TestRepairBudget(t *testing.T) {
	s := ward(t, 0, "pool general budget=0", "node n1 busy", "node n2 busy", "node n3 busy", "node n4 busy", "node n5 busy")
	s.ails("BadNode", "n1")
	out := s.after(time.Minute)
	s.want("deleted without a budget", s.deleting("c-n1"), false)
	if !strings.Contains(out, "event on general DisruptionBlocked: No allowed disruptions for disruption reason Unhealthy") {
		t.Errorf("events: %s", out)
	}
	pool := &v1.NodePool{}
	s.must(s.client.Get(t.Context(), types.NamespacedName{Name: "general"}, pool))
	pool.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "1"}}
	s.must(s.client.Update(t.Context(), pool))
	s.after(time.Minute)
	s.want("deleted when the budget allows it", s.deleting("c-n1"), true)
}

// TestReboot: spec 48/39, spec 48/40.
func TestReboot(t *testing.T) {
	for _, tc := range []struct {
		name, condition, old, want string
		own                        time.Duration
	}{
		{"spec 48/39 the policy's bound", "Stuck", "", "5m0s", 0},
		{"spec 48/40 no bound, and an old annotation", "Loose", "3m0s", "", 0},
		{"spec 48/40 the claim's bound", "Loose", "", "7m0s", 7 * time.Minute},
	} {
		s := ward(t, 0, "pool general budget=1", "node n1 busy", "node n2 busy", "node n3 busy", "node n4 busy", "node n5 busy")
		c := s.claim("c-n1")
		if tc.old != "" {
			c.Annotations = map[string]string{v1.RebootGracePeriodAnnotationKey: tc.old}
		}
		if tc.own > 0 {
			c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: tc.own}
		}
		s.must(s.client.Update(t.Context(), c))
		s.ails(tc.condition, "n1")
		s.after(time.Minute)
		c = s.claim("c-n1")
		s.want(tc.name+": bound", c.Annotations[v1.RebootGracePeriodAnnotationKey], tc.want)
		rebooting := conditions.Get(c, v1.RebootingCondition)
		if rebooting == nil || rebooting.Reason != v1.RebootRequestedReason || rebooting.Message != "rebooting for "+tc.condition+"/Tested" {
			t.Fatalf("%s: condition %+v", tc.name, rebooting)
		}
		s.want(tc.name+": reason", conditions.Get(c, v1.DisruptionReasonCondition).Reason, "Unhealthy")
		version := c.ResourceVersion
		s.after(time.Minute)
		s.after(time.Minute)
		s.want(tc.name+": version after two more passes", s.claim("c-n1").ResourceVersion, version)
		s.want(tc.name+": taints", len(s.node("n1").Spec.Taints), 0)
		s.want(tc.name+": created", s.creates, 0)
		s.want(tc.name+": decisions", s.counts("decisions_total"), "karpenter_voluntary_disruption_decisions_total{consolidation_type=,decision=reboot,reason=unhealthy} 1\n")
	}
}

// TestRebootEscalates: spec 48/41, spec 48/26. The history survives the process.
func TestRebootEscalates(t *testing.T) {
	for _, tc := range []struct {
		name     string
		pause    time.Duration
		replaced bool
	}{
		{"within 24 hours", time.Hour, true},
		{"after 25 hours", 25 * time.Hour, false},
	} {
		s := ward(t, 0, "pool general budget=1", "node n1 busy", "node n2 busy", "node n3 busy", "node n4 busy", "node n5 busy")
		s.ails("Stuck", "n1")
		for range 2 {
			s.after(2 * time.Minute)
			s.finishReboot("c-n1")
			s.pass()
			if conditions.IsTrue(s.claim("c-n1"), v1.RebootingCondition) {
				t.Fatalf("spec 48/26: %s: the toleration does not count from the end of the reboot", tc.name)
			}
		}
		repairs := s.loop.Repairs
		s.restart()
		s.loop.Repairs = &Repairs{Policies: repairs.Policies, Counts: meter.NewUnhealthy(s.metrics)}
		s.after(tc.pause)
		s.want(tc.name+": replaced", s.deleting("c-n1"), tc.replaced)
		s.want(tc.name+": rebooting", conditions.IsTrue(s.claim("c-n1"), v1.RebootingCondition), !tc.replaced)
	}
}

func (s *stage) finishReboot(claim string) {
	c := s.claim(claim)
	if !conditions.IsTrue(c, v1.RebootingCondition) {
		s.t.Fatalf("%s does not reboot", claim)
	}
	c.StatusConditions(s.clock.Now()).SetFalse(v1.RebootingCondition, v1.RebootSucceededReason, "")
	s.must(s.client.Status().Update(s.t.Context(), c))
}

// TestQueueFailureType: spec 48/82.
func TestQueueFailureType(t *testing.T) {
	for nodes, want := range map[string]string{"n1": "single", "n1,n2": "multi"} {
		s := newStage(t)
		for _, line := range []string{"pool general budget=100%", "node n1", "node n2", "pod a node=n1", "pod b node=n2"} {
			s.declare(line)
		}
		s.plan("Underutilized " + nodes + " launch=general:r1")
		s.pass()
		s.after(DefaultDelay)
		s.after(time.Hour)
		s.want(nodes, s.counts("queue_failures"), "karpenter_voluntary_disruption_queue_failures_total{consolidation_type="+want+",decision=replace,reason=underutilized} 1\n")
	}
}
