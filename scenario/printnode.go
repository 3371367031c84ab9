// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"

	"karpenter/model"
)

// node writes what its facts do not tell already.
func (p *printer) node(n *model.Node) {
	f := p.facts(n)
	d := f.defaults()
	parts := []string{option("pool", n.Pool, ""), option("claim", n.Claim, d.Claim), option("template", n.Template, d.Template)}
	if f.kind != nil {
		parts = append(parts, "type="+outer(f.ref))
	}
	parts = append(parts, option("zone", f.zone, ""), option("ct", f.ct, ""))
	parts = append(parts, standingWord(n), when(n.Deleting, "deleting"), when(n.Stuck, "stuck"), when(n.Closed, "closed"))
	labels, ok := beyond(d.Labels, n.Labels)
	if !ok {
		labels = n.Labels
	}
	parts = append(parts, when(!ok, "bare"))
	if len(labels) > 0 {
		parts = append(parts, "labels="+outer(requirements(labels)))
	}
	if !slices.Equal(n.Taints, d.Taints) {
		parts = append(parts, "taints="+outer(taints(n.Taints)))
	}
	parts = append(parts, p.room(n, d, f.kind != nil)...)
	parts = append(parts, p.guests(n)...)
	parts = append(parts, option("devices", nestedText(n.Devices), nestedText(d.Devices)))
	parts = append(parts, option("price", FormatPrice(n.Price), FormatPrice(d.Price)), option("reservation", n.Reservation, ""))
	parts = append(parts, p.disruption(n)...)
	p.line("node "+outerName(n.Name), parts...)
}

// standingWord says how far a node has come; none is all the way.
func standingWord(n *model.Node) string {
	switch {
	case n.Registered && n.Initialized:
		return ""
	case n.Registered:
		return "registered"
	case n.Initialized:
		return "unregistered"
	}
	return "in-flight"
}

// facts finds the type, zone and pool from which the node's other fields
// follow; whatever does not is written out.
func (p *printer) facts(n *model.Node) nodeFacts {
	f := nodeFacts{name: n.Name, poolName: n.Pool, registered: n.Registered, initialized: n.Initialized}
	f.zone, _ = n.Labels.Value(model.LabelZone)
	f.ct, _ = n.Labels.Value(model.LabelCapacityType)
	if i := slices.IndexFunc(p.s.Pools, func(o model.Pool) bool { return o.Name == n.Pool }); i >= 0 {
		f.pool = &p.s.Pools[i]
	}
	name, ok := n.Labels.Value(model.LabelInstanceType)
	if !ok {
		return f
	}
	candidates := p.order
	if f.pool != nil {
		candidates = slices.Concat(f.pool.Types, p.order)
	}
	i := slices.IndexFunc(candidates, func(t *model.InstanceType) bool { return t.Name == name })
	switch {
	case i < 0:
	case f.pool != nil && i >= len(f.pool.Types):
		f.ref, f.kind = p.refs[candidates[i]], candidates[i].With(f.pool.Extras)
	default:
		f.ref, f.kind = p.refs[candidates[i]], candidates[i]
	}
	return f
}

// room writes capacity, allocatable and what is taken of it.
func (p *printer) room(n *model.Node, d model.Node, typed bool) []string {
	parts := p.options(n.Capacity, d.Capacity)
	allocatable := usable(n.Capacity)
	if typed && n.Capacity.Equal(d.Capacity) {
		allocatable = d.Allocatable
	}
	if !n.Allocatable.Equal(allocatable) {
		parts = append(parts, "allocatable="+outer(p.list(n.Allocatable)))
	}
	if !n.Requested.Equal(requestedOn(n)) {
		parts = append(parts, "used="+outer(p.list(n.Requested)))
	}
	if !n.Leaving.IsZero() {
		parts = append(parts, "leaving="+outer(p.list(n.Leaving)))
	}
	if !n.DaemonRequested.IsZero() {
		parts = append(parts, "daemon-used="+outer(p.list(n.DaemonRequested)))
	}
	return parts
}

// guests writes what runs on the node and what that takes besides resources.
func (p *printer) guests(n *model.Node) []string {
	var usual []model.Resident
	if p.asked {
		usual = residentsOf(n)
	}
	parts := []string{
		option("runs", someOr(written(n.Residents, resident)), someOr(written(usual, resident))),
		option("ports", someOr(ports(n.HostPorts)), someOr(ports(portsOn(n)))),
	}
	if len(n.Attached) > 0 {
		parts = append(parts, "attached="+outer(written(n.Attached, attached)))
	}
	return parts
}

// someOr writes a list that may be empty.
func someOr(list string) string {
	if list == "" {
		return keywordNone
	}
	return list
}
