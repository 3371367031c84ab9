// SPDX-License-Identifier: Apache-2.0

package model

// Devices and claims of dynamic resource allocation, as plain values.
//
// Names of attributes and capacities are qualified ("gpu.nvidia.com/memory"): one
// without a domain is in the domain of its driver. Quantities are in thousandths,
// so that fractions of a device can be expressed.

// DeviceKind is what selectors see of a device. Devices that differ only by name
// have one kind.
type DeviceKind struct {
	Key        string // Identity, or any other text that only equal kinds share
	Driver     string
	Attributes []DeviceAttribute // by name
	Capacity   []DeviceCapacity  // by name
	Shared     bool              // several claims may have a part of one device each
}

// DeviceAttribute is one attribute. Attributes are equal if type and text are.
type DeviceAttribute struct {
	Name string
	Type string // AttributeInt and so on
	Text string
}

// Types of attributes. No constraint is met by a list.
const (
	AttributeInt     = "int"
	AttributeBool    = "bool"
	AttributeString  = "string"
	AttributeVersion = "version"
	AttributeList    = "list"
)

// DeviceCapacity is one capacity. The other fields say how much of it a claim
// of a Shared kind takes. Without a Policy, a claim without a request for this
// capacity takes all of it.
type DeviceCapacity struct {
	Name   string
	Value  int64
	Policy bool
	// Default is used if nothing is requested. A request is rounded up to the
	// next of Values, or, if there are none, to Min plus a multiple of Step.
	Default        int64
	Values         []int64 // ascending
	Min, Max, Step int64   // 0 = none
}

// Device is one device of a pool.
type Device struct {
	Name   string
	Kind   *DeviceKind
	Taints []Taint       // those with effects NoSchedule and NoExecute; DeviceTaintRules included
	Uses   []DeviceCount // of the counters of its pool
	Late   bool          // it has binding conditions: the scheduler tries its pool after others
	// On is where the device can be used: one of these must hold. Nil means everywhere,
	// for a pool of a node: there. Devices of a Node or an InstanceType have none.
	On []Requirements
}

// DeviceCount is so much of a counter, or so much that there is.
type DeviceCount struct {
	Set, Name string
	Value     int64
}

// DevicePool is the devices that a driver publishes under one name, at the highest
// generation, in the order in which the scheduler tries them: by slice, then as listed.
type DevicePool struct {
	Driver, Name string
	// Broken says why the pool gives nothing: "2 of 3 slices are published", "the device
	// gpu-1 is there twice"; "" = it is complete and valid.
	Broken   string
	Counters []DeviceCount // what there is of each counter
	Devices  []Device
	InUse    []DeviceUse // by claims that keep their allocation
	// Alike lists devices that will have the same value of an attribute, which
	// is unknown before the launch. Only templates have it.
	Alike []DevicesAlike
}

// DevicesAlike is devices of a pool that share an unknown value of an attribute.
type DevicesAlike struct {
	Attribute string
	Devices   []string
}

// DeviceUse is a device, or a share of one, that a claim has. Allocations with admin
// access use nothing, and are not listed.
type DeviceUse struct {
	Device string
	Share  bool           // it is a share: Takes says of what
	Takes  []DeviceAmount // by name
	Claim  string         // namespace/name of the ResourceClaim, for people
}

// DeviceAmount is so much of a capacity.
type DeviceAmount struct {
	Name  string
	Value int64
}

// DeviceClaim is a ResourceClaim that a pod needs and that has no allocation,
// combined with its DeviceClasses. The claim that the scheduler will make for
// extended resources is named after them. A claim that keeps its allocation is
// not listed: its node selector is one of Shape.DeviceTerms.
type DeviceClaim struct {
	Name string // as the pod calls it
	// Shared is namespace/name of the claim if other pods may use it as well: they run
	// where its devices are. "" = it is made for the pod alone.
	Shared      string
	Requests    []DeviceRequest
	Constraints []DeviceConstraint
}

// DeviceRequest asks for devices, in one of several ways.
type DeviceRequest struct {
	Name string
	Ways []DeviceWay // the most wanted first; "exactly" is one way
	// Resource is the extended resource that a container requests and that a
	// DeviceClass serves. On a node with allocatable amounts of the resource, the
	// request needs no devices. "" = a request of a ResourceClaim.
	Resource string
}

// DeviceWay is one way to meet a request.
type DeviceWay struct {
	Name        string // of the alternative of "firstAvailable"; "" = it is "exactly"
	Class       string
	Selectors   []string // CEL: those of the class first; all must hold. Snapshot.Selectors has the answers
	All         bool     // all devices that match; otherwise Count
	Count       int
	Tolerations []Toleration
	Admin       bool           // admin access: devices in use will do, and are not used up
	Takes       []DeviceAmount // asked for of each device, by name
}

// DeviceConstraint is about the devices of several requests together.
type DeviceConstraint struct {
	Requests []string // "gpu" or "gpu/small"; none = all of the claim
	Match    string   // attribute of which all have the same value; "" = none
	Distinct string   // attribute of which all have different values; "" = none
}

// DeviceSelector holds the answers of a CEL expression for the kinds of devices
// in a Snapshot. Decisions read these answers. They are computed where the
// Snapshot is made, because the core has no CEL.
type DeviceSelector struct {
	Text    string
	Matches []string // Keys of the kinds for which it holds, sorted
	Fails   []string // Keys of the kinds for which it ends in an error, sorted
	Invalid string   // why there are no answers: "cannot be compiled: …"; "" = there are
}

// Identity returns a text that is equal exactly for kinds that are equal in every
// field but Key.
func (k *DeviceKind) Identity() string {
	w := &identity{}
	w.text(k.Driver)
	w.flags(k.Shared)
	each(w, "attributes", k.Attributes, func(a DeviceAttribute) {
		w.text(a.Name)
		w.text(a.Type)
		w.text(a.Text)
	})
	each(w, "capacity", k.Capacity, func(c DeviceCapacity) {
		w.text(c.Name)
		w.flags(c.Policy)
		for _, n := range []int64{c.Value, c.Default, c.Min, c.Max, c.Step} {
			w.number(n)
		}
		each(w, "", c.Values, w.number)
	})
	return w.String()
}
