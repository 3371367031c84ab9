// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// nodeFacts are what a node is known by; most else about it follows.
type nodeFacts struct {
	name, poolName          string
	zone, ct                string
	registered, initialized bool
	ref                     string              // how its type is called
	kind                    *model.InstanceType // as the pool has it; nil = not said
	pool                    *model.Pool         // nil = not in the situation
}

// defaults are what a node is unless its line says otherwise.
func (f nodeFacts) defaults() model.Node {
	n := model.Node{Name: f.name, Registered: f.registered, Initialized: f.initialized}
	n.Capacity = machine()
	if f.kind != nil {
		n.Labels = pinned(f.kind.Requirements)
		n.Capacity, n.Allocatable, n.Devices = f.kind.Capacity, f.kind.Allocatable, f.kind.Devices
	}
	if f.pool != nil {
		n.Taints, n.Template = f.pool.Taints, f.pool.Template
		n.Labels = over(n.Labels, pinned(f.pool.Requirements))
	}
	if f.poolName != "" {
		n.Pool, n.Claim = f.poolName, f.name
	}
	n.Labels = over(n.Labels, model.LabelRequirements(f.labels()))
	n.Price = f.price()
	return n
}

// labels are those the facts themselves put on the node.
func (f nodeFacts) labels() map[string]string {
	out := map[string]string{}
	if f.poolName != "" {
		out[model.LabelNodePool] = f.poolName
		if f.registered {
			out[model.LabelRegistered] = "true"
		}
		if f.initialized {
			out[model.LabelInitialized] = "true"
		}
	}
	if f.registered {
		out[model.LabelHostname] = f.name
	}
	if f.zone != "" {
		out[model.LabelZone] = f.zone
	}
	if f.ct != "" {
		out[model.LabelCapacityType] = f.ct
	}
	return out
}

// price is that of the offering the node was bought as.
func (f nodeFacts) price() model.Price {
	if f.kind == nil {
		return 0
	}
	for _, o := range f.kind.Offerings {
		if o.Zone == f.zone && o.CapacityType == f.ct {
			return o.Price
		}
	}
	return 0
}

func (b *builder) node(d *directive) error {
	f := nodeFacts{name: d.name("the name of the node"), registered: true, initialized: true}
	switch {
	case d.flag("in-flight"):
		f.registered, f.initialized = false, false
	case d.flag("registered"):
		f.initialized = false
	case d.flag("unregistered"): // no machine is like this; a faithful dump may be
		f.registered = false
	}
	f.poolName = d.text("pool", "")
	f.pool = b.poolNamed(f.poolName)
	if ref, ok := d.take("type"); ok {
		if found := b.match(atom{text: ref, literal: true}); len(found) > 0 {
			f.kind = found[0]
			if f.pool != nil {
				f.kind = f.kind.With(f.pool.Extras)
			}
		} else {
			d.fail(fmt.Errorf("there is no type %s", ref))
		}
	}
	f.zone, f.ct = d.text("zone", ""), d.text("ct", "")
	n := f.defaults()
	n.Claim, n.Template = d.text("claim", n.Claim), d.text("template", n.Template)
	if d.flag("bare") {
		n.Labels = nil
	}
	n.Labels = over(n.Labels, read(d, "labels", nil, parseRequirements))
	n.Taints = read(d, "taints", n.Taints, parseTaints)
	says := b.nodeRoom(d, f, &n)
	says.runs, says.ports = d.has("runs"), d.has("ports")
	n.Residents = read(d, "runs", nil, each(residentOf))
	n.HostPorts = read(d, "ports", nil, parsePorts)
	n.Attached = read(d, "attached", nil, each(attachedOf))
	if d.has("devices") {
		n.Devices = nestedList[model.DevicePool](b, d, "devices")
	}
	n.Devices = b.uses(d, n.Devices)
	n.Price = read(d, "price", n.Price, ParsePrice)
	n.Reservation = d.text("reservation", "")
	n.Deleting, n.Stuck, n.Closed = d.flag("deleting"), d.flag("stuck"), d.flag("closed")
	n.Disruption = b.nodeDisruption(d, &says)
	if _, known := b.byName[n.Name]; known {
		d.fail(fmt.Errorf("%s is described twice", n.Name))
	}
	b.byName[n.Name] = len(b.s.Nodes)
	b.s.Nodes, b.nodes = append(b.s.Nodes, n), append(b.nodes, says)
	return d.done("pool= type= zone= ct= claim= labels= taints= price= reservation=, cpu= mem= pods= or allocatable= overhead=, " +
		"used= or free=, daemon-used=, runs= ports= attached= devices= in-use=, together= blocked= held= drifted= advised= quiet= template= disruption-cost=, " +
		"and the words in-flight registered deleting stuck closed empty consolidatable settling fresh returned drifted deadline bare")
}

// nodeRoom reads what the node has and what is taken of it.
func (b *builder) nodeRoom(d *directive, f nodeFacts, n *model.Node) (says said) {
	capacity := d.quantities(b.axis, n.Capacity)
	allocatable := n.Allocatable
	if f.kind == nil || !capacity.Equal(n.Capacity) {
		allocatable = usable(capacity)
	}
	n.Capacity, n.Allocatable = capacity, b.allocatable(d, capacity, allocatable)
	none := func(v string) (model.Resources, error) { return b.parse(nil, v) }
	n.DaemonRequested = read(d, "daemon-used", nil, none)
	n.Leaving = read(d, "leaving", nil, none)
	says.used = d.has("used")
	n.Requested = read(d, "used", nil, none)
	if says.used && d.has("free") {
		d.fail(fmt.Errorf("used= and free= are two ways to say one thing"))
	}
	says.free = read(d, "free", nil, b.entries)
	return says
}

func (b *builder) poolNamed(name string) *model.Pool {
	i := slices.IndexFunc(b.s.Pools, func(p model.Pool) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &b.s.Pools[i]
}
