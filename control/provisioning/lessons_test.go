// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/kube/devices"
	"karpenter/kube/feed"
	"karpenter/kube/kubelets"
	"karpenter/kube/volumes"
	"karpenter/model"
)

// school is a stage whose nodes start as the test says, and publish more, or less, than was
// planned. Its pool "general" has one instance type.
type school struct {
	*stage
	feed.Sink
	started map[string]string // nodes by NodeClaim
}

const driver = "gpu.example.com"

func newSchool(t *testing.T, of *cloud.InstanceType) *school {
	t.Helper()
	s := newStage(t)
	s.types = cloud.Types(s.Convert.Axis, []*cloud.InstanceType{of})
	s.pool("general", nil)
	out := &school{stage: s, started: map[string]string{}, Sink: feed.NewSink(s.world, s.Convert, feed.Sources{
		Volumes: volumes.New(s.Convert.Labels, volumes.Rules{}), Devices: devices.New(s.Convert.Labels),
	})}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf(`device.driver == %q`, driver)}}}
	out.Set(class)
	return out
}

// start has the NodeClaims that are not launched yet become initialized nodes, and returns
// the name of the last one.
func (s *school) start() string {
	s.t.Helper()
	claims, last := s.claims(), ""
	for i := range claims {
		if s.started[claims[i].Name] == "" {
			last = fmt.Sprint("n", len(s.started))
			s.started[claims[i].Name] = last
			s.become(&claims[i], last)
		}
	}
	return last
}

// become has the NodeClaim become an initialized node with the name, and with these labels.
func (s *school) become(claim *v1.NodeClaim, name string, more ...string) {
	have := corev1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	labels := map[string]string{
		v1.NodePoolLabelKey: "general", model.LabelRegistered: "true", model.LabelInitialized: "true",
		model.LabelInstanceType: "big", model.LabelHostname: name, model.LabelArch: "amd64", model.LabelZone: "test-zone-1", model.LabelCapacityType: model.OnDemand,
	}
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	claim.CreationTimestamp = metav1.NewTime(s.clock.Now())
	claim.Labels = labels
	claim.Status.ProviderID, claim.Status.NodeName = "test://"+name, name
	claim.Status.Capacity, claim.Status.Allocatable = have, have
	s.Set(claim)
	s.Set(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels}, Spec: corev1.NodeSpec{ProviderID: "test://" + name},
		Status: corev1.NodeStatus{Capacity: have, Allocatable: have},
	})
}

// asks is a pod with a claim for so many devices.
func (s *school) asks(name string, devices int64) *corev1.Pod {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", Count: devices}}}
	s.Set(claim)
	p := pod(name, words{})
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To(name)}}
	s.Set(p)
	return p
}

// runs has the scheduler bind the pod to the node, with these devices of it.
func (s *school) runs(p *corev1.Pod, node string, devices ...string) {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: p.Name}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", Count: int64(len(devices))}}}
	claim.Status.Allocation = &resourcev1.AllocationResult{}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}
	for _, d := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: driver, Pool: node, Device: d})
	}
	p = p.DeepCopy()
	p.Spec.NodeName, p.Status.Conditions = node, nil
	s.Set(p)
	s.Set(claim)
}

// publish has the driver publish devices of the node.
func (s *school) publish(node string, devices ...resourcev1.Device) {
	spec := resourcev1.ResourceSliceSpec{Driver: driver, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, NodeName: ptr.To(node), Devices: devices}
	s.Set(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: spec})
}

// exclusive returns devices that are exclusive, each with an UUID.
func exclusive(n int, node string) []resourcev1.Device {
	var out []resourcev1.Device
	for i := range n {
		out = append(out, resourcev1.Device{Name: fmt.Sprint("gpu-", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: ptr.To(fmt.Sprint(node, i))}}})
	}
	return out
}

func big() *cloud.InstanceType {
	return cloudtest.Type("big", "64", "256Gi", cloudtest.Offering("test-zone-1", v1.CapacityTypeOnDemand, 4))
}

// TestLearnedTemplate: of an instance type whose devices no provider describes, such as
// partitions of GPUs, the next node is planned like the one that is there. spec 46/71.
func TestLearnedTemplate(t *testing.T) {
	s := newSchool(t, big())
	s.asks("early", 1)
	s.mustPass()
	s.wantClaims(0) // no one knows of devices
	s.pod("first", "60", nil)
	s.mustPass()
	s.wantClaims(1)
	node := s.start()
	partition := func(name, slices string) resourcev1.Device {
		return resourcev1.Device{
			Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: ptr.To(node + name)}},
			ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "chip", Counters: map[string]resourcev1.Counter{"slices": {Value: resource.MustParse(slices)}}}},
		}
	}
	counters := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-counters"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: driver, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 2}, NodeName: &node,
		SharedCounters: []resourcev1.CounterSet{{Name: "chip", Counters: map[string]resourcev1.Counter{"slices": {Value: resource.MustParse("7")}}}},
	}}
	devices := counters.DeepCopy()
	devices.Name, devices.Spec.SharedCounters = node, nil
	devices.Spec.Devices = []resourcev1.Device{partition("half-0", "3"), partition("half-1", "3"), partition("half-2", "3"), partition("full", "7")}
	s.Set(&counters)
	s.Set(devices)
	early := s.asks("early", 1)
	s.runs(early, node, "full")

	// Of three halves, two fit on a chip: three pods need two nodes.
	for i := range 3 {
		s.asks(fmt.Sprint("half-", i), 1)
	}
	s.mustPass()
	s.wantClaims(3)
	if n := len(s.world.Snapshot(s.clock.Now()).Pools[0].Types[0].Devices); n != 1 {
		t.Errorf("%d pools of devices are learned, want 1", n)
	}
}

// TestFewerDevicesThanPlanned: if the driver publishes fewer devices than the provider says,
// the pod that is left is planned again with what has been published: it costs one launch.
// What the provider says is right again for new nodes when it says something new.
// spec 46/75.
func TestFewerDevicesThanPlanned(t *testing.T) {
	of := big()
	of.DevicePools = []cloud.DevicePool{{Driver: driver, Name: "template", Devices: exclusive(4, "")}}
	s := newSchool(t, of)
	for i := range 2 {
		s.asks(fmt.Sprint("p", i), 2)
	}
	s.mustPass()
	s.wantClaims(1)
	node := s.start()
	s.publish(node, exclusive(3, node)...)
	if got := s.world.FewerDevices(s.claims()[0].Name); len(got) != 1 || got[0] != "expected 4 devices of driver gpu.example.com, but found 3" {
		t.Errorf("%q", got)
	}
	s.runs(s.asks("p0", 2), node, "gpu-0", "gpu-1")
	s.mustPass()
	s.wantClaims(2)
	second := s.start()
	s.publish(second, exclusive(3, second)...)
	s.runs(s.asks("p1", 2), second, "gpu-0", "gpu-1")
	s.asks("four", 4)
	for range 5 {
		s.clock.SetTime(s.clock.Now().Add(20 * time.Minute))
		s.mustPass()
	}
	s.wantClaims(2) // no node has four
	of.DevicePools[0].Devices = exclusive(8, "")
	s.types = cloud.Types(s.Convert.Axis, []*cloud.InstanceType{of})
	s.clock.SetTime(s.clock.Now().Add(20 * time.Minute))
	s.mustPass()
	s.wantClaims(3)
}

// TestLessonEnds: what a node has published says nothing of the next node an hour after it has
// gone, if the provider knows better. spec 46/75.
func TestLessonEnds(t *testing.T) {
	of := big()
	of.DevicePools = []cloud.DevicePool{{Driver: driver, Name: "template", Devices: exclusive(4, "")}}
	s := newSchool(t, of)
	s.pod("first", "60", nil)
	s.mustPass()
	claim := s.wantClaims(1)[0]
	node := s.start()
	s.publish(node, exclusive(3, node)...) // one is broken
	s.asks("four", 4)
	s.clock.SetTime(s.clock.Now().Add(2 * time.Hour))
	s.mustPass()
	s.wantClaims(1)
	s.Delete(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}})
	s.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	s.Delete(&claim)
	s.Delete(pod("first", words{}))
	for i, want := range []int{1, 1, 2} {
		s.clock.SetTime(s.clock.Now().Add(time.Duration(i) * 31 * time.Minute))
		s.mustPass()
		s.wantClaims(want)
	}
}

// TestVolumesOfTypes: a node that is to be launched takes no more volumes than nodes of its
// type say. If it says less itself, the pods that do not fit are planned again, and the
// next node takes as many. spec 46/134.
func TestVolumesOfTypes(t *testing.T) {
	s := newSchool(t, big())
	s.Set(class("ebs", words{}))
	s.pod("first", "60", nil)
	s.mustPass()
	peer := s.start()
	s.pod("first", "60", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = peer, nil })
	s.attaches(peer, 25)
	var pods []*corev1.Pod
	for i := range 25 {
		p := pod(fmt.Sprint("p", i), words{"claims": fmt.Sprint("v", i), "cpu": "2"})
		s.Set(claim(fmt.Sprint("v", i), words{"class": "ebs", "incomplete": ""}))
		s.Set(p)
		pods = append(pods, p)
	}
	s.mustPass()
	s.wantClaims(2)
	node := s.start()
	s.attaches(node, 20)
	for _, p := range pods[:20] {
		p = p.DeepCopy()
		p.Spec.NodeName, p.Status.Conditions = node, nil
		s.Set(p)
	}
	s.mustPass()
	s.wantClaims(3)
	for i := range 16 { // with the five, one more than the third node takes
		s.Set(claim(fmt.Sprint("w", i), words{"class": "ebs", "incomplete": ""}))
		s.Set(pod(fmt.Sprint("q", i), words{"claims": fmt.Sprint("w", i), "cpu": "2"}))
	}
	s.mustPass()
	s.wantClaims(4)
}

// attaches has the node say how many volumes it may attach.
func (s *school) attaches(node string, most int32) {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "ebs", Allocatable: &storagev1.VolumeNodeResources{Count: &most}}}
	s.Set(n)
}

// TestRequiredDriver: a node that is ready without the driver that its pod waits for gets no
// second one beside it. If the driver never comes, the pod stays pending: new nodes of the
// pool would lack it as well. spec 46/132.
func TestRequiredDriver(t *testing.T) {
	s := newSchool(t, big())
	s.Set(class("ebs", words{}))
	s.Set(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "ebs"}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: ptr.To(true)}})
	s.Set(claim("v", words{"class": "ebs", "incomplete": ""}))
	s.Set(pod("p", words{"claims": "v"}))
	s.mustPass()
	s.wantClaims(1)
	s.start()
	for range 3 {
		s.clock.SetTime(s.clock.Now().Add(time.Minute))
		s.mustPass()
	}
	s.wantClaims(1)
	for range 3 {
		s.clock.SetTime(s.clock.Now().Add(10 * time.Minute))
		s.mustPass()
	}
	s.wantClaims(1)
	s.attaches("n0", 20)
	s.Set(pod("other", words{"cpu": "60"})) // takes the rest of the node
	s.mustPass()
	s.Set(claim("w", words{"class": "ebs", "incomplete": ""}))
	s.Set(pod("q", words{"claims": "w", "cpu": "10"}))
	s.mustPass()
	s.wantClaims(2)
}

// TestRequiredDriverByArchitecture: a node with the driver says nothing of nodes with another
// architecture, whose images may lack it: these cost one launch. spec 46/132.
func TestRequiredDriverByArchitecture(t *testing.T) {
	s := newSchool(t, big())
	s.Set(class("ebs", words{}))
	s.Set(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "ebs"}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: ptr.To(true)}})
	other := v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	s.become(&other, "other", model.LabelArch, "arm64")
	s.attaches("other", 20)
	s.pod("full", "64", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = "other", nil })
	s.Set(claim("v", words{"class": "ebs", "incomplete": ""}))
	s.Set(pod("p", words{"claims": "v"}))
	s.mustPass()
	s.wantClaims(1)
	s.start()
	for range 5 {
		s.clock.SetTime(s.clock.Now().Add(6 * time.Minute))
		s.mustPass()
	}
	s.wantClaims(1)
}

// TestDriverThatIsNotRequired: the same without the demand of the CSIDriver: the node takes the
// pod at any time. spec 46/133.
func TestDriverThatIsNotRequired(t *testing.T) {
	s := newSchool(t, big())
	s.Set(class("ebs", words{}))
	s.Set(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "ebs"}})
	for i := range 2 {
		s.Set(claim(fmt.Sprint("v", i), words{"class": "ebs", "incomplete": ""}))
		s.Set(pod(fmt.Sprint("p", i), words{"claims": fmt.Sprint("v", i), "cpu": "30"}))
		s.mustPass()
		s.wantClaims(1)
		if i == 0 {
			s.start()
		}
		s.clock.SetTime(s.clock.Now().Add(time.Hour))
	}
}

// TestNominatedPods: a pod that the scheduler has nominated to a node is not provisioned for, until
// that node is gone for half a minute; whether the pod may preempt others does not matter.
// spec 46/128.
func TestNominatedPods(t *testing.T) {
	s := newSchool(t, big())
	s.pod("first", "60", nil)
	s.mustPass()
	node := s.start()
	s.pod("first", "60", func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Conditions = node, nil })
	waits := pod("waits", words{"cpu": "3"})
	waits.Status.NominatedNodeName = node
	waits.Spec.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	s.Set(waits)
	for range 3 {
		s.mustPass()
	}
	s.wantClaims(1)
	s.Set(pod("small", words{"cpu": "3"})) // the rest of the node is for the other
	s.mustPass()
	s.wantClaims(2)
	s.Set(pod("small", words{"on": s.start()}))
	s.Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	for claim := range s.started {
		if s.started[claim] == node {
			s.Delete(&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}})
		}
	}
	s.mustPass()
	s.wantClaims(2)
	s.Set(pod("fills", words{"on": "n1", "cpu": "62"}))
	s.clock.SetTime(s.clock.Now().Add(30 * time.Second))
	s.world.Snapshot(s.clock.Now())
	s.mustPass()
	s.wantClaims(3)
}

// TestTaintedDeviceInUse: a device in use that gets a taint NoExecute is no capacity from then
// on. Kubernetes deletes its pod, at once or after the pod's toleration seconds, and not before
// that does another pod get a device in its place: one without the taint. spec 46/39.
func TestTaintedDeviceInUse(t *testing.T) {
	of := big()
	of.DevicePools = []cloud.DevicePool{{Driver: driver, Name: "template", Devices: exclusive(2, "")}}
	s := newSchool(t, of)
	used := s.asks("used", 1)
	s.mustPass()
	node := s.start()
	s.publish(node, exclusive(2, node)...)
	s.runs(used, node, "gpu-0")
	taint := func(device string) {
		rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: device}}
		rule.Spec.DeviceSelector = &resourcev1.DeviceTaintSelector{Driver: ptr.To(driver), Pool: &node, Device: &device}
		rule.Spec.Taint = resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoExecute}
		s.Set(rule)
	}
	taint("gpu-0")
	s.mustPass()
	s.wantClaims(1) // the pod may stay for its toleration seconds
	leaves := func(p *corev1.Pod) {
		p = p.DeepCopy()
		p.Spec.NodeName, p.Status.Conditions = node, nil
		p.DeletionTimestamp = &metav1.Time{Time: s.clock.Now().Add(30 * time.Second)}
		s.Set(p)
	}
	leaves(used)
	next := s.asks("next", 1)
	s.mustPass()
	s.wantClaims(1) // gpu-1 is free
	s.runs(next, node, "gpu-1")
	taint("gpu-1")
	leaves(next)
	s.asks("last", 1)
	s.mustPass()
	s.wantClaims(2)
}

// declares is like become, of a NodePool and with the features that the kubelet declares.
func (s *school) declares(claim *v1.NodeClaim, name string, features ...string) {
	pool := claim.Labels[v1.NodePoolLabelKey]
	s.become(claim, name)
	claim.Labels[v1.NodePoolLabelKey] = pool
	s.Set(claim)
	s.Set(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: claim.Labels}, Spec: corev1.NodeSpec{ProviderID: "test://" + name},
		Status: corev1.NodeStatus{Capacity: claim.Status.Capacity, Allocatable: claim.Status.Allocatable, DeclaredFeatures: features},
	})
}

// TestDeclaredFeatures: a pod that needs a feature of kubelets runs only in NodePools whose latest
// node declares it, or that have had no node yet. If that node does not declare it, the pod is
// planned again at most once for each other NodePool, and then rejected with a verdict that
// names the feature. No NodeClaim demands it. spec 46/130, 46/131.
func TestDeclaredFeatures(t *testing.T) {
	s := newSchool(t, big())
	s.pool("newer", func(p *v1.NodePool) { p.Spec.Weight = ptr.To[int32](10) })
	fresh := pod("fresh", words{"cpu": "2"})
	fresh.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	s.Set(fresh)
	s.mustPass()
	first := s.wantClaims(1)[0]
	if got := first.Labels[v1.NodePoolLabelKey]; got != "newer" {
		t.Errorf("the first node is of %s", got)
	}
	for _, r := range first.Spec.Requirements {
		if r.Key[0] == '.' {
			t.Errorf("the NodeClaim demands %s", r.Key)
		}
	}
	s.mustPass()
	s.wantClaims(1) // the pod is planned there while the node starts
	s.declares(&first, "n1", "AnotherFeature")
	s.mustPass()
	for _, c := range s.wantClaims(2) {
		if c.Name != first.Name {
			s.declares(&c, "n2")
		}
	}
	for range 3 {
		s.clock.SetTime(s.clock.Now().Add(10 * time.Minute))
		s.mustPass()
	}
	s.wantClaims(2)
	const feature = "RestartAllContainersOnContainerExits"
	if text := fmt.Sprint(s.events.Events()); !strings.Contains(text, feature) {
		t.Errorf("no event names the feature: %s", text)
	}
	claims := s.claims()
	for i := range claims {
		if claims[i].Name == first.Name {
			s.declares(&claims[i], "n1", feature)
		}
	}
	s.Set(pod("fills", words{"on": "n1", "cpu": "63"}))
	s.clock.SetTime(s.clock.Now().Add(10 * time.Minute))
	s.mustPass()
	if claims := s.wantClaims(3); len(claims) == 3 {
		for _, c := range claims {
			if c.Labels[v1.NodePoolLabelKey] == "newer" {
				return
			}
		}
	}
	t.Error("the node is not of the NodePool whose nodes declare the feature")
}

// TestPredictedFeatures: a pod that needs a feature of kubelets runs only in NodePools whose new
// nodes are known to declare it before the first one is there. What the latest node declares
// counts more, unless new nodes have another image. spec 46/130, 46/131.
func TestPredictedFeatures(t *testing.T) {
	const feature = "RestartAllContainersOnContainerExits"
	s := newSchool(t, big())
	s.pool("older", func(p *v1.NodePool) { p.Spec.Weight = ptr.To[int32](10) })
	predict := func(pool, version, gates string) {
		set, err := kubelets.ParseGates(gates)
		if err != nil {
			t.Fatal(err)
		}
		s.world.SetFeatures(pool, kubelets.Kubelet{Versions: []string{version}, Gates: set}.Features())
	}
	pods := 0
	asks := func() {
		pods++
		p := pod(fmt.Sprint("fresh-", pods), words{"cpu": "60"})
		p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
		s.Set(p)
		s.mustPass()
	}
	latest := func(n int) *v1.NodeClaim {
		t.Helper()
		claims := s.wantClaims(n)
		return &claims[n-1]
	}
	predict("older", "1.35", "")
	predict("general", "1.36", feature+"=false")
	asks()
	s.wantClaims(0)
	if text := fmt.Sprint(s.events.Events()); !strings.Contains(text, feature) {
		t.Errorf("no event names the feature: %s", text)
	}
	predict("general", "1.36", "")
	s.mustPass()
	first := latest(1)
	if got := first.Labels[v1.NodePoolLabelKey]; got != "general" {
		t.Errorf("the node is of %s", got)
	}
	s.declares(first, "n1") // not what was predicted
	for range 3 {
		s.clock.SetTime(s.clock.Now().Add(10 * time.Minute))
		s.mustPass()
	}
	s.wantClaims(1)
	first.StatusConditions(s.clock.Now()).SetTrue(v1.DriftedCondition) // new nodes have another image
	s.Set(first)
	s.mustPass()
	second := latest(2)
	if second.Name == first.Name {
		second = &s.claims()[0]
	}
	s.declares(second, "n2", feature)
	s.mustPass()
	predict("general", "1.36", feature+"=false") // and then another setting
	asks()
	s.wantClaims(2)
	predict("general", "1.36", "")
	s.mustPass()
	s.wantClaims(3)
}
