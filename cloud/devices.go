// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/model"
)

// DevicePool is a pool of devices that a driver will publish on each node of a
// type, as far as that is known before the launch. All its devices belong to
// that node.
type DevicePool struct {
	Driver   string
	Name     string
	Devices  []resourcev1.Device // in the order in which they are published
	Counters []resourcev1.CounterSet
	Bindings []AttributeBinding
}

// AttributeBinding is an attribute whose value is unknown before the launch, but
// is the same for all of the devices.
type AttributeBinding struct {
	Attribute resourcev1.FullyQualifiedName
	Devices   []string // two or more
}

// Kinds keeps one of each kind of device.
type Kinds map[string]*model.DeviceKind

// Device returns the device of a driver as decisions see it, but for where it is.
func (k Kinds) Device(driver string, d *resourcev1.Device) model.Device {
	return model.Device{Name: d.Name, Kind: k.of(driver, d), Taints: deviceTaints(d.Taints), Uses: uses(d.ConsumesCounters)}
}

func (k Kinds) of(driver string, d *resourcev1.Device) *model.DeviceKind {
	out := &model.DeviceKind{Driver: driver, Shared: d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations}
	for name, a := range d.Attributes {
		out.Attributes = append(out.Attributes, deviceAttribute(qualified(driver, string(name)), a))
	}
	slices.SortFunc(out.Attributes, func(a, b model.DeviceAttribute) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
		out.Capacity = append(out.Capacity, deviceCapacity(string(name), d.Capacity[name]))
	}
	sum := sha256.Sum256([]byte(out.Identity()))
	out.Key = driver + "-" + hex.EncodeToString(sum[:8])
	if known := k[out.Key]; known != nil {
		return known
	}
	k[out.Key] = out
	return out
}

// qualified returns the name with its domain, which is the driver's unless it says
// another.
func qualified(driver, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return driver + "/" + name
}

func deviceAttribute(name string, a resourcev1.DeviceAttribute) model.DeviceAttribute {
	switch {
	case a.IntValue != nil:
		return model.DeviceAttribute{Name: name, Type: model.AttributeInt, Text: strconv.FormatInt(*a.IntValue, 10)}
	case a.BoolValue != nil:
		return model.DeviceAttribute{Name: name, Type: model.AttributeBool, Text: strconv.FormatBool(*a.BoolValue)}
	case a.StringValue != nil:
		return model.DeviceAttribute{Name: name, Type: model.AttributeString, Text: *a.StringValue}
	case a.VersionValue != nil:
		return model.DeviceAttribute{Name: name, Type: model.AttributeVersion, Text: *a.VersionValue}
	}
	return model.DeviceAttribute{Name: name, Type: model.AttributeList}
}

// deviceCapacity keeps the name as the driver writes it: requests name it the same way.
func deviceCapacity(name string, c resourcev1.DeviceCapacity) model.DeviceCapacity {
	out := model.DeviceCapacity{Name: name, Value: Thousandths(c.Value)}
	p := c.RequestPolicy
	if p == nil {
		return out
	}
	out.Policy, out.Default = true, out.Value
	if p.Default != nil {
		out.Default = Thousandths(*p.Default)
	}
	for _, v := range p.ValidValues {
		out.Values = append(out.Values, Thousandths(v))
	}
	if r := p.ValidRange; r != nil {
		for _, part := range []struct {
			from *resource.Quantity
			to   *int64
		}{{r.Min, &out.Min}, {r.Max, &out.Max}, {r.Step, &out.Step}} {
			if part.from != nil {
				*part.to = Thousandths(*part.from)
			}
		}
	}
	return out
}

// MostThousandths is the largest amount of a device, in thousandths: sums of amounts
// do not overflow.
const MostThousandths = 1 << 60

// Thousandths returns the amount in thousandths, rounded up, and as MostThousandths
// what is larger.
func Thousandths(q resource.Quantity) int64 {
	if q.CmpInt64(MostThousandths/1000) > 0 {
		return MostThousandths
	}
	return q.MilliValue()
}

// deviceTaints returns the taints that keep claims away.
func deviceTaints(all []resourcev1.DeviceTaint) []model.Taint {
	var out []model.Taint
	for i := range all {
		out = append(out, DeviceTaint(&all[i])...)
	}
	return out
}

// DeviceTaint returns the taint, or none if it does not keep claims away.
func DeviceTaint(t *resourcev1.DeviceTaint) []model.Taint {
	if t.Effect != resourcev1.DeviceTaintEffectNoSchedule && t.Effect != resourcev1.DeviceTaintEffectNoExecute {
		return nil
	}
	return []model.Taint{{Key: t.Key, Value: t.Value, Effect: model.Effect(t.Effect)}}
}

func uses(all []resourcev1.DeviceCounterConsumption) []model.DeviceCount {
	var out []model.DeviceCount
	for _, c := range all {
		out = append(out, Counts(c.CounterSet, c.Counters)...)
	}
	return out
}

// Counts returns counters of a set, by name.
func Counts(set string, of map[string]resourcev1.Counter) []model.DeviceCount {
	var out []model.DeviceCount
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, model.DeviceCount{Set: set, Name: name, Value: Thousandths(of[name].Value)})
	}
	return out
}

// devicePools returns the pools as decisions see them, by driver and name.
func devicePools(all []DevicePool) []model.DevicePool {
	if len(all) == 0 {
		return nil
	}
	kinds := Kinds{}
	var out []model.DevicePool
	for _, p := range all {
		pool := model.DevicePool{Driver: p.Driver, Name: p.Name}
		for i := range p.Devices {
			pool.Devices = append(pool.Devices, kinds.Device(p.Driver, &p.Devices[i]))
		}
		for _, c := range p.Counters {
			pool.Counters = append(pool.Counters, Counts(c.Name, c.Counters)...)
		}
		for _, b := range p.Bindings {
			pool.Alike = append(pool.Alike, model.DevicesAlike{Attribute: string(b.Attribute), Devices: b.Devices})
		}
		out = append(out, pool)
	}
	slices.SortFunc(out, func(a, b model.DevicePool) int {
		return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Name, b.Name))
	})
	return out
}
