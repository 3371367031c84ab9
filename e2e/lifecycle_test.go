// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud/cloudtest"
	"karpenter/control/consistency"
	"karpenter/control/expiration"
	"karpenter/control/garbage"
	"karpenter/control/hydration"
	"karpenter/control/lifecycle"
	"karpenter/control/nodepool"
	"karpenter/kube/events/eventstest"
	"karpenter/kube/join"
	"karpenter/kube/meter"
)

// life is the controllers of a claim's life on the real API server.
type life struct {
	client.Client
	cloud    *cloudtest.Fake
	recorder *eventstest.Recorder
	registry *prometheus.Registry
}

// lifeClass is a kind of node class no other test uses.
func lifeClass() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "life.test.sh", Version: "v1", Kind: "Class"}
}

// startLife runs the controllers until the test ends.
func startLife(t *testing.T) *life {
	cluster := shared.Cluster(t)
	again := true // tests of this file register the same controllers one after another
	mgr, err := ctrl.NewManager(cluster.Config, ctrl.Options{
		Scheme: cluster.Client.Scheme(), Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: &again},
	})
	check(t, err)
	index := func(o client.Object, field string, value func(client.Object) string) {
		check(t, mgr.GetFieldIndexer().IndexField(t.Context(), o, field, func(o client.Object) []string { return []string{value(o)} }))
	}
	index(&corev1.Pod{}, join.PodNodeName, func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName })
	index(&corev1.Node{}, join.NodeProviderID, func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID })
	index(&v1.NodeClaim{}, join.ClaimProviderID, func(o client.Object) string { return o.(*v1.NodeClaim).Status.ProviderID })

	var now clock.RealClock
	l := &life{
		Client: cluster.Client, cloud: cloudtest.NewFake(now),
		recorder: &eventstest.Recorder{}, registry: prometheus.NewRegistry(),
	}
	l.cloud.SetNodeClasses(lifeClass())
	c, disruptions := mgr.GetClient(), meter.NewDisruptions(l.registry, mgr.GetClient())
	for _, r := range []interface {
		Register(manager.Manager, controller.Options) error
	}{
		&lifecycle.Reconciler{
			Client: c, Provider: l.cloud, Clock: now, Recorder: l.recorder,
			Metrics: lifecycle.NewMetrics(l.registry), Disruptions: disruptions, Health: &nodepool.Health{},
		},
		&expiration.Reconciler{Client: c, Provider: l.cloud, Clock: now, Disruptions: disruptions},
		&garbage.Reconciler{Client: c, Live: mgr.GetAPIReader(), Provider: l.cloud, Clock: now, Disruptions: disruptions},
		&hydration.Claims{Client: c, Provider: l.cloud},
		&hydration.Nodes{Client: c, Provider: l.cloud},
		&consistency.Reconciler{Client: c, Provider: l.cloud, Clock: now, Recorder: l.recorder, FewerDevices: func(string) []string { return nil }},
		&nodepool.Hash{Client: c, Provider: l.cloud},
		&nodepool.Validation{Client: c, Provider: l.cloud, Clock: now, Labels: v1.DefaultLabels()},
	} {
		check(t, r.Register(mgr, controller.Options{MaxConcurrentReconciles: 20}))
	}
	ended := make(chan error)
	go func() { ended <- mgr.Start(t.Context()) }()
	t.Cleanup(func() { check(t, <-ended) })
	return l
}

// claim creates a claim of pool "life".
func (l *life) claim(t *testing.T, expireAfter string) *v1.NodeClaim {
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "life-", Labels: map[string]string{v1.NodePoolLabelKey: "life"},
	}}
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: lifeClass().Group, Kind: lifeClass().Kind, Name: "default"}
	claim.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	claim.Spec.StartupTaints = []v1.Taint{{Key: "life.test.sh/cni", Effect: corev1.TaintEffectNoSchedule}}
	claim.Spec.ExpireAfter = v1.MustParseNillableDuration(expireAfter)
	check(t, l.Create(t.Context(), claim))
	return claim
}

// claims returns the claims there are.
func (l *life) claims(ctx context.Context, t *testing.T) []v1.NodeClaim {
	list := &v1.NodeClaimList{}
	check(t, l.List(ctx, list, client.MatchingLabels{v1.NodePoolLabelKey: "life"}))
	return list.Items
}

// boot lets the kubelets of all instances join, each once, and their startup
// agents finish.
func (l *life) boot(t *testing.T) {
	for _, claim := range l.claims(t.Context(), t) {
		if claim.Status.ProviderID == "" || !claim.DeletionTimestamp.IsZero() {
			continue
		}
		node := &corev1.Node{}
		if err := l.Get(t.Context(), client.ObjectKey{Name: claim.Name}, node); client.IgnoreNotFound(err) == nil && err != nil {
			node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}}
			node.Spec.ProviderID = claim.Status.ProviderID
			node.Spec.Taints = []corev1.Taint{v1.UnregisteredNoExecuteTaint()}
			check(t, l.Create(t.Context(), node))
			created := node.DeepCopy()
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			node.Status.Capacity, node.Status.Allocatable = claim.Status.Capacity, claim.Status.Allocatable
			check(t, l.Status().Patch(t.Context(), node, client.MergeFrom(created)))
			continue
		}
		if node.Labels[v1.NodeRegisteredLabelKey] == "true" && len(node.Spec.Taints) > 0 {
			check(t, l.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`))))
		}
	}
}

// drain lets deleted Nodes go at once.
func (l *life) drain(t *testing.T) {
	nodes := &corev1.NodeList{}
	check(t, l.List(t.Context(), nodes, client.MatchingLabels{v1.NodePoolLabelKey: "life"}))
	for i := range nodes.Items {
		if node := &nodes.Items[i]; !node.DeletionTimestamp.IsZero() {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			check(t, client.IgnoreNotFound(l.Patch(t.Context(), node, patch)))
		}
	}
}

// total sums a counter over its labels.
func (l *life) total(t *testing.T, name string) int {
	families, err := l.registry.Gather()
	check(t, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return int(sum)
}

// expect compares what was counted.
func (l *life) expect(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%d %s, want %d", got, what, want)
	}
}

// TestLife takes claims from creation to their end on a real API server. What
// a fake one cannot show is that reads which lag behind writes double nothing,
// that writers of the same objects do not undo each other, and that the API
// server accepts what is written.
func TestLife(t *testing.T) {
	const many = 40
	l := startLife(t)
	for range many {
		l.claim(t, v1.Never)
	}
	eventually(t, "all claims are ready", func() bool {
		l.boot(t)
		ready := 0
		for _, claim := range l.claims(t.Context(), t) {
			if conditions.IsTrue(&claim, v1.ReadyCondition) && conditions.IsTrue(&claim, v1.ConsistentStateFoundCondition) {
				ready++
			}
		}
		return ready == many
	})
	l.expect(t, "launches", len(l.cloud.Calls(cloudtest.Create)), many)
	l.expect(t, "machines", len(l.cloud.Machines()), many)
	l.expect(t, "nodes counted", l.total(t, "karpenter_nodes_created_total"), many)

	for _, claim := range l.claims(t.Context(), t) {
		check(t, l.Delete(t.Context(), &claim))
	}
	eventually(t, "all claims are gone", func() bool {
		l.drain(t)
		return len(l.claims(t.Context(), t)) == 0
	})
	l.expect(t, "machines left", len(l.cloud.Machines()), 0)
	eventually(t, "all claims are counted", func() bool {
		return l.total(t, "karpenter_nodeclaims_terminated_total") >= many
	})
	l.expect(t, "claims counted", l.total(t, "karpenter_nodeclaims_terminated_total"), many)
	l.expect(t, "claims given up", l.total(t, "karpenter_nodeclaims_disrupted_total"), 0)
}

// TestLifeCutShort shows claims that end of themselves.
func TestLifeCutShort(t *testing.T) {
	l := startLife(t)
	for _, tt := range []struct {
		what    string
		creates int
		expire  string
		event   string
	}{
		{"a claim that expires", -1, "1s", ""},
		{"a claim there is no capacity for", 0, v1.Never, "InsufficientCapacityError"},
	} {
		l.cloud.AllowCreates(tt.creates)
		before := l.total(t, "karpenter_nodeclaims_disrupted_total")
		l.claim(t, tt.expire)
		eventually(t, tt.what+" is gone, and counted", func() bool {
			return len(l.claims(t.Context(), t)) == 0 && l.total(t, "karpenter_nodeclaims_disrupted_total") > before
		})
		l.expect(t, "disruptions counted for "+tt.what, l.total(t, "karpenter_nodeclaims_disrupted_total")-before, 1)
		l.expect(t, "machines left by "+tt.what, len(l.cloud.Machines()), 0)
		if tt.event != "" {
			l.expect(t, fmt.Sprintf("events %s", tt.event), len(l.recorder.Of(tt.event)), 1)
		}
	}
}

// TestLifePool shows that a pool is hashed and judged, and that a schema
// accepts what its status says.
func TestLifePool(t *testing.T) {
	l := startLife(t)
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{GenerateName: "life-"}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: lifeClass().Group, Kind: lifeClass().Kind, Name: "default"}
	pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	pool.Spec.Template.Labels = map[string]string{"team": "x"}
	check(t, l.Create(t.Context(), pool))
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		check(t, l.Delete(ctx, pool))
	}()
	eventually(t, "the pool is hashed and valid", func() bool {
		check(t, l.Get(t.Context(), client.ObjectKeyFromObject(pool), pool))
		return pool.Annotations[v1.NodePoolHashAnnotationKey] == pool.Hash() &&
			conditions.IsTrue(pool, v1.ValidationSucceededCondition)
	})
}
