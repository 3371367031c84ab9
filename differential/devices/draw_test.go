// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// situation is objects of the API.
type situation struct {
	classes []*resourcev1.DeviceClass
	slices  []*resourcev1.ResourceSlice
	pods    [][]*resourcev1.ResourceClaim // of each pod, in the order in which they come
}

const (
	nodeName  = "n1"
	otherName = "n2"
)

// nodes returns two nodes, in a zone each.
func nodes() []*corev1.Node {
	var out []*corev1.Node
	for name, zone := range map[string]string{nodeName: "a", otherName: "b"} {
		out = append(out, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"zone": zone, "kubernetes.io/hostname": name}}})
	}
	slices.SortFunc(out, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func node() *corev1.Node { return nodes()[0] }

// drawing is a situation in the making.
type drawing struct {
	*rand.Rand
	wild    bool // selectors may end in errors, pools may be broken
	apart   bool // devices are on two nodes, or on none alone
	devices int
}

func (d *drawing) chance(percent int) bool { return d.IntN(100) < percent }

func pick[T any](d *drawing, of ...T) T { return of[d.IntN(len(of))] }

func draw(seed uint64) *situation { return drawn(&drawing{Rand: rand.New(rand.NewPCG(seed, 0))}) }

// drawApart draws a situation with devices on two nodes, and such that are of neither.
func drawApart(seed uint64) *situation {
	return drawn(&drawing{Rand: rand.New(rand.NewPCG(seed, 1)), apart: true})
}

func drawn(d *drawing) *situation {
	d.wild = d.chance(20)
	s := &situation{}
	for _, name := range []string{"any", "gpu", "nic"} {
		c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if name != "any" || d.chance(20) {
			c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", name+".example.com")}}}
		}
		s.classes = append(s.classes, c)
	}
	for _, driver := range []string{"gpu.example.com", "nic.example.com"} {
		for pool := range 1 + d.IntN(2) {
			s.slices = append(s.slices, d.pool(driver, fmt.Sprintf("pool-%d", pool))...)
		}
	}
	for pod := range 1 + d.IntN(4) {
		var claims []*resourcev1.ResourceClaim
		for n := range 1 + d.IntN(2)*d.IntN(2) {
			c := d.claim()
			c.Namespace, c.Name = "default", fmt.Sprintf("claim-%d-%d", pod, n)
			claims = append(claims, c)
		}
		s.pods = append(s.pods, claims)
	}
	return s
}

// pool draws the slices of a pool.
func (d *drawing) pool(driver, name string) []*resourcev1.ResourceSlice {
	n := 1 + d.IntN(2)
	counted := d.chance(30)
	total := n
	if counted {
		total++
	}
	var out []*resourcev1.ResourceSlice
	slice := func(suffix string) *resourcev1.ResourceSlice {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver + "-" + name + "-" + suffix}}
		s.Spec = resourcev1.ResourceSliceSpec{Driver: driver, Pool: resourcev1.ResourcePool{Name: name, Generation: 3, ResourceSliceCount: int64(total)}, NodeName: ptr.To(nodeName)}
		out = append(out, s)
		return s
	}
	for i := range n {
		s := slice(fmt.Sprint(i))
		for range 1 + d.IntN(3) {
			s.Spec.Devices = append(s.Spec.Devices, d.device(driver, counted))
		}
	}
	if counted {
		s := slice("counters")
		s.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "set", Counters: map[string]resourcev1.Counter{
			"slots": {Value: *resource.NewQuantity(int64(2+d.IntN(4)), resource.DecimalSI)}, "memory": {Value: resource.MustParse("8Gi")},
		}}}
	}
	elsewhere := d.IntN(100)
	for _, s := range out {
		switch {
		case d.apart:
			d.place(&s.Spec, elsewhere)
		case counted:
		case elsewhere < 8:
			s.Spec.NodeName, s.Spec.AllNodes = nil, ptr.To(true)
		case elsewhere < 16:
			s.Spec.NodeName, s.Spec.NodeSelector = nil, zone(pick(d, "a", "b"))
		case elsewhere < 20:
			s.Spec.NodeName = ptr.To("n2")
		}
	}
	if d.wild {
		d.spoil(out)
	}
	return out
}

// place draws where the devices of a slice are; of is the same for all slices of a pool.
func (d *drawing) place(s *resourcev1.ResourceSliceSpec, of int) {
	s.NodeName = nil
	switch {
	case of < 20:
		s.NodeName = ptr.To(nodeName)
	case of < 40:
		s.NodeName = ptr.To(otherName)
	case of < 55 || len(s.Devices) == 0:
		s.AllNodes = ptr.To(true)
	case of < 70:
		s.NodeSelector = zone(pick(d, "a", "b"))
	case of < 80:
		s.NodeName = ptr.To(pick(d, nodeName, otherName))
	default:
		s.PerDeviceNodeSelection = ptr.To(true)
		for i := range s.Devices {
			switch v := &s.Devices[i]; d.IntN(4) {
			case 0:
				v.NodeName = ptr.To(pick(d, nodeName, otherName))
			case 1:
				v.NodeSelector = zone(pick(d, "a", "b"))
			default:
				v.AllNodes = ptr.To(true)
			}
		}
	}
}

func zone(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
	}}}
}

// spoil makes the pool incomplete, obsolete or contradictory. Of slices that the node
// cannot see, the allocator overlooks a name that is there twice; we take the pool for
// broken everywhere, which the API server does not let happen in one slice.
func (d *drawing) spoil(all []*resourcev1.ResourceSlice) {
	s := all[d.IntN(len(all))]
	switch d.IntN(8) {
	case 0:
		for _, s := range all {
			s.Spec.Pool.ResourceSliceCount++
		}
	case 1:
		s.Spec.Pool.Generation++
	case 2:
		s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount = s.Spec.Pool.Generation+1, 1
	case 3:
		if len(s.Spec.Devices) > 0 && ptr.Deref(s.Spec.NodeName, "") == nodeName {
			s.Spec.Devices = append(s.Spec.Devices, s.Spec.Devices[0])
		}
	case 4:
		if len(s.Spec.Devices) > 0 {
			s.Spec.Devices[0].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "other", Counters: map[string]resourcev1.Counter{"slots": {Value: resource.MustParse("1")}}}}
		}
	}
}

func (d *drawing) device(driver string, counted bool) resourcev1.Device {
	out := resourcev1.Device{Name: fmt.Sprintf("device-%d", d.devices)}
	d.devices++
	text := func(v string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &v} }
	out.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"model": text(pick(d, "a10", "t4")), "cores": {IntValue: ptr.To(int64(d.IntN(3)))},
		"resource.kubernetes.io/pcieRoot": text(pick(d, "r0", "r1")), "version": {VersionValue: ptr.To(pick(d, "1.0.0", "2.1.0"))}, "good": {BoolValue: ptr.To(d.chance(80))},
	}
	if d.chance(10) {
		delete(out.Attributes, "resource.kubernetes.io/pcieRoot")
	}
	if d.chance(10) {
		out.Attributes[resourcev1.QualifiedName(driver+"/family")] = text("x")
	}
	if d.chance(50) {
		out.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": d.capacity()}
		if d.chance(60) {
			out.AllowMultipleAllocations = ptr.To(true)
		}
		if d.chance(20) {
			out.Capacity["bandwidth"] = d.capacity()
		}
	}
	if counted && d.chance(70) {
		out.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "set", Counters: map[string]resourcev1.Counter{
			"slots": {Value: *resource.NewQuantity(int64(1+d.IntN(3)), resource.DecimalSI)},
		}}}
		if d.chance(30) {
			out.ConsumesCounters[0].Counters["memory"] = resourcev1.Counter{Value: resource.MustParse(pick(d, "1Gi", "4Gi", "5Gi"))}
		}
	}
	if d.chance(10) {
		out.Taints = []resourcev1.DeviceTaint{{Key: pick(d, "sick", "old"), Value: pick(d, "", "yes"), Effect: pick(d,
			resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintEffectNone, "Later")}}
	}
	if d.chance(3) {
		out.BindingConditions, out.BindingFailureConditions = []string{"attached"}, []string{"failed"}
	}
	return out
}

func (d *drawing) quantity() resource.Quantity {
	return resource.MustParse(pick(d, "1", "2", "3", "4", "6", "8", "500m", "2500m", "1Gi", "4Gi"))
}

func (d *drawing) capacity() resourcev1.DeviceCapacity {
	out := resourcev1.DeviceCapacity{Value: resource.MustParse(pick(d, "4", "8", "10", "8Gi"))}
	q := func(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }
	switch d.IntN(5) {
	case 0:
		out.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: q("2"), ValidValues: []resource.Quantity{*q("1"), *q("2"), *q("4")}}
	case 1:
		out.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: q("1"), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: q("1"), Max: q(pick(d, "3", "4"))}}
	case 2:
		out.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: q("1"), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: q("1"), Step: q("2"), Max: q("7")}}
	case 3:
		out.RequestPolicy = &resourcev1.CapacityRequestPolicy{Default: q("500m"), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: q("500m"), Step: q("300m")}}
	}
	return out
}

func (d *drawing) claim() *resourcev1.ResourceClaim {
	out := &resourcev1.ResourceClaim{}
	n := 1 + d.IntN(3)*d.IntN(2)
	names := []string{}
	for i := range n {
		r := resourcev1.DeviceRequest{Name: fmt.Sprintf("r%d", i)}
		names = append(names, r.Name)
		if d.chance(20) {
			for j := range 1 + d.IntN(3) {
				w := d.way()
				w.Name = fmt.Sprintf("w%d", j)
				r.FirstAvailable = append(r.FirstAvailable, w)
				names = append(names, r.Name+"/"+w.Name)
			}
		} else {
			w := d.way()
			r.Exactly = &resourcev1.ExactDeviceRequest{
				DeviceClassName: w.DeviceClassName, Selectors: w.Selectors, AllocationMode: w.AllocationMode, Count: w.Count, Tolerations: w.Tolerations, Capacity: w.Capacity,
			}
			if d.chance(5) {
				r.Exactly.AdminAccess = ptr.To(true)
			}
		}
		out.Spec.Devices.Requests = append(out.Spec.Devices.Requests, r)
	}
	for range d.IntN(3) * d.IntN(2) {
		var c resourcev1.DeviceConstraint
		attribute := pick[resourcev1.FullyQualifiedName](d, "resource.kubernetes.io/pcieRoot", "gpu.example.com/model", "gpu.example.com/cores", "nic.example.com/family")
		if d.chance(70) {
			c.MatchAttribute = &attribute
		} else {
			c.DistinctAttribute = &attribute
		}
		for _, name := range names {
			if d.chance(30) {
				c.Requests = append(c.Requests, name)
			}
		}
		out.Spec.Devices.Constraints = append(out.Spec.Devices.Constraints, c)
	}
	return out
}

func (d *drawing) way() resourcev1.DeviceSubRequest {
	out := resourcev1.DeviceSubRequest{
		DeviceClassName: pick(d, "any", "gpu", "gpu", "nic"), AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + d.IntN(3)*d.IntN(2)),
	}
	if d.chance(12) {
		out.AllocationMode, out.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	for range d.IntN(2) * (1 + d.IntN(2)) {
		out.Selectors = append(out.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: d.expression(out.DeviceClassName)}})
	}
	if d.chance(20) {
		out.Tolerations = []resourcev1.DeviceToleration{pick(d,
			resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists}, resourcev1.DeviceToleration{Key: "sick", Value: "yes"},
			resourcev1.DeviceToleration{Key: "old", Operator: resourcev1.DeviceTolerationOpExists, Effect: resourcev1.DeviceTaintEffectNoSchedule},
			resourcev1.DeviceToleration{Key: "sick", Operator: resourcev1.DeviceTolerationOpEqual},
		)}
	}
	if d.chance(35) {
		out.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": d.quantity()}}
		if d.chance(10) {
			out.Capacity.Requests[pick[resourcev1.QualifiedName](d, "bandwidth", "gpu.example.com/memory")] = d.quantity()
		}
	}
	return out
}

// expression draws a selector that is true of some devices and, unless the drawing is
// wild, ends in no error.
func (d *drawing) expression(class string) string {
	domain := class + ".example.com"
	if class == "any" {
		domain = "gpu.example.com"
	}
	safe := pick(d,
		fmt.Sprintf(`device.attributes[%q].model == "a10"`, domain), fmt.Sprintf(`device.attributes[%q].cores >= 1`, domain),
		fmt.Sprintf(`device.attributes[%q].good`, domain), fmt.Sprintf(`device.attributes[%q].version.compareTo(semver("2.0.0")) < 0`, domain),
		fmt.Sprintf(`"memory" in device.capacity[%q] && device.capacity[%q].memory.compareTo(quantity("8")) >= 0`, domain, domain),
		`device.allowMultipleAllocations == true`, `device.allowMultipleAllocations == false`,
	)
	if class == "any" && !d.wild {
		return fmt.Sprintf(`device.driver != %q || (%s)`, domain, safe)
	}
	if d.wild && d.chance(10) {
		return pick(d, `device.attributes["gpu.example.com"].family == "x"`, `device.nothing`, `device.attributes["gpu.example.com"].model`, `device.capacity["nic.example.com"].memory.isInteger()`)
	}
	return safe
}
