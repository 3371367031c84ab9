// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/solve"
)

// spec 20/1: a pod is provisioned for after the idle window, and nothing
// happens as long as nothing is pending.
func TestTiming(t *testing.T) {
	s := newStage(t)
	if after := s.reconcile(); after != 0 {
		t.Errorf("comes back after %v with nothing to do", after)
	}
	s.pool("default", nil)
	s.pod("a", "1", nil)
	if after := s.reconcile(); after != time.Second {
		t.Errorf("comes back after %v, want the idle time", after)
	}
	s.clock.SetTime(s.clock.Now().Add(900 * time.Millisecond))
	s.pod("b", "1", nil)
	s.clock.SetTime(s.clock.Now().Add(100 * time.Millisecond))
	if after := s.reconcile(); after != 900*time.Millisecond {
		t.Errorf("comes back after %v, want the rest of the idle time of the second pod", after)
	}
	s.wantClaims(0)
	s.clock.SetTime(s.clock.Now().Add(900 * time.Millisecond))
	if after := s.reconcile(); after != RetryAfter {
		t.Errorf("comes back after %v with pods pending, want %v", after, RetryAfter)
	}
	s.wantClaims(1)
	s.world.DeletePod("default", "a")
	s.world.DeletePod("default", "b")
	s.clock.SetTime(s.clock.Now().Add(RetryAfter))
	if after := s.reconcile(); after != 0 {
		t.Errorf("comes back after %v with nothing pending", after)
	}
}

// spec 20/4: nothing is created before the world is complete.
func TestNotReady(t *testing.T) {
	s := newStage(t)
	s.isReady = false
	s.pool("default", nil)
	s.pod("a", "1", nil)
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	if after := s.reconcile(); after <= 0 {
		t.Error("does not come back")
	}
	s.wantClaims(0)
	s.isReady = true
	s.reconcile()
	s.wantClaims(1)
}

// The next pass finds the pods planned, before any event has come back about
// the claims and afterwards.
func TestPassesDoNotRepeatEachOther(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	for i := range 20 {
		s.pod(fmt.Sprint("a", i), "1", nil)
	}
	s.mustPass()
	first := len(s.claims())
	if first == 0 {
		t.Fatal("no claims")
	}
	s.said()
	s.mustPass()
	s.wantClaims(first)
	s.showClaims()
	for range 3 {
		s.mustPass()
	}
	s.wantClaims(first)
	if got := s.said(); len(got) > 0 {
		t.Errorf("events about pods that are planned already: %v", got)
	}
	s.pod("more", "0.1", nil)
	s.mustPass()
	if got := s.said(); len(got) != 1 || !strings.HasPrefix(got[0], "Nominated pod/more: Pod should run on nodeclaim/default-") {
		t.Errorf("events %v, want one nomination for the claim on its way", got)
	}
	s.wantClaims(first)
}

// A claim that is abandoned leaves its pods to be planned again, on what the
// cloud has left.
func TestInsufficientCapacityIsNoStorm(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", nil)
	for round := range 4 {
		s.mustPass()
		claims := s.claims()
		if round == 3 {
			if len(claims) != 0 {
				t.Fatalf("claims %v although nothing is available", claims)
			}
			break
		}
		if len(claims) != 1 {
			t.Fatalf("round %d: %d claims", round, len(claims))
		}
		// The cloud is out of the smallest type the claim listed.
		for i, x := range s.types {
			copied := *x
			copied.Offerings = nil
			for _, o := range x.Offerings {
				o.Available = o.Available && i > round
				copied.Offerings = append(copied.Offerings, o)
			}
			s.types[i] = &copied
		}
		claims[0].Finalizers = nil
		if err := s.Client.Update(t.Context(), &claims[0]); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.Delete(t.Context(), &claims[0]); err != nil {
			t.Fatal(err)
		}
		s.world.DeleteClaim(claims[0].Name)
	}
	failed := s.events.Of("FailedScheduling")
	if len(failed) != 1 || !strings.Contains(failed[0].Message, "0 after unavailable offerings") {
		t.Errorf("events %v, want one FailedScheduling", s.said())
	}
}

// spec 20/73: a limit of two nodes over three passes.
func TestNodeLimitHoldsOverPasses(t *testing.T) {
	s := newStage(t)
	s.pool("default", limited("nodes", "2"))
	for i := range 3 {
		s.pod(fmt.Sprint("a", i), "15", nil)
		s.mustPass()
	}
	s.wantClaims(2)
	failed := s.events.Of("FailedScheduling")
	if len(failed) != 1 || failed[0].Object.GetName() != "a2" || !strings.Contains(failed[0].Message, "limits nodes=2 (2 used)") {
		t.Errorf("events %v", s.said())
	}
}

// spec 20/72: a second pass would go over a limit that claims on their way
// have used up.
func TestLimitCountsWhatIsOnItsWay(t *testing.T) {
	s := newStage(t)
	s.pool("default", limited("cpu", "16"))
	s.pod("a", "15", nil)
	s.mustPass()
	s.wantClaims(1)
	s.pod("b", "1", func(p *corev1.Pod) {
		// Not on the node of a: it wants a type that node is not.
		p.Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: "small-instance-type"}
	})
	s.mustPass()
	s.wantClaims(1)
}

// The limits are checked again when claims are created: a plan that is out of
// date does not overshoot.
func TestCreationNeverOvershoots(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limit  func(*v1.NodePool)
		claims int
		want   string
	}{
		{"cpu", limited("cpu", "35"), 2, "its limit cpu=35 would be exceeded"},
		{"nodes", limited("nodes", "3"), 3, "its limit nodes=3 would be exceeded"},
		{"memory of the largest type", limited("memory", "127Gi"), 1, "its limit memory=127Gi would be exceeded"},
		{"none", nil, 5, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			s.pool("default", tc.limit)
			s.pod("a", "1", nil)
			s.Decide = func(x *model.Snapshot) *model.Plan {
				plan := &model.Plan{}
				for range 5 {
					plan.Launches = append(plan.Launches, model.Launch{
						Pool: "default", Types: []string{"small-instance-type", "large-instance-type"}, Pods: x.Pending[0].Pods,
					})
				}
				return plan
			}
			err := s.passes()
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want …%s", err, tc.want)
			}
			s.wantClaims(tc.claims)
		})
	}
}

// What has changed since the plan was made counts when it is carried out.
func TestPlansGetOld(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*stage)
		claims int
		fails  bool
	}{
		{"nothing changed", func(*stage) {}, 1, false},
		{"the pod is gone", func(s *stage) { s.world.DeletePod("default", "a") }, 0, false},
		{"the pool is gone", func(s *stage) { s.world.DeletePool("default") }, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStage(t)
			s.pool("default", nil)
			s.pod("a", "1", nil)
			decide := s.Decide
			s.Decide = func(x *model.Snapshot) *model.Plan {
				plan := decide(x)
				tc.change(s)
				return plan
			}
			if err := s.passes(); (err != nil) != tc.fails {
				t.Errorf("error is %v", err)
			}
			s.wantClaims(tc.claims)
		})
	}
}

// spec 20/142: a claim is made from the pool as it was when the pass began.
func TestPoolEditedMeanwhile(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", nil)
	before := &v1.NodePool{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "default"}, before); err != nil {
		t.Fatal(err)
	}
	decide := s.Decide
	s.Decide = func(x *model.Snapshot) *model.Plan {
		edited := before.DeepCopy()
		edited.Spec.Template.Labels = map[string]string{"edited": "true"}
		edited.Spec.Template.Spec.NodeClassRef.Name = "other"
		if err := s.Client.Update(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		return decide(x)
	}
	s.mustPass()
	claim := s.wantClaims(1)[0]
	if got := claim.Annotations[v1.NodePoolHashAnnotationKey]; got != before.Hash() {
		t.Errorf("hash %s, want that of the pool before the edit, %s", got, before.Hash())
	}
	if claim.Spec.NodeClassRef.Name != "default" || claim.Labels["edited"] != "" {
		t.Errorf("claim of class %s with labels %v", claim.Spec.NodeClassRef.Name, claim.Labels)
	}
	truth := true
	want := []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "default", UID: "pool-default", BlockOwnerDeletion: &truth}}
	if diff := cmp.Diff(want, claim.OwnerReferences); diff != "" {
		t.Errorf("owner: -want +got:\n%s", diff)
	}
}

// What a plan costs, and what any would, is shown until the next one.
func TestPlanMetrics(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "15", nil)
	s.mustPass()
	read := func(name string) float64 {
		families, err := s.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "karpenter_scheduler_plan_"+name {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatalf("no metric %s", name)
		return 0
	}
	cost, bound, gap := read("cost_dollars_per_hour"), read("bound_dollars_per_hour"), read("gap_ratio")
	if cost <= 0 || bound <= 0 || bound > cost || gap != (cost-bound)/bound {
		t.Errorf("cost %v, bound %v, gap %v", cost, bound, gap)
	}
	s.mustPass() // nothing is left to launch
	if again := read("cost_dollars_per_hour"); again != cost {
		t.Errorf("cost %v after a pass that launches nothing, was %v", again, cost)
	}
}

// One claim that cannot be created neither keeps the others from being created
// nor is it forgotten.
func TestCreationFails(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "15", nil)
	s.pod("b", "15", nil)
	var calls atomic.Int32 // claims are created at once
	s.fail = func(*v1.NodeClaim) error {
		if calls.Add(1) == 1 {
			return errors.New("the API server is busy")
		}
		return nil
	}
	if err := s.passes(); err == nil || err.Error() != "create node claim for node pool default: the API server is busy" {
		t.Errorf("error is %v", err)
	}
	s.wantClaims(1)
	if after := s.reconcile(); after != RetryAfter {
		t.Errorf("comes back after %v", after)
	}
	s.wantClaims(2)
	want := `
# HELP karpenter_nodeclaims_created_total Number of node claims created.
# TYPE karpenter_nodeclaims_created_total counter
karpenter_nodeclaims_created_total{min_values_relaxed="false",nodepool="default",reason="provisioned"} 2
`
	if err := testutil.GatherAndCompare(s.registry, strings.NewReader(want), "karpenter_nodeclaims_created_total"); err != nil {
		t.Error(err)
	}
}

// Pods go to a node that has capacity, which then is not disrupted.
func TestExistingNode(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.node("n1", "default", nil)
	s.pod("a", "1", nil)
	s.mustPass()
	s.wantClaims(0)
	want := []string{"Nominated pod/a: Pod should run on node/n1, nodeclaim/n1-claim"}
	if diff := cmp.Diff(want, s.said()); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
	for _, tc := range []struct {
		after time.Duration
		want  string
	}{{0, "the node is nominated for a pending pod"}, {21 * time.Second, ""}} {
		snapshot := s.world.Snapshot(s.clock.Now().Add(tc.after))
		if got := snapshot.Nodes[0].Disruption.Blocked; got != tc.want {
			t.Errorf("after %v the node is blocked: %q, want %q", tc.after, got, tc.want)
		}
		if got := snapshot.Pending[0].Pods[0].Planned; got != "n1" {
			t.Errorf("the pod is planned on %q", got)
		}
	}
}

// spec 20/57: the pods of a node that is removed get another before they are
// evicted.
func TestDeletingNode(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.node("n1", "default", nil)
	controller := true
	s.pod("a", "1", func(p *corev1.Pod) {
		p.Spec.NodeName = "n1"
		p.Status.Conditions = nil
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", Controller: &controller}}
	})
	s.mustPass()
	s.wantClaims(0)
	s.world.MarkForDeletion("n1-claim")
	if after := s.reconcile(); after != time.Second {
		t.Errorf("comes back after %v: a node that is removed is a trigger", after)
	}
	s.mustPass()
	s.wantClaims(1)
}

func TestFailedScheduling(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("big", "1000", nil)
	s.mustPass()
	s.wantClaims(0)
	first := s.said()
	want := "FailedScheduling pod/big: Failed to schedule pod, nodepool default: 18 offerings → 0 after requests cpu=1000 pods=1"
	if len(first) != 1 || !strings.HasPrefix(first[0], want) {
		t.Fatalf("events %v, want %s", first, want)
	}
	if n := testutil.ToFloat64(s.Metrics.unschedulable); n != 1 {
		t.Errorf("unschedulable pods: %v", n)
	}
	for range 60 {
		s.mustPass() // every ten seconds, for ten minutes
	}
	if got := s.said(); len(got) > 0 {
		t.Errorf("nothing changed, and there were %v", got)
	}
	s.pool("other", nil)
	s.mustPass()
	if got := s.said(); len(got) != 1 || !strings.Contains(got[0], "nodepool other: 18 offerings") {
		t.Errorf("events after a change: %v", got)
	}
	s.clock.SetTime(s.clock.Now().Add(remindAfter))
	s.mustPass()
	if got := s.said(); len(got) != 1 {
		t.Errorf("events after %v without a change: %v", remindAfter, got)
	}
}

// A change has an event at most every five minutes.
func TestFailedSchedulingThatKeepsChanging(t *testing.T) {
	verdict := func(reason string) []model.Verdict {
		return []model.Verdict{{Reason: reason, Pods: []model.Pod{{Name: "a", UID: "a"}}}}
	}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	memory := told{}
	for i, tc := range []struct {
		after  time.Duration
		reason string
		told   bool
	}{
		{0, "x", true}, {time.Minute, "y", false}, {5 * time.Minute, "y", true}, {6 * time.Minute, "y", false},
		{11 * time.Minute, "x", true},
	} {
		if got := memory.news(verdict(tc.reason), now.Add(tc.after)); (len(got) == 1) != tc.told {
			t.Errorf("step %d: events %v", i, got)
		}
	}
	if memory.news(nil, now); len(memory) != 0 {
		t.Errorf("still remembered: %v", memory)
	}
}

// spec 20/164: a pool whose requirements leave no type gets an event, and
// existing nodes are used all the same.
func TestNoCompatibleInstanceTypes(t *testing.T) {
	s := newStage(t)
	s.pool("default", func(p *v1.NodePool) {
		p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"unheard-of"}},
		}
	})
	s.pod("a", "3", nil)
	s.pod("b", "3", nil)
	s.node("n1", "default", nil)
	s.mustPass()
	s.wantClaims(0)
	got := s.said()
	if len(got) != 3 || !strings.HasPrefix(got[0], "FailedScheduling pod/b: ") ||
		!strings.HasPrefix(got[1], "NoCompatibleInstanceTypes nodepool/default: The requirements of the NodePool leave no instance type") ||
		!strings.HasPrefix(got[2], "Nominated pod/a: Pod should run on node/n1") {
		t.Errorf("events:\n%s", strings.Join(got, "\n"))
	}
}

// A pool that has fewer instance types than its minValues demand gets an event
// that reports this; spec 20/133: unless minValues may be relaxed: then the
// claim and the metric report that they were.
func TestMinValuesThatNothingMeets(t *testing.T) {
	start := func() *stage {
		s := newStage(t)
		s.pool("default", func(p *v1.NodePool) {
			p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpExists, MinValues: ptr.To(50)},
			}
		})
		s.pod("a", "1", nil)
		return s
	}
	s := start()
	s.mustPass()
	s.wantClaims(0)
	if got := strings.Join(s.said(), "\n"); !strings.Contains(got, "NoCompatibleInstanceTypes nodepool/default: ") ||
		!strings.Contains(got, "minValues of node.kubernetes.io/instance-type: 50 wanted") {
		t.Errorf("events:\n%s", got)
	}
	s = start()
	s.Decide = func(x *model.Snapshot) *model.Plan {
		p := model.DefaultPolicy()
		p.RelaxMinValues = true
		return solve.Decide(x, p)
	}
	s.mustPass()
	claim := s.wantClaims(1)[0]
	if claim.Annotations[v1.NodeClaimMinValuesRelaxedAnnotationKey] != "true" {
		t.Errorf("annotations %v", claim.Annotations)
	}
	want := `
# HELP karpenter_nodeclaims_created_total Number of node claims created.
# TYPE karpenter_nodeclaims_created_total counter
karpenter_nodeclaims_created_total{min_values_relaxed="true",nodepool="default",reason="provisioned"} 1
`
	if err := testutil.GatherAndCompare(s.registry, strings.NewReader(want), "karpenter_nodeclaims_created_total"); err != nil {
		t.Error(err)
	}
}

// spec 20/18: pods that opted out are no one's business here; spec 20/16: a
// pod that asks for a reserved label gets an event that there is none.
func TestPodsThatAskForOddLabels(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("out", "1", func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: v1.NodePoolLabelKey, Operator: corev1.NodeSelectorOpDoesNotExist},
			}}},
		}}}
	})
	s.pod("odd", "1", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"karpenter.sh/xyz": "a"} })
	s.mustPass()
	s.wantClaims(0)
	got := s.said()
	if len(got) != 1 || !strings.HasPrefix(got[0], "FailedScheduling pod/odd: ") {
		t.Errorf("events %v", got)
	}
}

func TestIgnoredPods(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.pod("a", "1", func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}
	})
	s.mustPass()
	ignored, unschedulable := testutil.ToFloat64(s.Metrics.ignored), testutil.ToFloat64(s.Metrics.unschedulable)
	if refused := s.world.Snapshot(s.clock.Now()).Pending[0].Shape.Refused; (len(refused) > 0) != (ignored == 1) || ignored+unschedulable > 1 {
		t.Errorf("ignored %v, unschedulable %v of a pod that uses %v", ignored, unschedulable, refused)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	if got := cut(strings.Repeat("x", longest)); len(got) != longest || strings.HasSuffix(got, "…") {
		t.Errorf("cut what fits to %d bytes", len(got))
	}
	got := cut(strings.Repeat("é", longest))
	if len(got) > longest || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes ending in %q", len(got), got[len(got)-5:])
	}
	if got := typesText([]string{"a", "b", "c", "d", "e"}); got != "a, b, c, d, e" {
		t.Error(got)
	}
	if got := typesText([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e and 2 more" {
		t.Error(got)
	}
}
