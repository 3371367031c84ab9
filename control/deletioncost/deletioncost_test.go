// SPDX-License-Identifier: Apache-2.0

package deletioncost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/control/controltest"
	"karpenter/model"
)

// stage is nodes of pool p, whose budgets allow everything, and their pods.
type stage struct {
	*testing.T
	*controltest.Cluster
	r        *Reconciler
	snapshot model.Snapshot
	writes   int
	refuse   error // answers to patches
	unlisted error // answers to lists
}

// guarded counts and rejects calls.
type guarded struct {
	client.Client
	s *stage
}

func (g guarded) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if g.s.refuse != nil {
		return g.s.refuse
	}
	g.s.writes++
	return g.Client.Patch(ctx, o, p, opts...)
}

func (g guarded) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	if g.s.unlisted != nil {
		return g.s.unlisted
	}
	return g.Client.List(ctx, l, opts...)
}

func newStage(t *testing.T, nodes int) *stage {
	s := &stage{T: t, Cluster: controltest.New(t)}
	s.r = &Reconciler{
		Client: guarded{s.Client, s}, Ready: func() bool { return true }, Clock: s.Clock, Metrics: NewMetrics(s.Registry),
		Snapshot: func(time.Time) *model.Snapshot { return &s.snapshot },
	}
	s.snapshot.Pools = []model.Pool{{Name: "p", Disruption: model.Disruption{Allowed: map[model.Reason]int{model.Drifted: 1000, model.Underutilized: 1000}}}}
	for i := range nodes {
		name := fmt.Sprintf("n%02d", i+1)
		s.snapshot.Nodes = append(s.snapshot.Nodes, model.Node{Name: name, Claim: "c-" + name, Pool: "p", Initialized: true, Price: 1})
		s.pod("web-"+name, name, "apps/v1", "ReplicaSet", true)
	}
	return s
}

func (s *stage) pod(name, node, version, kind string, controller bool) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
	if kind != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "o", UID: "o", Controller: &controller}}
	}
	if before, after, found := strings.Cut(name, "/"); found {
		p.Namespace, p.Name = before, after
	}
	if err := s.Client.Create(s.Context(), p); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) annotate(pod, cost string) {
	p := &corev1.Pod{}
	err := s.Client.Get(s.Context(), client.ObjectKey{Namespace: "default", Name: pod}, p)
	p.Annotations = map[string]string{corev1.PodDeletionCost: cost}
	if err = errors.Join(err, s.Client.Update(s.Context(), p)); err != nil {
		s.Fatal(err)
	}
}

// run makes one run and returns the deletion costs: "a=-1 b=-2".
func (s *stage) run() string {
	_, err := s.r.Reconcile(s.Context(), reconcile.Request{})
	list := &corev1.PodList{}
	if e := s.Client.List(s.Context(), list); e != nil {
		s.Fatal(e)
	}
	var out []string
	for i := range list.Items {
		if cost, ok := list.Items[i].Annotations[corev1.PodDeletionCost]; ok {
			out = append(out, list.Items[i].Name+"="+cost)
		}
	}
	slices.Sort(out)
	if err != nil {
		out = append(out, "error")
	}
	return strings.Join(out, " ")
}

func (s *stage) want(what string, got, want any) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestDeletionCostRanksNodes: spec 48/68, spec 48/74.
func TestDeletionCostRanksNodes(t *testing.T) {
	s := newStage(t, 3)
	s.pod("more", "n02", "apps/v1", "ReplicaSet", true)
	s.annotate("web-n03", "7")
	s.want("spec 48/68: all", s.run(), "more=-2 web-n01=-3 web-n02=-2 web-n03=-1")
	writes := s.writes
	s.want("spec 48/74: again", s.run(), "more=-2 web-n01=-3 web-n02=-2 web-n03=-1")
	s.want("spec 48/74: writes", s.writes, writes)
	s.snapshot.Pools[0].Disruption.Allowed[model.Underutilized] = 1
	s.want("spec 48/68: budget of one", s.run(), "web-n01=-1")
	s.snapshot.Pools[0].Disruption.Allowed[model.Underutilized] = 3
	s.unlisted = errors.New("no connection")
	if _, err := s.r.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("spec 48/74: no error, so no retry")
	}
	s.unlisted = nil
	s.want("spec 48/74: retried", s.run(), "more=-2 web-n01=-3 web-n02=-2 web-n03=-1")
}

// TestDeletionCostOfRemovedNodes: spec 48/69.
func TestDeletionCostOfRemovedNodes(t *testing.T) {
	s := newStage(t, 3)
	s.snapshot.Nodes[0].Taints = []model.Taint{{Key: "karpenter.sh/disrupted", Effect: model.NoSchedule}}
	s.snapshot.Nodes[0].Disruption.Blocked = "the node has the annotation karpenter.sh/do-not-disrupt"
	s.snapshot.Nodes[1].Deleting = true
	s.snapshot.Nodes[2].Deleting, s.snapshot.Nodes[2].Claim = true, ""
	s.want("costs", s.run(), "web-n01=-2147483648 web-n02=-2147483648")
}

// TestDrifted: spec 48/70.
func TestDrifted(t *testing.T) {
	s := newStage(t, 4)
	for _, i := range []int{2, 3} {
		s.snapshot.Nodes[i].Disruption.Drifted = time.Unix(1, 0)
	}
	s.want("drifted first", s.run(), "web-n01=-2 web-n02=-1 web-n03=-4 web-n04=-3")
	s.snapshot.Pools[0].Disruption.Allowed[model.Drifted] = 1
	s.want("beyond the budget", s.run(), "web-n01=-2 web-n02=-1 web-n03=-3")
}

// TestDeletionCostOfOtherPods: spec 48/71, spec 48/72.
func TestDeletionCostOfOtherPods(t *testing.T) {
	s := newStage(t, 8)
	for i := range 8 {
		s.annotate(fmt.Sprintf("web-n%02d", i+1), "5")
	}
	s.snapshot.Nodes[0].Disruption.Blocked = "the node has the annotation karpenter.sh/do-not-disrupt"
	s.snapshot.Nodes[1].Disruption.Held = "PodDisruptionBudget d/b allows no disruption of pod d/p"
	s.pod("db-0", "n03", "apps/v1", "StatefulSet", true)
	s.pod("bare", "n04", "", "", true)
	s.pod("kube-system/agent", "n05", "", "", true)
	s.pod("job", "n06", "batch/v1", "Job", true)
	s.pod("daemon", "n07", "apps/v1", "DaemonSet", true)
	s.snapshot.Pools = append(s.snapshot.Pools, model.Pool{Name: "never", Disruption: model.Disruption{Never: true, Allowed: map[model.Reason]int{model.Underutilized: 9}}})
	s.snapshot.Nodes[7].Pool = "never"
	s.want("costs", s.run(), "web-n05=-3 web-n06=-2 web-n07=-1")

	s = newStage(t, 1)
	s.pod("owned", "n01", "apps/v1", "ReplicaSet", false)
	s.want("spec 48/72: not its controller, and pinning", s.run(), "")
}

// TestMostNodes: spec 48/73. What is left over is done in the next run.
func TestMostNodes(t *testing.T) {
	s := newStage(t, 60)
	s.snapshot.Nodes = append(s.snapshot.Nodes, model.Node{Name: "empty", Claim: "c-empty", Pool: "p", Initialized: true, Price: 1})
	s.run()
	s.want("first run", s.writes, 50)
	s.run()
	s.want("second run", s.writes, 60)
}

// TestDeletionCostWritesDenied: spec 48/75.
func TestDeletionCostWritesDenied(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, tc := range []struct {
		err    error
		result string
		again  bool
	}{
		{apierrors.NewConflict(pods, "p", errors.New("changed")), skippedConflict, false},
		{apierrors.NewNotFound(pods, "p"), skippedNotFound, false},
		{apierrors.NewTooManyRequests("slow down", 1), failed, true},
	} {
		s := newStage(t, 1)
		s.refuse = tc.err
		_, err := s.r.Reconcile(t.Context(), reconcile.Request{})
		s.want(tc.result+": retried", err != nil, tc.again)
		s.want(tc.result, testutil.ToFloat64(s.r.Metrics.writes.WithLabelValues(tc.result)), 1.0)
		s.refuse = nil
		s.want(tc.result+": next run", s.run(), "web-n01=-1")
	}
}
