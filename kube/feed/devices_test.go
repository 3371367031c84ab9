// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/devices"
	"karpenter/kube/feed"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/world"
)

// withoutDevices is the informers of a server that does not serve devices.
type withoutDevices struct{ *informertest.FakeInformers }

// GetInformer implements cache.Informers.
func (w withoutDevices) GetInformer(ctx context.Context, o client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	switch o.(type) {
	case *resourcev1.ResourceSlice, *resourcev1.ResourceClaim, *resourcev1.DeviceClass, *resourcev1.DeviceTaintRule:
		return nil, &meta.NoKindMatchError{}
	}
	return w.FakeInformers.GetInformer(ctx, o, options...)
}

// claiming is a pod that asks for a node and uses a claim.
func claiming(claim string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID = "default", "p", "u"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
}

// TestDevicesAreNotServed: spec 46/1, 46/3: pods with claims are rejected, and nothing
// else changes.
func TestDevicesAreNotServed(t *testing.T) {
	axis := model.NewAxis()
	x := &fixture{t: t, informers: &informertest.FakeInformers{Scheme: newScheme(t)}, world: world.New(axis, nil)}
	c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels()}
	f, err := feed.Start(t.Context(), withoutDevices{x.informers}, x.world, c, feed.Sources{Volumes: volumes.New(c.Labels, volumes.Rules{}), Devices: devices.New(c.Labels)})
	if err != nil || f.Devices != nil {
		t.Fatal(f, err)
	}
	x.tell("add", claiming("c"))
	if s := x.world.Snapshot(time.Now()); len(s.Pending) != 1 || len(s.Pending[0].Shape.Refused) != 1 {
		t.Errorf("%+v", s.Pending)
	}
}

// TestDevicesAppear: when the API server begins to serve devices, pods with claims are
// planned without a restart, and no longer when it stops. It is logged once.
// spec 46/2, 46/4.
func TestDevicesAppear(t *testing.T) {
	axis := model.NewAxis()
	x := &fixture{t: t, informers: &informertest.FakeInformers{Scheme: newScheme(t)}, world: world.New(axis, nil)}
	c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels()}
	var why error = &meta.NoKindMatchError{}
	f, err := feed.Start(t.Context(), x.informers, x.world, c, feed.Sources{
		Volumes: volumes.New(c.Labels, volumes.Rules{}), Devices: devices.New(c.Labels), Unread: func(client.Object) error { return why },
	})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) {
		if strings.Contains(args, "resource.k8s.io/v1") {
			told++
		}
	}, funcr.Options{}))
	x.tell("add", claiming("c"))
	x.tell("add", &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}})
	for i, served := range []bool{false, false, true, true, false} {
		if why = nil; !served {
			why = &meta.NoKindMatchError{}
		}
		f.Look(ctx)
		if s := x.world.Snapshot(time.Now()); len(s.Pending) != 1 || (len(s.Pending[0].Shape.Refused) == 0) != served {
			t.Errorf("look %d, served %v: %+v", i, served, s.Pending)
		}
	}
	if told != 2 {
		t.Errorf("it was told %d times that devices are not served, want 2", told)
	}
}

// TestDevices: claims, classes and slices come into the Snapshot as they come and go,
// in any order. spec 46/7, 46/9, 46/13, 46/22.
func TestDevices(t *testing.T) {
	axis := model.NewAxis()
	w := world.New(axis, nil)
	c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels(), Manages: func(*v1.NodeClassReference) bool { return true }}
	sink := feed.NewSink(w, c, feed.Sources{Volumes: volumes.New(c.Labels, volumes.Rules{}), Devices: devices.New(c.Labels)})
	now := time.Now()

	sink.Set(claiming("c"))
	if s := w.Snapshot(now); len(s.Pending) != 0 {
		t.Fatalf("without its claim, the pod asks for a node: %+v", s.Pending)
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}
	sink.Set(claim)
	if s := w.Snapshot(now); len(s.Pending) != 1 || len(s.Pending[0].Shape.Refused) != 1 {
		t.Fatalf("without the class, the pod is not refused: %+v", s.Pending)
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["gpu.example.com"].model == "a10"`}}}
	sink.Set(class)
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", Pool: resourcev1.ResourcePool{Name: "n1", ResourceSliceCount: 1}, NodeName: ptr.To("n1"),
		Devices: []resourcev1.Device{
			{Name: "a", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: ptr.To("a10")}}},
			{Name: "b", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: ptr.To("t4")}}},
			{Name: "c"},
		},
	}}
	sink.Set(slice)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}}, Spec: corev1.NodeSpec{ProviderID: "x"}}
	sink.Set(node)
	s := w.Snapshot(now)
	if len(s.Pending) != 1 || len(s.Pending[0].Shape.Refused) != 0 || len(s.Pending[0].Shape.Claims) != 1 {
		t.Fatalf("%+v", s.Pending)
	}
	if len(s.Nodes) != 1 || len(s.Nodes[0].Devices) != 1 || len(s.Nodes[0].Devices[0].Devices) != 3 {
		t.Fatalf("the node has no devices: %+v", s.Nodes)
	}
	kind := func(i int) string { return s.Nodes[0].Devices[0].Devices[i].Kind.Key }
	if len(s.Selectors) == 0 || len(s.Selectors[0].Matches) != 1 || s.Selectors[0].Matches[0] != kind(0) || len(s.Selectors[0].Fails) != 1 || s.Selectors[0].Fails[0] != kind(2) {
		t.Errorf("selectors %+v", s.Selectors)
	}

	claim = claim.DeepCopy()
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.example.com", Pool: "n1", Device: "a"}},
	}}
	sink.Set(claim)
	if s = w.Snapshot(now); len(s.Nodes[0].Devices[0].InUse) != 1 || len(s.Pending[0].Shape.Claims) != 0 {
		t.Errorf("after the allocation: %+v, %+v", s.Nodes[0].Devices[0].InUse, s.Pending[0].Shape.Claims)
	}
	sink.Delete(slice)
	sink.Delete(claim)
	if s = w.Snapshot(now); len(s.Nodes[0].Devices) != 0 || len(s.Pending) != 0 {
		t.Errorf("after the end: %+v, %+v", s.Nodes[0].Devices, s.Pending)
	}
}

// TestBindingOfDevices: a node for which the scheduler has reserved devices is not disrupted
// while it binds the pod, and the pod asks for no other. spec 46/82.
func TestBindingOfDevices(t *testing.T) {
	axis := model.NewAxis()
	w := world.New(axis, nil)
	c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels(), Manages: func(*v1.NodeClassReference) bool { return true }}
	sink := feed.NewSink(w, c, feed.Sources{Volumes: volumes.New(c.Labels, volumes.Rules{}), Devices: devices.New(c.Labels)})
	labels := map[string]string{corev1.LabelHostname: "n1", v1.NodePoolLabelKey: "general", v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true"}
	sink.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1", Labels: labels}, Spec: corev1.NodeSpec{ProviderID: "x"}})
	node := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "claim", Labels: labels}}
	node.Status.ProviderID, node.Status.NodeName = "x", "n1"
	sink.Set(node)
	expect := func(what string, binds bool, pending int) {
		t.Helper()
		s := w.Snapshot(time.Now())
		if len(s.Nodes) != 1 || strings.HasPrefix(s.Nodes[0].Disruption.Blocked, "a pod is being bound") != binds || len(s.Pending) != pending {
			t.Errorf("%s: %+v, %d entries wait", what, s.Nodes[0].Disruption, len(s.Pending))
		}
	}
	sink.Set(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}
	sink.Set(claim)
	pod := claiming("c")
	sink.Set(pod)
	expect("before", false, 1)
	claim = claim.DeepCopy()
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.example.com", Pool: "fabric", Device: "a", BindingConditions: []string{"attached"}}},
	}}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
	sink.Set(claim)
	pod = pod.DeepCopy()
	pod.Status.NominatedNodeName = "n1"
	sink.Set(pod)
	expect("while its devices are attached", true, 0)
	pod = pod.DeepCopy()
	pod.Status.NominatedNodeName = ""
	sink.Set(pod)
	expect("when that has failed", false, 1)
}

// TestDevicesOfDaemons: what pods of a DaemonSet claim is known from those that have their
// claims, and stays known while a newer one waits for its own.
func TestDevicesOfDaemons(t *testing.T) {
	axis := model.NewAxis()
	w := world.New(axis, nil)
	c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels(), Manages: func(*v1.NodeClassReference) bool { return true }}
	sink := feed.NewSink(w, c, feed.Sources{Volumes: volumes.New(c.Labels, volumes.Rules{}), Devices: devices.New(c.Labels)})
	expect := func(what string, want int) {
		t.Helper()
		if d := w.Snapshot(time.Now()).Daemons; len(d) != 1 || len(d[0].Shape.Claims) != want {
			t.Errorf("%s: %+v, want %d claims", what, d, want)
		}
	}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d", UID: "d"}}
	set.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")}}
	sink.Set(set)
	expect("without pods", 0)
	pod := func(name string, created int64) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(created, 0))}}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: ptr.To(true)}}
		p.Spec.ResourceClaims = set.Spec.Template.Spec.ResourceClaims
		return p
	}
	sink.Set(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	first := pod("d-1", 1)
	sink.Set(first)
	expect("with a pod that has no claim yet", 0)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d-1-gpu"}}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "d-1", UID: "d-1", Controller: ptr.To(true)}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}
	sink.Set(claim)
	first = first.DeepCopy()
	first.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To("d-1-gpu")}}
	sink.Set(first)
	expect("with its claim", 1)
	sink.Set(pod("d-2", 2))
	expect("with a newer pod that waits", 1)
}

// TestTrimmedDevices: of a claim, caches keep what it asks for and whose it is.
func TestTrimmedDevices(t *testing.T) {
	full := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "c", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}, OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", UID: "u"}},
		Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true", "other": "x"},
	}}
	full.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}
	full.Spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{Requests: []string{"r"}}}
	full.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "d"}}
	trimmed, err := feed.TrimOthers(full)
	got, ok := trimmed.(*resourcev1.ResourceClaim)
	if !ok || err != nil || got.ManagedFields != nil || got.Spec.Devices.Config != nil || got.Status.Devices != nil || len(got.OwnerReferences) != 1 || len(got.Spec.Devices.Requests) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestUpstreamsExpectations: what upstream's suite for devices expects of an autoscaler, with
// devices on and off: no node for a pod whose claim template does not exist, which the
// scheduler does not look at, and nodes as ever for pods without claims beside it.
// spec 46/86.
func TestUpstreamsExpectations(t *testing.T) {
	for name, store := range map[string]*devices.Store{"off": nil, "on": devices.New(v1.DefaultLabels())} {
		axis := model.NewAxis()
		w := world.New(axis, nil)
		c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels()}
		sink := feed.NewSink(w, c, feed.Sources{Volumes: volumes.New(c.Labels, volumes.Rules{}), Devices: store})
		p := claiming("")
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("missing")}}
		p.Status.Conditions = nil
		sink.Set(p)
		if s := w.Snapshot(time.Now()); len(s.Pending) != 0 {
			t.Errorf("%s: %+v", name, s.Pending)
		}
		plain := claiming("")
		plain.Name, plain.UID, plain.Spec.ResourceClaims = "plain", "plain", nil
		sink.Set(plain)
		if s := w.Snapshot(time.Now()); len(s.Pending) != 1 || len(s.Pending[0].Pods) != 1 || s.Pending[0].Pods[0].Name != "plain" || len(s.Pending[0].Shape.Refused) != 0 {
			t.Errorf("%s: %+v", name, s.Pending)
		}
	}
}
