// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/devices"
	"karpenter/kube/feed"
	"karpenter/kube/volumes"
	"karpenter/world"
)

// TestServedResources: a pod that requests extended resources which DeviceClasses serve
// is placed on the node exactly if the scheduler would bind it there. The node has them
// from device plugins, or devices, or both, or neither. The scheduler is told of classes
// that lose a common resource to others first: told the other way round it forgets the
// names they have by themselves, and nobody can know in which order it was told.
// spec 46/58, 46/59, 46/60, 46/61, 46/62, 46/63.
func TestServedResources(t *testing.T) {
	s, n := newScheduler(t), 3000**seeds
	from, to := *first, *first+n
	if *only >= 0 {
		from, to = *only, *only+1
	}
	t.Logf("%d situations, seeds %d to %d", to-from, from, to-1)
	classes := s.devices.DeviceClassResolver().(toolscache.ResourceEventHandler)
	count, failed := map[string]int{}, 0
	for seed := from; seed < to && failed < *stop; seed++ {
		c := drawServed(newDice(seed, nil))
		replace(s.listers.Resource().V1().DeviceClasses().Informer(), c.classes)
		replace(s.listers.Resource().V1().ResourceSlices().Informer(), c.slices)
		for _, class := range c.classes {
			classes.OnAdd(class, false)
		}
		s.see([]*corev1.Node{c.node}, nil)
		refusal := s.refusal(c.pod, c.node.Name)
		for _, class := range c.classes {
			classes.OnDelete(class)
		}
		placed := c.placed()
		count[c.ways()+fmt.Sprintf(", %v", refusal == "")]++
		if placed != (refusal == "") {
			failed++
			t.Errorf("seed %d: the scheduler says %q, we place it: %v\n%s", seed, refusal, placed, terse(t, []any{c.classes, c.slices, c.node, c.pod}))
		}
	}
	t.Logf("%v", count)
	if *only >= 0 || t.Failed() {
		return
	}
	for _, want := range []string{"devices, true", "devices, false", "plugin, true", "plugin, false", "devices plugin, true"} {
		if count[want] < n/200 {
			t.Errorf("only %d situations are %q", count[want], want)
		}
	}
}

// servedCase is one node and a pod without claims.
type servedCase struct {
	classes []*resourcev1.DeviceClass
	slices  []*resourcev1.ResourceSlice
	node    *corev1.Node
	pod     *corev1.Pod
}

const gpus, nics = "example.com/gpu", "example.com/nic"

func drawServed(g dice) *servedCase {
	c := &servedCase{}
	for _, name := range some(g, 70, "a", "b", "c") {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now().Add(-time.Duration(g.IntN(2)) * time.Hour))}}
		if g.maybe(85) {
			class.Spec.ExtendedResourceName = ptr.To(pick(g, gpus, gpus, nics))
		}
		for _, text := range some(g, 40, `device.driver == "gpu.example.com"`, `device.attributes["gpu.example.com"].model == "a10"`) {
			if len(class.Spec.Selectors) == 0 {
				class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: text}}}
			}
		}
		c.classes = append(c.classes, class)
	}
	have := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("10")}
	for _, name := range some(g, 50, gpus, nics) {
		have[corev1.ResourceName(name)] = *resource.NewQuantity(int64(g.IntN(4)), resource.DecimalSI)
	}
	c.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1", Labels: map[string]string{corev1.LabelHostname: "n1"}},
		Spec: corev1.NodeSpec{ProviderID: "x"}, Status: corev1.NodeStatus{Allocatable: have, Capacity: have}}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", Pool: resourcev1.ResourcePool{Name: "n1", ResourceSliceCount: 1}, NodeName: ptr.To("n1"),
	}}
	for i := range g.IntN(5) {
		d := resourcev1.Device{Name: fmt.Sprint("d", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: ptr.To(pick(g, "a10", "t4"))}}}
		if g.maybe(10) {
			d.Taints = []resourcev1.DeviceTaint{{Key: "sick", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}
		if g.maybe(20) {
			d.AllowMultipleAllocations = ptr.To(true)
			d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("8"),
				RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: ptr.To(resource.MustParse(pick(g, "1", "3", "8")))}}}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, d)
	}
	if len(slice.Spec.Devices) > 0 {
		c.slices = append(c.slices, slice)
	}
	c.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: types.UID("p")}}
	c.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	c.pod.Spec.Containers = g.requesting(1 + g.IntN(2))
	if c.pod.Spec.InitContainers = g.requesting(g.IntN(3)); len(c.pod.Spec.InitContainers) > 0 && g.maybe(50) {
		c.pod.Spec.InitContainers[g.IntN(len(c.pod.Spec.InitContainers))].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	}
	slices.SortFunc(c.classes, func(a, b *resourcev1.DeviceClass) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	return c
}

// requesting draws containers.
func (g dice) requesting(n int) []corev1.Container {
	var out []corev1.Container
	for i := range n {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		for _, name := range some(g, 35, gpus, gpus, nics, resourcev1.ResourceDeviceClassPrefix+"a", resourcev1.ResourceDeviceClassPrefix+"b") {
			list[corev1.ResourceName(name)] = *resource.NewQuantity(int64(g.IntN(3)), resource.DecimalSI)
		}
		out = append(out, corev1.Container{Name: fmt.Sprint("c", i), Resources: corev1.ResourceRequirements{Requests: list, Limits: list}})
	}
	return out
}

// ways tells how the node has what the pod requests, for the count.
func (c *servedCase) ways() string {
	var out []string
	for _, k := range slices.Concat(c.pod.Spec.InitContainers, c.pod.Spec.Containers) {
		for name, q := range k.Resources.Requests {
			have := c.node.Status.Allocatable[name]
			switch {
			case q.IsZero() || name == corev1.ResourceCPU:
			case have.IsZero():
				out = append(out, "devices")
			default:
				out = append(out, "plugin")
			}
		}
	}
	slices.Sort(out)
	switch out = slices.Compact(out); len(out) {
	case 0:
		return "nothing"
	case 1:
		return out[0]
	}
	return "devices plugin"
}

// placed reports whether we place the pod on the node.
func (c *servedCase) placed() bool {
	convert := converter(v1.DefaultLabels())
	w := world.New(convert.Axis, nil)
	sink := feed.NewSink(w, convert, feed.Sources{Volumes: volumes.New(convert.Labels, volumes.Rules{}), Devices: devices.New(convert.Labels)})
	objects := []client.Object{c.node, c.pod}
	for _, o := range c.slices {
		objects = append(objects, o)
	}
	for _, o := range c.classes {
		objects = append(objects, o)
	}
	for _, o := range objects {
		sink.Set(o)
	}
	return len(plan(w.Snapshot(now())).Placements) == 1
}
