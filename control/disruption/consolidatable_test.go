package disruption

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

func TestConsolidatable(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const none, never = "", "Never"
	tests := []struct {
		name        string
		after       string                 // consolidateAfter
		initialized metav1.ConditionStatus // set 5 minutes ago; "" = not at all
		event       time.Duration          // since the last pod event; 0 = there was none
		was         bool                   // condition before
		change      func(*v1.NodeClaim, *v1.NodePool)
		want        bool
		wait        time.Duration
	}{
		{name: "spec 40/56 last event long ago", after: "1m", initialized: "True", event: 2 * time.Minute, want: true},
		{name: "spec 40/56 last event exactly as long ago", after: "1m", initialized: "True", event: time.Minute, want: true},
		{name: "spec 40/56 recent event", after: "1m", initialized: "True", event: 20 * time.Second, was: true, wait: 40 * time.Second},
		{name: "spec 40/56 no event, initialized long ago", after: "1m", initialized: "True", want: true},
		{name: "spec 40/56 no event, initialized recently", after: "6m", initialized: "True", was: true, wait: time.Minute},
		{name: "spec 40/56 never", after: never, initialized: "True", event: time.Hour, was: true},
		{name: "spec 40/56 initialized unknown", after: "0s", initialized: "Unknown", was: true},
		{name: "spec 40/56 initialized false", after: "0s", initialized: "False", was: true},
		{name: "not initialized at all", after: "0s", initialized: none, was: true},
		{name: "at once", after: "0s", initialized: "True", event: time.Millisecond, want: true},
		{name: "spec 40/55 static pool", after: "0s", initialized: "True", change: func(_ *v1.NodeClaim, p *v1.NodePool) {
			n := int64(1)
			p.Spec.Replicas = &n
		}},
		{name: "foreign", after: "0s", initialized: "True", change: func(c *v1.NodeClaim, _ *v1.NodePool) { c.Spec.NodeClassRef = nil }},
		{name: "without a pool", after: "0s", initialized: "True", change: func(c *v1.NodeClaim, _ *v1.NodePool) { c.Labels = nil }},
		{name: "spec 40/54 pool gone", after: "0s", initialized: "False", was: true, want: true, change: func(c *v1.NodeClaim, _ *v1.NodePool) {
			c.Labels[v1.NodePoolLabelKey] = "other"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(start)
			pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
			pool.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration(tt.after)
			claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{v1.NodePoolLabelKey: "general"}}}
			claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: "g", Kind: "k", Name: "n"}
			if tt.initialized != none {
				claim.StatusConditions(start.Add(-5 * time.Minute)).Set(metav1.Condition{Type: v1.InitializedCondition, Status: tt.initialized, Reason: "Test"})
			}
			if tt.was {
				claim.StatusConditions(start).SetTrue(v1.ConsolidatableCondition)
			}
			if tt.event > 0 {
				claim.Status.LastPodEventTime = metav1.NewTime(start.Add(-tt.event))
			}
			if tt.change != nil {
				tt.change(claim, pool)
			}
			scheme := runtime.NewScheme()
			if err := v1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool, claim).WithStatusSubresource(claim).Build()
			r := &Consolidatable{Client: c, Clock: clock, Managed: func(c *v1.NodeClaim) bool { return c.Spec.NodeClassRef != nil }}
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c"}})
			if err != nil || result.RequeueAfter != tt.wait {
				t.Errorf("got %v, %v; want to be called again in %s", result, err, tt.wait)
			}
			got := &v1.NodeClaim{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), got); err != nil {
				t.Fatal(err)
			}
			if present := conditions.Get(got, v1.ConsolidatableCondition) != nil; present != tt.want {
				t.Errorf("condition is there: %v, want %v", present, tt.want)
			}
		})
	}
}

func TestClaimsOfPool(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	claim := func(name, pool string) *v1.NodeClaim {
		return &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.NodePoolLabelKey: pool}}}
	}
	r := &Consolidatable{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim("a", "x"), claim("b", "y")).Build()}
	got := r.claimsOf(context.Background(), &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	if len(got) != 1 || got[0].Name != "a" {
		t.Errorf("got %v, want a", got)
	}
}

func TestTimeLimit(t *testing.T) {
	for _, tt := range []struct {
		executions int
		want       time.Duration
	}{ // spec 40/94
		{100, 10 * time.Minute}, {4000, 10 * time.Minute}, {10_000, 13*time.Minute + 20*time.Second},
		{40_000, 53*time.Minute + 20*time.Second}, {45_000, time.Hour}, {100_000, time.Hour},
	} {
		if got := timeLimit(tt.executions); got != tt.want {
			t.Errorf("timeLimit(%d) = %s, want %s", tt.executions, got, tt.want)
		}
	}
}

func TestIntentOfAnotherReasonIsNew(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	empty, drifted := removal{model.Target{Claim: "c"}, model.Empty}, removal{model.Target{Claim: "c"}, model.Drifted}
	known, due, _ := intents(nil).confirm([]removal{empty}, start, time.Minute)
	if len(due) != 0 {
		t.Errorf("due at once: %v", due)
	}
	known, due, dropped := known.confirm([]removal{drifted}, start.Add(time.Minute), time.Minute)
	if len(due) != 0 || len(dropped) != 0 || known.wait(start.Add(time.Minute), time.Hour) != time.Minute {
		t.Errorf("due %v, dropped %v, known %v; want the wait to begin again", due, dropped, known)
	}
}

func TestSnake(t *testing.T) {
	for camel, want := range map[string]string{"Empty": "empty", "WhenEmptyOrUnderutilized": "when_empty_or_underutilized", "": ""} {
		if got := snake(camel); got != want {
			t.Errorf("snake(%q) = %q, want %q", camel, got, want)
		}
	}
}

// spec 40/93: many removals at once, some of which fail, do not disturb each
// other.
func TestRemovalsInParallel(t *testing.T) {
	s := newStage(t)
	s.declare("pool general budget=100%")
	for _, n := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s.declare("node n" + n)
	}
	s.pass()
	s.clock.Step(DefaultDelay)
	s.stale.Store(true) // the first write only
	s.pass()
	deleting := func() (n int) {
		for _, c := range s.claims() {
			if c.DeletionTimestamp != nil {
				n++
			}
		}
		return n
	}
	if got := deleting(); got != 7 {
		t.Errorf("%d claims are being deleted, want 7 of 8", got)
	}
	s.pass()
	if got := deleting(); got != 8 {
		t.Errorf("%d claims are being deleted, want all 8", got)
	}
}

func TestConflictIsNoError(t *testing.T) {
	if _, err := again(errors.New("down")); err == nil {
		t.Error("an error was swallowed")
	}
}
