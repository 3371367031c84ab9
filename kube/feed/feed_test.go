// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/feed"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/world"
)

func now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), scheme.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// fixture is a world fed from informers that do what the test says.
type fixture struct {
	t         *testing.T
	informers *informertest.FakeInformers
	world     *world.World
	feed      *feed.Feed
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	axis := model.NewAxis()
	c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels(), Manages: func(ref *v1.NodeClassReference) bool { return ref.Name != "foreign" }}
	x := &fixture{t: t, informers: &informertest.FakeInformers{Scheme: newScheme(t)}, world: world.New(axis, c.WellKnown())}
	var err error
	if x.feed, err = feed.Start(t.Context(), x.informers, x.world, c, feed.Sources{Volumes: volumes.New(c.Labels, volumes.Rules{})}); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *fixture) tell(event string, obj client.Object) {
	x.t.Helper()
	informer, err := x.informers.FakeInformerFor(x.t.Context(), obj)
	if err != nil {
		x.t.Fatal(err)
	}
	switch event {
	case "add":
		informer.Add(obj)
	case "update":
		informer.Update(obj, obj)
	case "delete":
		informer.Delete(obj)
	}
}

// lines sums up a Snapshot.
func (x *fixture) lines() string {
	s := x.world.Snapshot(now())
	var out []string
	for _, p := range s.Pools {
		out = append(out, "pool "+p.Name)
	}
	for _, n := range s.Nodes {
		out = append(out, "node "+n.Name+" claim "+n.Claim+" "+n.Requested.Format(s.Resources)+": "+n.Disruption.Blocked+n.Disruption.Held)
	}
	for _, d := range s.Daemons {
		out = append(out, "daemon "+d.Name)
	}
	for _, p := range s.Pending {
		for _, pod := range p.Pods {
			out = append(out, fmt.Sprint("pending ", pod.Name, " with ", p.Peer.NamespaceLabels, p.Peer.Labels))
		}
	}
	return strings.Join(out, "\n")
}

func objects() []client.Object {
	ref := &v1.NodeClassReference{Group: "example.com", Kind: "Class", Name: "default"}
	ready := []metav1.Condition{{Type: v1.ReadyCondition, Status: metav1.ConditionTrue}}
	labels := map[string]string{v1.NodePoolLabelKey: "p", corev1.LabelInstanceTypeStable: "t", v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true"}
	requests := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "u"},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: requests}}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable}}},
		}
	}
	waiting := pod("waiting", "")
	waiting.Labels = map[string]string{"app": "web", "other": "x"}
	waiting.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
		}},
	}}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}},
		&v1.NodePool{
			ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec:       v1.NodePoolSpec{Template: v1.NodeClaimTemplate{Spec: v1.NodeClaimTemplateSpec{NodeClassRef: ref}}},
			Status:     v1.NodePoolStatus{Conditions: ready},
		},
		&v1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: labels},
			Spec:       v1.NodeClaimSpec{NodeClassRef: ref}, Status: v1.NodeClaimStatus{ProviderID: "i"},
		},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}, Spec: corev1.NodeSpec{ProviderID: "i"}},
		pod("bound", "n"), waiting,
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		},
	}
}

func TestFeed(t *testing.T) {
	x := newFixture(t)
	x.world.SetTypes("p", []*model.InstanceType{{Name: "t"}})
	all := objects()
	for _, o := range all {
		x.tell("add", o)
		x.tell("update", o)
	}
	want := "pool p\n" +
		"node n claim c cpu=100m pods=1: PodDisruptionBudget default/b allows no disruption of pod default/bound\n" +
		"daemon default/d\npending waiting with [{team a}] [{app web}]"
	if diff := cmp.Diff(want, x.lines()); diff != "" {
		t.Errorf("after everything was added (-want +got):\n%s", diff)
	}
	for _, o := range all {
		x.tell("delete", o)
	}
	if got := x.lines(); got != "" {
		t.Errorf("after everything was deleted there is still\n%s", got)
	}
}

// What another provider serves is not ours.
func TestObjectsOfOtherProvidersAreIgnored(t *testing.T) {
	x := newFixture(t)
	for _, o := range objects()[1:3] {
		switch o := o.(type) {
		case *v1.NodePool:
			o.Spec.Template.Spec.NodeClassRef.Name = "foreign"
		case *v1.NodeClaim:
			o.Spec.NodeClassRef.Name = "foreign"
		}
		x.tell("add", o)
	}
	if got := x.lines(); got != "" {
		t.Errorf("got\n%s", got)
	}
}

// A daemon that starts to claim devices uses no capacity any more.
func TestDaemonChanges(t *testing.T) {
	x := newFixture(t)
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}
	x.tell("add", d)
	d = d.DeepCopy()
	d.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
	before := x.lines()
	x.tell("update", d)
	if after := x.lines(); before != "daemon default/d" || after != "" {
		t.Errorf("got %q and then %q", before, after)
	}
}

// keeper is an informer that gives away its handlers.
type keeper struct {
	*controllertest.FakeInformer
	handlers []toolscache.ResourceEventHandler
}

func (k *keeper) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	k.handlers = append(k.handlers, h)
	return k.FakeInformer.AddEventHandler(h)
}

// An informer that was cut off learns of a deletion from a listing only.
func TestTombstone(t *testing.T) {
	nodes := &keeper{FakeInformer: controllertest.NewFakeInformer()}
	informers := &informertest.FakeInformers{
		Scheme:         newScheme(t),
		InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{corev1.SchemeGroupVersion.WithKind("Node"): nodes},
	}
	x := &fixture{t: t, informers: informers, world: world.New(model.NewAxis(), nil)}
	if _, err := feed.Start(t.Context(), informers, x.world, convert.Converter{Axis: x.world.Axis(), Labels: v1.DefaultLabels()}, feed.Sources{Volumes: volumes.New(v1.DefaultLabels(), volumes.Rules{})}); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, h := range nodes.handlers {
		h.OnAdd(node, true)
	}
	before := x.lines()
	for _, h := range nodes.handlers {
		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n", Obj: node})
	}
	if after := x.lines(); before == "" || after != "" {
		t.Errorf("got %q and then %q", before, after)
	}
}

// spec 25/28 spec 25/32 spec 25/35: synced is when every informer has delivered
// what there was. The metrics tell how long that has taken so far.
func TestHasSynced(t *testing.T) {
	informers := &informertest.FakeInformers{Scheme: newScheme(t), InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{}}
	var unsynced []*controllertest.FakeInformer
	for _, o := range append(objects(), storage()...) {
		gvk, err := apiutil.GVKForObject(o, informers.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		if informers.InformersByGVK[gvk] == nil {
			unsynced = append(unsynced, controllertest.NewFakeInformer())
			informers.InformersByGVK[gvk] = unsynced[len(unsynced)-1]
		}
	}
	w := world.New(model.NewAxis(), nil)
	f, err := feed.Start(t.Context(), informers, w, convert.Converter{}, feed.Sources{Volumes: volumes.New(v1.Labels{}, volumes.Rules{})})
	if err != nil {
		t.Fatal(err)
	}
	clk := clocktesting.NewFakePassiveClock(now())
	reg := prometheus.NewRegistry()
	f.RegisterMetrics(reg, w, clk)
	clk.SetTime(now().Add(7 * time.Second))
	checkMetrics(t, reg, 0, 7)
	for i, informer := range unsynced {
		if f.HasSynced() {
			t.Fatalf("synced when %d of %d informers are", i, len(unsynced))
		}
		informer.Synced()
	}
	if !f.HasSynced() {
		t.Error("not synced although every informer is")
	}
	checkMetrics(t, reg, 1, 0)
}

func checkMetrics(t *testing.T, reg *prometheus.Registry, synced, seconds int) {
	t.Helper()
	want := fmt.Sprintf(`
# HELP karpenter_cluster_state_node_count Number of nodes and node claims known, those that belong together counted once.
# TYPE karpenter_cluster_state_node_count gauge
karpenter_cluster_state_node_count 0
# HELP karpenter_cluster_state_synced 1 when everything that existed at the start is known, else 0.
# TYPE karpenter_cluster_state_synced gauge
karpenter_cluster_state_synced %d
# HELP karpenter_cluster_state_unsynced_time_seconds For how long the state has not been synced.
# TYPE karpenter_cluster_state_unsynced_time_seconds gauge
karpenter_cluster_state_unsynced_time_seconds %d
# HELP karpenter_pods_bound_as_planned_total Number of pods with a plan that were bound to the node of their plan.
# TYPE karpenter_pods_bound_as_planned_total counter
karpenter_pods_bound_as_planned_total 0
# HELP karpenter_pods_bound_elsewhere_total Number of pods with a plan that were bound to another node.
# TYPE karpenter_pods_bound_elsewhere_total counter
karpenter_pods_bound_elsewhere_total 0
# HELP karpenter_pods_planned_total Number of times a pod was given a node it was not planned on before.
# TYPE karpenter_pods_planned_total counter
karpenter_pods_planned_total 0
`, synced, seconds)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// spec 25/72: what the nodes of a pool cost is in dollars.
func TestCosts(t *testing.T) {
	x := newFixture(t)
	x.world.SetTypes("p", []*model.InstanceType{{Name: "t", Offerings: []model.Offering{{Zone: "a", CapacityType: model.Spot, Price: model.Dollar / 4}}}})
	labels := map[string]string{model.LabelNodePool: "p", model.LabelInstanceType: "t", model.LabelZone: "a", model.LabelCapacityType: model.Spot}
	for _, name := range []string{"a", "b"} {
		x.world.SetClaim(world.Claim{Name: name, ProviderID: name, Labels: labels})
	}
	reg := prometheus.NewRegistry()
	x.feed.RegisterMetrics(reg, x.world, clocktesting.NewFakePassiveClock(now()))
	want := `
# HELP karpenter_nodepools_cost_total Sum of the prices of the pool's nodes, in dollars per hour.
# TYPE karpenter_nodepools_cost_total gauge
karpenter_nodepools_cost_total{nodepool="p"} 0.5
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "karpenter_nodepools_cost_total"); err != nil {
		t.Error(err)
	}
}

// What nodes cost besides their instances is in the sum, and told by part. Prices
// that are not known have no parts.
func TestCostParts(t *testing.T) {
	x := newFixture(t)
	extras := []model.Extra{{Name: "disk", Price: model.Dollar / 100}, {Name: "address", Price: model.Dollar / 200, Zone: "a"}, {Name: "licence", Price: model.Dollar / 1000, VCPU: true}}
	kind := &model.InstanceType{Name: "t", Capacity: model.Resources{4000}, Offerings: []model.Offering{
		{Zone: "a", CapacityType: model.Spot, Price: model.Dollar / 4, Available: true}, {Zone: "b", CapacityType: model.Spot, Price: model.Dollar / 4},
	}}
	x.world.SetTypes("p", []*model.InstanceType{kind.With(extras)}, extras...)
	x.world.SetTypes("plain", []*model.InstanceType{kind})
	for name, labels := range map[string][3]string{"a": {"p", "t", "a"}, "b": {"p", "t", "b"}, "c": {"p", "other", "a"}, "d": {"plain", "t", "a"}} {
		x.world.SetClaim(world.Claim{Name: name, ProviderID: name, Labels: map[string]string{
			model.LabelNodePool: labels[0], model.LabelInstanceType: labels[1], model.LabelZone: labels[2], model.LabelCapacityType: model.Spot,
		}})
	}
	reg := prometheus.NewRegistry()
	x.feed.RegisterMetrics(reg, x.world, clocktesting.NewFakePassiveClock(now()))
	check := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "karpenter_nodepools_cost_total", "karpenter_nodepools_cost_parts"); err != nil {
			t.Error(err)
		}
	}
	const help = `
# HELP karpenter_nodepools_cost_parts What the sum of the prices of the pool's nodes is made of, in dollars per hour, if their instances are not all: the instances, volumes, addresses and additional prices.
# TYPE karpenter_nodepools_cost_parts gauge
# HELP karpenter_nodepools_cost_total Sum of the prices of the pool's nodes, in dollars per hour.
# TYPE karpenter_nodepools_cost_total gauge
`
	check(help + `karpenter_nodepools_cost_parts{nodepool="p",part="address"} 0.005
karpenter_nodepools_cost_parts{nodepool="p",part="disk"} 0.02
karpenter_nodepools_cost_parts{nodepool="p",part="instance"} 0.5
karpenter_nodepools_cost_parts{nodepool="p",part="licence"} 0.008
karpenter_nodepools_cost_total{nodepool="p"} 0.533
karpenter_nodepools_cost_total{nodepool="plain"} 0.25
`)
	x.world.SetTypes("p", []*model.InstanceType{kind.With(extras[:1])}, extras[:1]...)
	check(help + `karpenter_nodepools_cost_parts{nodepool="p",part="disk"} 0.02
karpenter_nodepools_cost_parts{nodepool="p",part="instance"} 0.5
karpenter_nodepools_cost_total{nodepool="p"} 0.52
karpenter_nodepools_cost_total{nodepool="plain"} 0.25
`)
	if nodes := x.world.Snapshot(now()).Nodes; nodes[0].Price != model.Dollar/4+model.Dollar/100 {
		t.Errorf("node %s costs %d", nodes[0].Name, nodes[0].Price)
	}
}

// spec 25/29 spec 25/30 spec 25/33: it matters neither whether nodes and claims
// have provider IDs nor what comes later: nothing has to wait for a launch.
func TestStaysSynced(t *testing.T) {
	x := newFixture(t)
	x.tell("add", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "unmanaged"}})
	x.tell("add", objects()[2]) // a claim
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "unlaunched"}, Spec: v1.NodeClaimSpec{NodeClassRef: &v1.NodeClassReference{}}}
	x.tell("add", claim)
	before := x.feed.HasSynced()
	x.tell("add", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: corev1.NodeSpec{ProviderID: "new"}})
	if !before || !x.feed.HasSynced() {
		t.Errorf("synced %t and, with a new node, %t; want it always", before, x.feed.HasSynced())
	}
	want := "node c claim c : the NodeClaim has no Node yet\n" +
		"node new claim  : the node is not managed by a NodeClaim\n" +
		"node unlaunched claim unlaunched : the NodeClaim has no Node yet\n" +
		"node unmanaged claim  : the node is not managed by a NodeClaim"
	if diff := cmp.Diff(want, x.lines()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A trimmed object converts to the same.
func TestTrims(t *testing.T) {
	c := convert.Converter{Axis: model.NewAxis(), Labels: v1.DefaultLabels()}
	full := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "m"},
			{Manager: "karpenter-plan", Subresource: "status", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:nominatedNodeName":{}}}`)}},
		}},
		Status: corev1.PodStatus{NominatedNodeName: "n"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "i", Image: "x", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}},
			Containers: []corev1.Container{{
				Name: "c", Image: "x", Command: []string{"y"}, Env: []corev1.EnvVar{{Name: "z"}},
				Ports:         []corev1.ContainerPort{{HostPort: 1}},
				LivenessProbe: &corev1.Probe{}, VolumeMounts: []corev1.VolumeMount{{Name: "v"}},
			}},
			EphemeralContainers: []corev1.EphemeralContainer{{}},
		},
	}
	trimmed, err := feed.TrimPod(full.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Pod(full), c.Pod(trimmed.(*corev1.Pod))); diff != "" {
		t.Errorf("the trimmed pod converts to something else (-full +trimmed):\n%s", diff)
	}
	if got := c.Pod(trimmed.(*corev1.Pod)).Nominated; got != "n" {
		t.Errorf("the trimmed pod is nominated by us to %q, want n", got)
	}
	if got := len(trimmed.(*corev1.Pod).ManagedFields); got != 1 {
		t.Errorf("%d managers of fields are kept, want ours only", got)
	}
	if k := trimmed.(*corev1.Pod).Spec.Containers[0]; k.Image != "" || k.Env != nil || k.VolumeMounts != nil || k.LivenessProbe != nil {
		t.Errorf("container still has %+v", k)
	}
	if got, err := feed.TrimPod("something else"); got != "something else" || err != nil {
		t.Errorf("what is not a pod became %v, %v", got, err)
	}
	if got := len(feed.Trims()); got != 11 {
		t.Errorf("%d kinds are trimmed, want 11", got)
	}
}
