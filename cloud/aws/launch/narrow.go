// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/instancetype"
	"karpenter/model"
)

// MaxTypes is how many instance types one launch names.
const MaxTypes = 60

// Candidate is an instance type with those of its offerings that can be
// launched, at least one. They belong to the catalogue and are not changed.
type Candidate struct {
	Type      *cloud.InstanceType
	Offerings []*cloud.Offering
}

// Want is what a claim demands of its machine.
type Want struct {
	Labels   model.Requirements
	Requests corev1.ResourceList
	// Relaxed lets minValues go where they cannot be met.
	Relaxed bool
}

// allows reports whether the capacity type may be used.
func (w *Want) allows(capacityType string) bool {
	r, _ := w.Labels.Get(model.LabelCapacityType)
	return r.Has(capacityType)
}

// varied reports whether the claim demands a variety of types.
func (w *Want) varied() bool {
	return slices.ContainsFunc(w.Labels, func(r model.Requirement) bool { return r.MinValues > 0 })
}

// Narrow returns the candidates of the launch, cheapest type first. If there
// are none, why names the filter that removed the last one.
func Narrow(types []*cloud.InstanceType, want *Want) (out []Candidate, why string) {
	if out = available(types, want); len(out) == 0 {
		return nil, "no offering that is compatible and large enough is available"
	}
	for _, filter := range []func([]Candidate, *Want) []Candidate{
		reservationType, capacityBlock, reservedOffering, exotic, spot,
	} {
		out = filter(out, want) // leaves something
	}
	return truncate(out, want)
}

// available keeps offerings that match the claim, are large enough and have
// capacity.
func available(types []*cloud.InstanceType, want *Want) []Candidate {
	var out []Candidate
	for _, t := range types {
		if _, ok := t.Requirements.Intersects(want.Labels); !ok {
			continue
		}
		fits := cloud.Holds(t.Allocatable(), want.Requests)
		c := Candidate{Type: t}
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if !o.Available {
				continue
			}
			if _, ok := o.Requirements.Intersects(want.Labels); !ok {
				continue
			}
			holds := fits
			if o.CapacityOverride != nil || o.OverheadOverride != nil {
				holds = cloud.Holds(cloud.Choice{Type: t, Offering: o}.Allocatable(), want.Requests)
			}
			if holds {
				c.Offerings = append(c.Offerings, o)
			}
		}
		if len(c.Offerings) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// keep returns the candidates with the offerings that hold, less those that have
// none left.
func keep(in []Candidate, holds func(*cloud.Offering) bool) []Candidate {
	var out []Candidate
	for _, c := range in {
		left := Candidate{Type: c.Type}
		for _, o := range c.Offerings {
			if holds(o) {
				left.Offerings = append(left.Offerings, o)
			}
		}
		if len(left.Offerings) > 0 {
			out = append(out, left)
		}
	}
	return out
}

// cheapest returns the first of the cheapest offerings that hold, or nil.
func cheapest(in []Candidate, holds func(*cloud.Offering) bool) *cloud.Offering {
	var best *cloud.Offering
	for _, c := range in {
		for _, o := range c.Offerings {
			if holds(o) && (best == nil || o.Price < best.Price) {
				best = o
			}
		}
	}
	return best
}

func ofType(capacityType string) func(*cloud.Offering) bool {
	return func(o *cloud.Offering) bool { return o.CapacityType() == capacityType }
}

// market is the way to request a reservation; a launch can use one of them. At
// equal prices, the lower one is used.
type market int

const (
	notReserved market = iota
	plain
	block
	interruptible
)

func marketOf(o *cloud.Offering) market {
	kind, _ := o.Requirements.Value(awsv1.CapacityReservationTypeLabelKey)
	taken, _ := o.Requirements.Value(awsv1.CapacityReservationInterruptibleLabelKey)
	switch {
	case o.CapacityType() != model.Reserved:
		return notReserved
	case kind == string(awsv1.CapacityReservationTypeCapacityBlock):
		return block // never interruptible
	case taken == "true":
		return interruptible
	}
	return plain
}

// reservationType keeps reservations of the kind that has the cheapest one, and
// nothing but them; without any, it keeps everything.
func reservationType(in []Candidate, want *Want) []Candidate {
	if !want.allows(model.Reserved) {
		return in
	}
	var best *cloud.Offering
	for _, m := range []market{plain, block, interruptible} {
		o := cheapest(in, func(o *cloud.Offering) bool { return marketOf(o) == m })
		if o != nil && (best == nil || o.Price < best.Price) {
			best = o
		}
	}
	if best == nil {
		return in
	}
	return keep(in, func(o *cloud.Offering) bool { return marketOf(o) == marketOf(best) })
}

// capacityBlock keeps one offering of one type where capacity blocks are left:
// EC2 takes no alternatives to a block.
func capacityBlock(in []Candidate, want *Want) []Candidate {
	isBlock := func(o *cloud.Offering) bool { return marketOf(o) == block }
	best := cheapest(in, isBlock)
	if best == nil || !want.allows(model.Reserved) {
		return in
	}
	return keep(in, func(o *cloud.Offering) bool { return o == best })
}

// reservedOffering keeps, of each type in each zone, the reservation with most
// launches left: EC2 takes one per type and zone. Without any reservation it
// keeps everything.
func reservedOffering(in []Candidate, want *Want) []Candidate {
	if !want.allows(model.Reserved) {
		return in
	}
	var out []Candidate
	for _, c := range in {
		byZone := map[string]*cloud.Offering{}
		for _, o := range c.Offerings {
			best := byZone[o.Zone()]
			if o.CapacityType() == model.Reserved && (best == nil || o.ReservationCapacity > best.ReservationCapacity) {
				byZone[o.Zone()] = o
			}
		}
		out = append(out, keep([]Candidate{c}, func(o *cloud.Offering) bool { return byZone[o.Zone()] == o })...)
	}
	if len(out) == 0 {
		return in
	}
	return out
}

// exotic drops bare metal and types with devices, unless nothing else is left.
// If a pod needs a device, only such types are left.
func exotic(in []Candidate, want *Want) []Candidate {
	if want.varied() {
		return in
	}
	out := slices.DeleteFunc(slices.Clone(in), func(c Candidate) bool {
		size, _ := c.Type.Requirements.Value(awsv1.InstanceSizeLabelKey)
		return strings.Contains(size, "metal") || hasDevice(c.Type)
	})
	if len(out) == 0 {
		return in
	}
	return out
}

func hasDevice(t *cloud.InstanceType) bool {
	return slices.ContainsFunc([]corev1.ResourceName{
		instancetype.ResourceNeuron, instancetype.ResourceNeuronCore, instancetype.ResourceAMDGPU,
		instancetype.ResourceNvidiaGPU, instancetype.ResourceGaudi,
	}, func(name corev1.ResourceName) bool { q := t.Capacity[name]; return q.Sign() > 0 })
}

// spot drops spot offerings that cost more than the cheapest on demand.
func spot(in []Candidate, want *Want) []Candidate {
	if want.varied() || !want.allows(model.Spot) || !want.allows(model.OnDemand) {
		return in
	}
	best := cheapest(in, ofType(model.OnDemand))
	if best == nil || cheapest(in, ofType(model.Spot)) == nil {
		return in
	}
	return keep(in, func(o *cloud.Offering) bool { return o.CapacityType() != model.Spot || o.Price <= best.Price })
}

// truncate returns the cheapest types, MaxTypes at most; those that a demanded
// variety needs are among them, or nothing is.
func truncate(in []Candidate, want *Want) (out []Candidate, why string) {
	slices.SortStableFunc(in, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(lowest(a), lowest(b)), strings.Compare(a.Type.Name, b.Type.Name))
	})
	chosen := make([]bool, len(in))
	count := 0
	for _, r := range want.Labels {
		if r.MinValues > 0 {
			added, met := variety(in, r, chosen)
			if count += added; !met && !want.Relaxed {
				return nil, "too few values of " + r.Key + " are left"
			}
		}
	}
	if count > MaxTypes && !want.Relaxed {
		return nil, "truncating instance types based on the passed-in requirements"
	}
	for i := range in {
		if count < MaxTypes && !chosen[i] {
			chosen[i] = true
			count++
		}
	}
	for i, c := range in {
		if chosen[i] && len(out) < MaxTypes {
			out = append(out, c)
		}
	}
	return out, ""
}

// variety chooses the cheapest types with values that those chosen before lack,
// until there are enough of them.
func variety(in []Candidate, r model.Requirement, chosen []bool) (added int, met bool) {
	values := map[string]bool{}
	learn := func(c Candidate) (news bool) {
		has, ok := c.Type.Requirements.Get(r.Key)
		if !ok {
			return false
		}
		for _, v := range has.Intersect(r).Values {
			news = news || !values[v]
			values[v] = true
		}
		return news
	}
	for i, c := range in {
		if chosen[i] {
			learn(c)
		}
	}
	for i, c := range in {
		if !chosen[i] && len(values) < r.MinValues && learn(c) {
			chosen[i] = true
			added++
		}
	}
	return added, len(values) >= r.MinValues
}

func lowest(c Candidate) model.Price {
	low := c.Offerings[0].Price
	for _, o := range c.Offerings {
		low = min(low, o.Price)
	}
	return low
}
