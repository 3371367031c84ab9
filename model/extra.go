// SPDX-License-Identifier: Apache-2.0

package model

// Extra is one part of what a node costs besides its instance: a volume, an
// address, an agent that is billed per node.
type Extra struct {
	Name  string // for people: "/dev/xvda gp3: 20 GiB"
	Price Price  // per hour; not negative
	VCPU  bool   // Price is for each vCPU
	Zone  string // only nodes in it have the part; "" = all nodes
}

// Of returns the price of the part for a node with so many millicores in the
// zone.
func (e Extra) Of(milliCPU int64, zone string) Price {
	switch {
	case e.Zone != "" && e.Zone != zone:
		return 0
	case e.VCPU:
		return e.Price * Price(milliCPU) / 1000
	}
	return e.Price
}

// Extras returns what a node with so many millicores in the zone costs besides
// its instance.
func Extras(parts []Extra, milliCPU int64, zone string) Price {
	var sum Price
	for _, e := range parts {
		sum += e.Of(milliCPU, zone)
	}
	return sum
}

// NodePrice returns the price of a node: that of its instance, and extra. An
// offering that has no price and cannot be launched keeps none.
func NodePrice(instance, extra Price, available bool) Price {
	if instance == 0 && !available {
		return 0
	}
	return instance + extra
}

// With returns the type with the parts added to the price of each offering: t
// itself if there are none.
func (t *InstanceType) With(parts []Extra) *InstanceType { return t.reprice(parts, NodePrice) }

// Without undoes With.
func (t *InstanceType) Without(parts []Extra) *InstanceType {
	return t.reprice(parts, func(node, extra Price, _ bool) Price { return InstancePrice(node, extra) })
}

// InstancePrice undoes NodePrice: it returns the price of the instance of a node.
func InstancePrice(node, extra Price) Price {
	if node == 0 {
		return 0
	}
	return node - extra
}

func (t *InstanceType) reprice(parts []Extra, price func(was, extra Price, available bool) Price) *InstanceType {
	if len(parts) == 0 {
		return t
	}
	out := *t
	out.Offerings = make([]Offering, len(t.Offerings))
	for i, o := range t.Offerings {
		o.Price = price(o.Price, Extras(parts, t.Capacity.At(CPU), o.Zone), o.Available)
		out.Offerings[i] = o
	}
	return &out
}

// PartInstance is the name of the part of a price that is for the instance.
const PartInstance = "instance"

// Part is one part of the price of a node, for people.
type Part struct {
	Name  string
	Price Price // per hour
}

// Parts returns the parts of a price that has extras: the instance first. It
// returns nil for a price without extras, or one that is not known.
func (p *Pool) Parts(node Price, milliCPU int64, zone string) []Part {
	out := []Part{{Name: PartInstance, Price: node}}
	for _, e := range p.Extras {
		if price := e.Of(milliCPU, zone); price != 0 {
			out = append(out, Part{e.Name, price})
			out[0].Price -= price
		}
	}
	if node == 0 || len(out) == 1 {
		return nil
	}
	return out
}
