// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// running shows the world a pod that runs on the node.
func (s *stage) running(name, cpu, node string) {
	s.pod(name, cpu, func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	})
}

// replacement is a launch for a pod that runs on the node.
func replacement(pod, node string) model.Launch {
	return model.Launch{
		Pool: "general", Types: []string{"default-instance-type"}, CapacityTypes: []string{"on-demand"},
		Requests: model.Resources{}.With(model.CPU, 2000).With(model.Pods, 1),
		Pods:     []model.Pod{{Namespace: "default", Name: pod, UID: "uid-" + pod, From: node}},
	}
}

func (s *stage) replace(launches ...model.Launch) ([]string, error) {
	s.t.Helper()
	pools, err := s.pools(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return s.Replace(s.t.Context(), model.Drifted, launches, pools)
}

// spec 40/71, spec 40/72: pods of a node that is replaced get no node beside the
// replacement, also with others that are pending.
func TestReplacedPodsAreNotProvisionedTwice(t *testing.T) {
	s := newStage(t)
	s.pool("general", nil)
	s.node("n1", "general", nil)
	s.running("web", "2", "n1")
	claims, err := s.replace(replacement("web", "n1"))
	if err != nil || len(claims) != 1 {
		t.Fatalf("got %v, %v; want one claim", claims, err)
	}
	s.world.MarkForDeletion("n1-claim")
	s.pod("other", "3", nil)
	s.mustPass()
	if got := s.wantClaims(2); got[0].Name != claims[0] && got[1].Name != claims[0] {
		t.Errorf("the replacement %s is gone", claims[0])
	}
	for _, pending := range s.world.Snapshot(s.clock.Now()).Pending {
		for _, p := range pending.Pods {
			if p.Name == "web" && p.Planned != claims[0] {
				t.Errorf("pod web is planned on %q, want %s", p.Planned, claims[0])
			}
		}
	}
	for _, reason := range []string{"drifted", "provisioned"} {
		if n := testutil.ToFloat64(s.Metrics.created.WithLabelValues(reason, "general", "false")); n != 1 {
			t.Errorf("%v claims are counted as %s, want 1", n, reason)
		}
	}
}

// All replacements of a command are within the limits, or none is created.
func TestReplaceWithinLimits(t *testing.T) {
	s := newStage(t)
	s.pool("general", limited("nodes", "2"))
	s.node("n1", "general", nil)
	if _, err := s.replace(replacement("a", "n1"), replacement("b", "n1")); err == nil {
		t.Error("no error beyond the limit")
	}
	s.wantClaims(0)
	if _, err := s.replace(replacement("a", "n1")); err != nil {
		t.Error(err)
	}
	s.wantClaims(1)
	if _, err := s.replace(model.Launch{Pool: "other"}); err == nil {
		t.Error("no error for a pool that is not there")
	}
}

// Limits hold even if others launch at the same time.
func TestReplaceInParallel(t *testing.T) {
	s := newStage(t)
	s.pool("general", limited("nodes", "5"))
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() { _, _ = s.replace(replacement("a", "n1")) })
	}
	group.Go(func() { _, _ = s.Reconcile(t.Context(), reconcile.Request{}) })
	group.Wait()
	if n := len(s.claims()); n > 5 || n == 0 {
		t.Errorf("%d claims, want some and at most 5", n)
	}
	if len(s.ledger.open) != 0 {
		t.Errorf("%d launches are still open", len(s.ledger.open))
	}
}

// Of what could not be created as a whole, the names that exist are returned,
// and no pod waits for them.
func TestReplaceInPart(t *testing.T) {
	s := newStage(t)
	s.pool("general", nil)
	s.node("n1", "general", nil)
	s.running("a", "1", "n1")
	s.running("b", "1", "n1")
	var mu sync.Mutex
	fails := false
	s.fail = func(*v1.NodeClaim) error {
		mu.Lock()
		defer mu.Unlock()
		if fails = !fails; fails {
			return errors.New("quota")
		}
		return nil
	}
	names, err := s.replace(replacement("a", "n1"), replacement("b", "n1"))
	if err == nil || len(names) != 1 || s.wantClaims(1)[0].Name != names[0] {
		t.Fatalf("got %v, %v; want an error and the claim there is", names, err)
	}
	s.world.MarkForDeletion("n1-claim")
	for _, pending := range s.world.Snapshot(s.clock.Now()).Pending {
		if slices.ContainsFunc(pending.Pods, func(p model.Pod) bool { return p.Planned != "" }) {
			t.Errorf("pods are planned: %v", pending.Pods)
		}
	}
}

// A claim of which no one knows whether it was created counts until the world
// would have heard of it; one that was rejected does not.
func TestLostAnswersCount(t *testing.T) {
	s := newStage(t)
	s.pool("general", limited("nodes", "1"))
	s.fail = func(*v1.NodeClaim) error {
		return apierrors.NewForbidden(schema.GroupResource{}, "c", errors.New("quota"))
	}
	if _, err := s.replace(replacement("a", "n1")); err == nil {
		t.Error("no error although it was refused")
	}
	s.fail = func(*v1.NodeClaim) error { return errors.New("connection reset") }
	if _, err := s.replace(replacement("a", "n1")); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("got %v, want the failure", err)
	}
	s.fail = func(*v1.NodeClaim) error { return nil }
	if _, err := s.replace(replacement("a", "n1")); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("got %v, want the limit", err)
	}
	s.clock.SetTime(s.clock.Now().Add(doubt))
	if _, err := s.replace(replacement("a", "n1")); err != nil {
		t.Errorf("got %v long after the failure", err)
	}
}

// spec 40/43 to 40/47: nodes of static pools are replaced without pods, within the limit of nodes of all
// that is there.
func TestReplaceStatic(t *testing.T) {
	s := newStage(t)
	s.Convert.StaticCapacity = true
	two := int64(2)
	s.pool("general", func(p *v1.NodePool) {
		limited("nodes", "3")(p)
		p.Spec.Replicas = &two
	})
	s.node("n1", "general", nil)
	s.node("n2", "general", nil)
	if _, err := s.replace(replacement("a", "n1")); err == nil {
		t.Error("a static pool launches for pods")
	}
	if _, err := s.replace(model.Launch{Pool: "general"}); err != nil {
		t.Error(err)
	}
	if _, err := s.replace(model.Launch{Pool: "general"}); err == nil {
		t.Error("no error beyond the limit of nodes")
	}
	s.wantClaims(1)
	s.world.MarkForDeletion("n1-claim")
	if got := s.world.Static("general"); got.Active != 2 || got.Pending != 1 {
		t.Errorf("got %+v, want the replacement to be active and its node pending", got)
	}
}

// Pods that move to existing nodes keep them, and get events.
func TestProvisioningMovesPods(t *testing.T) {
	s := newStage(t)
	s.pool("general", nil)
	s.node("n1", "general", nil)
	s.node("n2", "general", nil)
	s.running("web", "1", "n1")
	snapshot := s.world.Snapshot(s.clock.Now())
	s.Move(snapshot, []model.Placement{{Pod: model.Pod{Namespace: "default", Name: "web", UID: "uid-web", From: "n1"}, Node: "n2"}})
	s.world.MarkForDeletion("n1-claim")
	now := s.world.Snapshot(s.clock.Now())
	if why := named(now, "n2").Disruption.Blocked; why == "" {
		t.Error("the node that pods move to may be disrupted")
	}
	if got := now.Pending[0].Pods[0].Planned; got != "n2" {
		t.Errorf("planned on %q, want n2", got)
	}
	if got := s.said(); len(got) != 1 || got[0] != "Nominated pod/web: Pod should run on node/n2, nodeclaim/n2-claim" {
		t.Errorf("said %q", got)
	}
}
