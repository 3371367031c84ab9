// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	coschedulingv1alpha1 "karpenter/api/coscheduling/v1alpha1"
	fill "karpenter/api/hostile"
	v1 "karpenter/api/v1"
	"karpenter/kube/feed"
	"karpenter/kube/meter"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
	"karpenter/world"
)

// hostile fills objects with random values that no one would write.
type hostile struct{ fill.Source }

// objects returns one of the kind, and most often the NodeClaim of a Node.
func (h hostile) objects(t *testing.T, kind client.Object, samples map[reflect.Type]client.Object, n int) []client.Object {
	t.Helper()
	out := []client.Object{h.object(t, kind, samples, n)}
	if _, ok := kind.(*corev1.Node); ok && h.IntN(4) > 0 {
		out = append(out, h.object(t, &v1.NodeClaim{}, samples, n))
	}
	return slices.DeleteFunc(out, func(o client.Object) bool { return o == nil })
}

// object returns one of the kind, as the API server sends it: what JSON cannot hold is
// lost. Most are like the sample of their kind, but for a few fields.
func (h hostile) object(t *testing.T, kind client.Object, samples map[reflect.Type]client.Object, n int) client.Object {
	t.Helper()
	o := reflect.New(reflect.TypeOf(kind).Elem())
	if sample, ok := samples[reflect.TypeOf(kind)]; ok && h.IntN(4) > 0 {
		o = reflect.ValueOf(sample.DeepCopyObject())
		for range h.IntN(4) {
			if part := o.Elem().FieldByName([]string{"Spec", "Status", "ObjectMeta"}[h.IntN(3)]); part.IsValid() {
				h.Change(part, 1)
			}
		}
	} else {
		h.Fill(o.Elem(), 0)
	}
	out := o.Interface().(client.Object)
	out.SetName(fmt.Sprint(h.Name(), "-", n%7))
	out.SetNamespace([]string{"shop", "default", ""}[h.IntN(3)])
	if pool, ok := out.(*v1.NodePool); ok && h.IntN(2) == 0 {
		pool.Name = samples[reflect.TypeOf(pool)].GetName()
	}
	if claim, ok := out.(*v1.NodeClaim); ok {
		claim.Name = "claim-" + claim.Name
		if h.IntN(5) > 0 {
			claim.Status.ProviderID = fmt.Sprint("test://", n)
		}
	}
	if node, ok := out.(*corev1.Node); ok && h.IntN(5) > 0 {
		node.Spec.ProviderID = fmt.Sprint("test://", n)
	}
	h.device(out, n)
	if pod, ok := out.(*corev1.Pod); ok && h.IntN(3) == 0 {
		pod.Spec.NodeName, pod.Status.Conditions = fmt.Sprint(h.Name(), "-", n%7), nil
	}
	if h.IntN(10) > 0 {
		out.SetDeletionTimestamp(nil)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil
	}
	back := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(text, back); err != nil {
		return nil
	}
	return back
}

// device has objects of dynamic resource allocation name each other most often.
func (h hostile) device(o client.Object, n int) {
	if h.IntN(5) == 0 {
		return
	}
	switch o := o.(type) {
	case *resourcev1.DeviceClass:
		o.Name = "widget"
	case *resourcev1.ResourceClaim:
		o.Name = fmt.Sprint("claim-", n%7)
	case *resourcev1.ResourceSlice:
		if node := fmt.Sprint(h.Name(), "-", n%7); h.IntN(2) == 0 {
			o.Spec.NodeName = &node
		}
	case *corev1.Pod:
		if claim := fmt.Sprint("claim-", h.IntN(7)); h.IntN(3) == 0 {
			o.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}
		}
	}
}

// sampleDevices are a class, a claim and a slice that go together.
func sampleDevices() []client.Object {
	class, claim, slice := &resourcev1.DeviceClass{}, &resourcev1.ResourceClaim{}, &resourcev1.ResourceSlice{}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "example.com"`}}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
		Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "widget", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
	}}
	slice.Spec = resourcev1.ResourceSliceSpec{
		Driver: "example.com", Pool: resourcev1.ResourcePool{Name: "p", ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "d-1"}, {Name: "d-2"}},
	}
	return []client.Object{class, claim, slice}
}

// TestHostileObjects brings objects of every kind with fields that no one would write to
// the world, on the way they take from an informer, and plans: nothing panics or hangs,
// and the plan breaks no promise. Objects change and go meanwhile.
func TestHostileObjects(t *testing.T) {
	published, pods, pools := stored(t)
	var met encounters
	runs := fill.Runs(t, 100, func(t *testing.T, seed uint64) {
		met.add(withHostile(t, hostile{fill.New(seed)}, published, &pods[0], pools))
	})
	t.Logf("%d runs: %+v", runs, met)
	if runs >= 100 && min(met.Launched, met.Placed, met.Unplaced, met.Nodes, met.Commands) < runs/10 {
		t.Errorf("the objects are no test of plans: %+v", met)
	}
}

// encounters counts what plans were about.
type encounters struct{ Objects, Launched, Placed, Unplaced, Nodes, Groups, Commands int }

func (e *encounters) add(o encounters) {
	e.Objects, e.Launched, e.Placed, e.Unplaced = e.Objects+o.Objects, e.Launched+o.Launched, e.Placed+o.Placed, e.Unplaced+o.Unplaced
	e.Nodes, e.Groups, e.Commands = e.Nodes+o.Nodes, e.Groups+o.Groups, e.Commands+o.Commands
}

// stored returns what a leader has published, and the pods and NodePools of its cluster.
func stored(t *testing.T) (Published, []corev1.Pod, []v1.NodePool) {
	t.Helper()
	_, builder := cluster(t)
	c := builder.Build()
	p := publisher(t, c, offered)
	if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	offerings := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: Name}, offerings); err != nil {
		t.Fatal(err)
	}
	published, err := Parse(offerings)
	if err != nil {
		t.Fatal(err)
	}
	pods, pools := &corev1.PodList{}, &v1.NodePoolList{}
	if err := c.List(t.Context(), pods); err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), pools); err != nil {
		t.Fatal(err)
	}
	for i := range pools.Items {
		pools.Items[i].Spec.Disruption = v1.Disruption{
			ConsolidationPolicy: v1.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: v1.MustParseNillableDuration("0s"), Budgets: []v1.Budget{{Nodes: "100%"}},
		}
	}
	return published, pods.Items, pools.Items
}

// transforms are how caches keep kinds of objects.
func transforms() map[reflect.Type]func(any) (any, error) {
	out := map[reflect.Type]func(any) (any, error){}
	for kind, by := range feed.Trims() {
		out[reflect.TypeOf(kind)] = by.Transform
	}
	return out
}

var have = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110")}

// sampleClaim is the NodeClaim of a node that works, and sampleNode a node that works.
func sampleClaim(pool *v1.NodePool) *v1.NodeClaim {
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Now(), Labels: sampleNode().Labels, Finalizers: []string{v1.TerminationFinalizer}}}
	c.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
	c.Status.Capacity, c.Status.Allocatable = have, have
	for _, kind := range []string{v1.LaunchedCondition, v1.RegisteredCondition, v1.InitializedCondition, v1.ConsolidatableCondition} {
		c.StatusConditions(time.Now()).SetTrue(kind)
	}
	return c
}

func sampleNode() *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Now(), Labels: map[string]string{
		v1.NodePoolLabelKey: "general", model.LabelRegistered: "true", model.LabelInitialized: "true", model.LabelInstanceType: "large",
		corev1.LabelTopologyZone: "a", v1.CapacityTypeLabelKey: "on-demand",
	}}}
	n.Status.Capacity, n.Status.Allocatable = have, have
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

func withHostile(t *testing.T, h hostile, published Published, waiting *corev1.Pod, pools []v1.NodePool) (met encounters) {
	published.Rules.Devices = h.IntN(4) > 0
	if h.IntN(2) == 0 {
		published.Rules.Constraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule}}
	}
	w, convert, sources := published.World()
	sources.Waits = meter.NewPods(prometheus.NewRegistry(), clocktesting.NewFakePassiveClock(time.Now()), func(string) bool { return true })
	convert.Coscheduling = true
	sink, trims := feed.NewSink(w, convert, sources), transforms()
	set := func(o client.Object) {
		if trim := trims[reflect.TypeOf(o)]; trim != nil {
			if _, err := trim(o); err != nil {
				t.Fatal(err)
			}
		}
		sink.Set(o)
		if pool, ok := o.(*v1.NodePool); ok {
			w.SetTypes(pool.Name, published.Offerings.Snapshot.Pools[0].Types)
		}
	}
	for i := range pools {
		set(&pools[i])
	}
	for i := range published.Offerings.Snapshot.Pools {
		pool := &published.Offerings.Snapshot.Pools[i]
		w.SetTypes(pool.Name, pool.Types, pool.Extras...)
	}
	set(waiting.DeepCopy())
	samples := map[reflect.Type]client.Object{}
	general := &pools[slices.IndexFunc(pools, func(p v1.NodePool) bool { return p.Name == "general" })]
	for _, o := range append(sampleDevices(), waiting, general, sampleNode(), sampleClaim(general)) {
		samples[reflect.TypeOf(o)] = o
	}
	kinds := []client.Object{
		&corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}, &corev1.Pod{}, &corev1.Node{}, &corev1.Node{}, &v1.NodeClaim{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &storagev1.StorageClass{}, &storagev1.CSINode{},
		&policyv1.PodDisruptionBudget{}, &appsv1.DaemonSet{}, &corev1.Namespace{}, &v1.NodeClaim{}, &schedulingv1beta1.PodGroup{}, &coschedulingv1alpha1.CoschedulingPodGroup{},
		&corev1.Service{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &corev1.ReplicationController{},
		&v1.NodePool{}, &resourcev1.DeviceClass{}, &resourcev1.DeviceTaintRule{}, &resourcev1.ResourceSlice{}, &resourcev1.ResourceSlice{}, &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaim{},
	}
	var there []client.Object
	for round := range 3 {
		for n := range 1 + h.IntN(30) {
			for _, o := range h.objects(t, kinds[h.IntN(len(kinds))], samples, n) {
				set(o)
				there = append(there, o)
			}
		}
		met.Objects += len(there)
		decided(t, w, published, &met)
		for range len(there) / 3 {
			k := h.IntN(len(there))
			sink.Delete(there[k])
			there = slices.Delete(there, k, k+1)
		}
		if round == 2 {
			for _, o := range there {
				sink.Delete(o)
			}
			if s := decided(t, w, published, &met); len(s.Pending) != 1 || len(s.Nodes) != 0 {
				t.Errorf("when all hostile objects are gone, %d sorts of pods wait on %d nodes", len(s.Pending), len(s.Nodes))
			}
		}
	}
	return met
}

// decided plans, and checks the plan.
func decided(t *testing.T, w *world.World, published Published, met *encounters) *model.Snapshot {
	t.Helper()
	s := w.Snapshot(time.Now())
	defer func() {
		if failure := recover(); failure != nil {
			t.Log(printed(t, scenario.Situation{Snapshot: s, Policy: published.Offerings.Policy}))
			panic(failure)
		}
	}()
	plan := solve.Decide(s, published.Offerings.Policy)
	bad := slices.DeleteFunc(solvetest.Check(s, published.Offerings.Policy, plan), func(what string) bool {
		return slices.ContainsFunc(s.Nodes, func(n model.Node) bool { // of something that the pods placed there do not request
			return strings.HasSuffix(what, "node "+n.Name+" is overfull") && !n.Requested.Fits(n.Allocatable)
		})
	})
	if len(bad) > 0 {
		t.Errorf("the plan breaks promises: %s\n%s", strings.Join(bad, "\n"), scenario.Text(s, plan)+printed(t, scenario.Situation{Snapshot: s, Policy: published.Offerings.Policy}))
	}
	met.Placed, met.Nodes, met.Groups = met.Placed+len(plan.Placements), met.Nodes+len(s.Nodes), met.Groups+len(s.Groups)
	met.Commands += len(plan.Commands)
	for i := range plan.Launches {
		met.Launched += len(plan.Launches[i].Pods)
	}
	for _, v := range plan.Verdicts {
		met.Unplaced += len(v.Pods)
	}
	return s
}
