// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// typeDef is an instance type being described. The reference is the word
// behind type; two pools may have different types of one name.
type typeDef struct {
	model.InstanceType
	ref      string
	arch, os []string
	bare     bool
	explicit model.Requirements
}

func (b *builder) instanceType(d *directive) error {
	t := &typeDef{ref: d.name("the name of the type"), bare: d.flag("bare")}
	t.Name = d.text("name", t.ref)
	t.arch = read(d, "arch", []string{"amd64"}, names)
	t.os = read(d, "os", []string{"linux"}, names)
	t.explicit = read(d, "requires", nil, parseRequirements).And(read(d, "labels", nil, parseRequirements)...)
	t.Capacity = d.quantities(b.axis, machine())
	t.Allocatable = b.allocatable(d, t.Capacity, usable(t.Capacity))
	t.Offerings = readOfferings(d)
	t.VolumeLimits = read(d, "volumes", nil, each(volumeLimitOf))
	t.Devices = nestedList[model.DevicePool](b, d, "devices")
	if len(b.match(atom{text: t.ref, literal: true})) > 0 {
		d.fail(fmt.Errorf("%s is described twice", t.ref))
	}
	b.types = append(b.types, t)
	return d.done("cpu= mem= pods= and other resources, overhead= or allocatable=, zones= spot= on-demand= by=ct, " +
		"volumes= devices= arch= os= labels= requires= name= and bare")
}

// machine is the capacity that every type and node has unless it says
// otherwise: one node, and the pods a kubelet takes by default.
func machine() model.Resources {
	return model.Resources{}.With(model.Pods, 110).With(model.Nodes, 1)
}

// usable is what pods can use of a capacity when nothing is set aside.
func usable(capacity model.Resources) model.Resources { return capacity.With(model.Nodes, 0) }

// allocatable reads allocatable=, or overhead= to take from the capacity.
func (b *builder) allocatable(d *directive, capacity, fallback model.Resources) model.Resources {
	none := func(v string) (model.Resources, error) { return b.parse(nil, v) }
	if o := read(d, "overhead", nil, none); o != nil {
		fallback = usable(capacity).Minus(o)
	}
	return read(d, "allocatable", fallback, none)
}

// settle completes the requirements once all offerings are known.
func (t *typeDef) settle() {
	t.Requirements = over(t.defaults(), t.explicit)
}

// defaults are the labels every type has: its name, arch, os, and where and
// how it can be bought.
func (t *typeDef) defaults() model.Requirements {
	if t.bare {
		return nil
	}
	var zones, cts []string
	for _, o := range t.Offerings {
		zones, cts = append(zones, o.Zone), append(cts, o.CapacityType)
	}
	var out model.Requirements
	for _, r := range []model.Requirement{
		model.NewRequirement(model.LabelInstanceType, model.In, t.Name),
		model.NewRequirement(model.LabelArch, model.In, t.arch...),
		model.NewRequirement(model.LabelOS, model.In, t.os...),
		model.NewRequirement(model.LabelZone, model.In, zones...),
		model.NewRequirement(model.LabelCapacityType, model.In, cts...),
	} {
		if len(r.Values) > 0 {
			out = out.And(r)
		}
	}
	return out
}

// offer reads "offer m.large a spot 0.03", one offering in full.
func (b *builder) offer(d *directive) error {
	const form = "a type, zone, capacity type and price, as in offer m.large a spot 0.03"
	ref, zone, ct, price := d.name(form), d.name(form), d.name(form), d.name(form)
	o := offering(zone, ct)
	o.Available, o.Full = !d.flag("unavailable"), d.flag("full")
	o.ReservationID = d.text("reservation", "")
	o.ReservationLeft = int64(read(d, "left", 0, parseWhole))
	if d.flag("bare") {
		o.Requirements = nil
	}
	o.Requirements = over(o.Requirements, read(d, "labels", nil, parseRequirements))
	if d.err == nil {
		var err error
		o.Price, err = parseOffered(price)
		d.fail(err)
	}
	i := slices.IndexFunc(b.types, func(t *typeDef) bool { return t.ref == ref })
	if i < 0 {
		d.fail(fmt.Errorf("there is no type %s", ref))
	} else {
		b.types[i].Offerings = append(b.types[i].Offerings, o)
	}
	return d.done("unavailable reservation= left= labels= bare")
}

// offering is an available offering with the labels every one has.
func offering(zone, ct string) model.Offering {
	return model.Offering{Zone: zone, CapacityType: ct, Available: true, Requirements: model.NewRequirements(
		model.NewRequirement(model.LabelZone, model.In, zone),
		model.NewRequirement(model.LabelCapacityType, model.In, ct))}
}

// quote is what spot= or on-demand= says about a zone; the zone * is any.
type quote struct {
	zone      string
	every     bool
	price     model.Price
	available bool
}

// parseQuotes reads "0.03", "a:0.03,b:0.031!" or "0.03,b:0.04": a price, or
// one per zone; an exclamation mark says that there is none to be had.
func parseQuotes(value string) ([]quote, error) {
	parts, err := list(value)
	if err != nil {
		return nil, err
	}
	var out []quote
	for _, p := range parts {
		q := quote{available: true, every: true}
		if n := len(p); n > 0 && p[n-1].sign == '!' {
			q.available, p = false, p[:n-1]
		}
		if len(p) == 3 && p[0].sign == 0 && p[1].sign == ':' {
			q.zone, q.every, p = p[0].text, false, p[2:]
		}
		if len(p) != 1 || p[0].sign != 0 {
			return nil, fmt.Errorf("invalid price %q; write 0.03, a:0.03,b:0.04 per zone, 0.03! for one that is not available", value)
		}
		if q.price, err = parseOffered(p[0].text); err != nil {
			return nil, err
		}
		out = append(out, q)
	}
	return out, nil
}

// readOfferings expands zones=, spot= and on-demand=: zone by zone, or with
// by=ct capacity type by capacity type.
func readOfferings(d *directive) []model.Offering {
	zones := read(d, "zones", nil, names)
	var cts []string
	quotes := map[string][]quote{}
	for _, o := range slices.Clone(d.options) {
		if o.key == model.Spot || o.key == model.OnDemand {
			cts = append(cts, o.key)
			quotes[o.key] = read(d, o.key, nil, parseQuotes)
			for _, q := range quotes[o.key] {
				if !q.every && !slices.Contains(zones, q.zone) {
					zones = append(zones, q.zone)
				}
			}
		}
	}
	var out []model.Offering
	add := func(zone, ct string) {
		if q, ok := quoteFor(quotes[ct], zone); ok {
			o := offering(zone, ct)
			o.Price, o.Available = q.price, q.available
			out = append(out, o)
		}
	}
	if d.text("by", "zone") == "ct" {
		for _, ct := range cts {
			for _, z := range zones {
				add(z, ct)
			}
		}
		return out
	}
	for _, z := range zones {
		for _, ct := range cts {
			add(z, ct)
		}
	}
	return out
}

// quoteFor picks the quote of a zone; one that names it wins.
func quoteFor(quotes []quote, zone string) (best quote, found bool) {
	for _, q := range quotes {
		if (q.every && !found) || (!q.every && q.zone == zone) {
			best, found = q, true
		}
	}
	return best, found
}
