// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"karpenter/model"
)

// Charge turns devices into resources that pods with claims request and that nodes
// and types have, so that planning counts them like any other:
//
//   - for each set of claims, how many pods with it a node has devices for, others
//     not there;
//   - for each set of kinds that some request is content with, how many devices of
//     these kinds a node has, where pods with other claims can compete for them;
//   - there, for each capacity of devices that can be shared, and each counter, how
//     much of it a node has;
//   - of extended resources that devices serve, how many devices there are: see served.
//
// Both are necessary and not always sufficient: a Book is asked before pods are put
// on a node. Prices stay exact, and bounds on them true.
//
// What stays the same in a Snapshot stays the same here, so that what was compiled of
// it remains good. The zero value has nothing charged. It is not safe for concurrent
// use.
type Charge struct {
	*Book
	selectors []model.DeviceSelector
	base      int // position of the first axis
	axes      []axis
	kinds     []*model.DeviceKind // of nodes and types
	served    []served            // by name
	crew

	types  map[typeKey]*model.InstanceType
	lists  map[listKey][]*model.InstanceType
	shapes map[*model.Shape]*model.Shape
	plain  map[*model.Shape]*model.Shape // as they were, by what they became
	rooms  map[room]equipment
	pools  []model.Pool // of the Snapshot, as they became

	dealt  map[dealt]*model.Shape
	before map[*model.Shape]*model.Shape // as they were, by what they became when their pods got devices that are of no single node
}

// room is a node by what its room for pods with claims follows from.
type room struct {
	have, requested *int64
	devices         *model.DevicePool
	plugins         string
	daemons         string
}

// typeKey is an instance type in a pool whose nodes have plugins for these resources.
type typeKey struct {
	of      *model.InstanceType
	plugins string
	daemons string
}

// listKey is the first of a list of types, likewise.
type listKey struct {
	first   **model.InstanceType
	plugins string
	pool    string // "" = no daemon needs devices
}

// axis is a resource: one of the following.
type axis struct {
	name     string
	set      *Set             // pods with it
	kinds    []string         // devices of these: Keys, sorted
	capacity string           // of devices that can be shared
	counter  counterID        // of all pools, with
	uses     map[string]int64 // what a device uses of it at least, by the Key of its kind
}

func (a *axis) equal(b *axis) bool {
	return a.name == b.name && a.set == b.set && slices.Equal(a.kinds, b.kinds) && maps.Equal(a.uses, b.uses)
}

// Of returns the Snapshot with devices as resources; s itself if no pod has claims.
func (c *Charge) Of(s *model.Snapshot) *model.Snapshot {
	shapes := claiming(s)
	if len(shapes) == 0 {
		*c = Charge{}
		return s
	}
	c.consult(s)
	if len(s.Devices) > 0 {
		s = c.deal(s, shapes)
		if shapes = claiming(s); len(shapes) == 0 {
			c.axes, c.served, c.pools, c.base = nil, nil, nil, len(s.Resources)
			return s
		}
	}
	c.open(s, shapes)
	out := *s
	out.Resources = slices.Clone(s.Resources)
	for _, a := range c.axes {
		out.Resources = append(out.Resources, a.name)
	}
	shown := c.shown(s, c.served)
	out.Pools = slices.Clone(s.Pools)
	for i := range out.Pools {
		out.Pools[i].Types = c.list(&out.Pools[i], shown[out.Pools[i].Name])
	}
	c.pools = out.Pools
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		e := c.room(n, shown[n.Pool])
		n.Allocatable, n.Devices = e.resources, e.pools
		n.Movable = c.pending(n.Movable, nil)
	}
	out.Pending = c.pending(s.Pending, out.Nodes)
	if out.Selectors == nil {
		out.Selectors = []model.DeviceSelector{}
	}
	return &out
}

// claiming returns the shapes with claims, each once, in the order they are found.
func claiming(s *model.Snapshot) []*model.Shape {
	var out []*model.Shape
	seen := map[*model.Shape]bool{}
	add := func(all []model.Pending) {
		for i := range all {
			if shape := all[i].Shape; len(shape.Claims) > 0 && len(shape.Refused) == 0 && !seen[shape] {
				seen[shape] = true
				out = append(out, shape)
			}
		}
	}
	add(s.Pending)
	for i := range s.Nodes {
		if s.Selectors == nil { // nor do pods that run need devices
			break
		}
		add(s.Nodes[i].Movable)
	}
	return out
}

// consult has a book about the selectors, a new one unless they are those of before.
func (c *Charge) consult(s *model.Snapshot) {
	if c.Book == nil || !reflect.DeepEqual(c.selectors, s.Selectors) || c.Large() || len(c.dealt) > mostKept {
		*c = Charge{Book: NewBook(s.Selectors), selectors: s.Selectors, dealt: map[dealt]*model.Shape{}, before: map[*model.Shape]*model.Shape{}}
	}
}

// deal gives the pods that wait devices that are of no single node, if they need such,
// and rejects pods for which there are none. Pods that run keep theirs when they move;
// it is not known whether a claim that has both such devices and others could move.
func (c *Charge) deal(s *model.Snapshot, shapes []*model.Shape) *model.Snapshot {
	d := newDealer(c.Book, s)
	gets := map[*model.Shape]bool{}
	for _, shape := range shapes {
		if refusal(shape.Claims, c.Book) == "" && c.broken(shape, s.Nodes) == "" { // others are rejected as they are
			of := d.partsOf(try{Shape: shape})
			gets[shape] = of.common != nil || of.strays != nil || of.why != ""
		}
	}
	out := *s
	became := make([]map[*model.Shape][]model.Pod, len(s.Pending))
	order := make([][]*model.Shape, len(s.Pending))
	pods := inOrder(s.Pending, func(shape *model.Shape) bool { return gets[shape] })
	deals := make([]deal, len(pods))
	doomed := map[string]bool{}
	for again := true; again; {
		for i, at := range pods {
			deals[i] = d.deal(s.Pending[at[0]].Shape)
		}
		if again = condemn(s, pods, deals, doomed); again {
			dead := func(at [2]int) bool { return doomed[s.Pending[at[0]].Pods[at[1]].Group] }
			pods = append(slices.DeleteFunc(slices.Clone(pods), dead), slices.DeleteFunc(pods, func(at [2]int) bool { return !dead(at) })...)
			d = newDealer(c.Book, s)
		}
	}
	for i, at := range pods {
		p := &s.Pending[at[0]]
		shape := c.dealtShape(p.Shape, deals[i])
		if became[at[0]] == nil {
			became[at[0]] = map[*model.Shape][]model.Pod{}
		}
		if became[at[0]][shape] == nil {
			order[at[0]] = append(order[at[0]], shape)
		}
		became[at[0]][shape] = append(became[at[0]][shape], p.Pods[at[1]])
	}
	out.Pending = nil
	for i, p := range s.Pending {
		if order[i] == nil {
			out.Pending = append(out.Pending, p)
		}
		for _, shape := range order[i] {
			out.Pending = append(out.Pending, model.Pending{Shape: shape, Peer: p.Peer, Pods: became[i][shape]})
		}
	}
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		for j := range n.Movable {
			if shape := n.Movable[j].Shape; gets[shape] {
				of := d.partsOf(try{shape, true})
				if why := of.why; why != "" || of.common != nil {
					why = cmp.Or(why, claimNames(shape.Claims)+" (with devices of its node and devices that are of no single node, which is not planned again)")
					n.Movable = slices.Clone(n.Movable)
					n.Movable[j].Shape = c.dealtShape(shape, deal{why: why})
				}
			}
		}
	}
	return &out
}

// condemn adds the PodGroups of which too few pods got devices to start, and reports whether
// there are any. What their pods got is free for others: they come last.
func condemn(s *model.Snapshot, pods [][2]int, deals []deal, doomed map[string]bool) bool {
	can := map[string]int{}
	for i := range s.Pending {
		for j := range s.Pending[i].Pods {
			can[s.Pending[i].Pods[j].Group]++
		}
	}
	for i, at := range pods {
		if deals[i].why != "" || deals[i].lost {
			can[s.Pending[at[0]].Pods[at[1]].Group]--
		}
	}
	found := false
	for i := range s.Groups {
		if g := &s.Groups[i]; !doomed[g.Name] && can[g.Name] < g.MinCount-g.Running {
			doomed[g.Name], found = true, true
		}
	}
	return found
}

// dealtShape returns what the shape becomes for pods with such a deal.
func (c *Charge) dealtShape(s *model.Shape, of deal) *model.Shape {
	key := dealt{s, of.why}
	if of.why == "" {
		key.how = termsText(of.on)
	}
	out := c.dealt[key]
	if out == nil {
		copied := *s
		if out = &copied; of.why != "" {
			out.Refused = append(slices.Clone(s.Refused), of.why)
		} else {
			out.DeviceTerms, out.Claims = of.on, of.rest
		}
		out.Key += " " + key.how
		c.dealt[key], c.before[out] = out, s
	}
	return out
}

// open starts with the axes of the shapes, from scratch unless they are those of before.
func (c *Charge) open(s *model.Snapshot, shapes []*model.Shape) {
	c.kinds = kindsOf(s)
	axes, served := c.axesOf(shapes, s), servedOf(shapes, s.Resources)
	same := slices.EqualFunc(axes, c.axes, func(a, b axis) bool { return a.equal(&b) }) && reflect.DeepEqual(served, c.served)
	if !same || !sameDaemons(c.daemons, s.Daemons) || c.base != len(s.Resources) || len(c.shapes)+len(c.rooms)+len(c.types) > mostKept {
		c.axes, c.served, c.base = axes, served, len(s.Resources)
		c.types, c.lists = map[typeKey]*model.InstanceType{}, map[listKey][]*model.InstanceType{}
		c.shapes, c.plain = map[*model.Shape]*model.Shape{}, map[*model.Shape]*model.Shape{}
		c.rooms = map[room]equipment{}
	}
	c.crew = crew{s.Daemons, s.WellKnown}
}

// axesOf returns the axes for the shapes: a set's, in the order of shapes, then those
// of kinds that more than one set is content with.
func (c *Charge) axesOf(shapes []*model.Shape, s *model.Snapshot) []axis {
	var out, more []axis
	seen, counted := map[*Set]bool{}, map[string]bool{}
	for _, shape := range shapes {
		set := c.set(shape.Claims)
		if seen[set] {
			continue
		}
		seen[set] = true
		out = append(out, axis{set: set, name: fmt.Sprintf(axisName+"for %s (%d)", claimNames(shape.Claims), len(out)+1)})
		for i := range set.claims {
			for j := range set.claims[i].requests {
				keys := c.content(&set.claims[i].requests[j], c.kinds)
				if text := strings.Join(keys, "\n"); len(keys) > 0 && !counted[text] {
					counted[text] = true
					more = append(more, axis{kinds: keys, name: fmt.Sprintf(axisName+"of %d kinds (%d)", len(keys), len(more)+1)})
				}
			}
		}
	}
	if len(out) > 1 { // alone, a set has all that its own axis says
		out = append(append(out, more...), c.sharedAxes(s)...)
	}
	return out
}

// sharedAxes returns the axes of capacities and counters.
func (c *Charge) sharedAxes(s *model.Snapshot) []axis {
	var out []axis
	names := map[string]bool{}
	for _, k := range c.kinds {
		for _, has := range k.Capacity {
			if k.Shared && !names[has.Name] {
				names[has.Name] = true
				out = append(out, axis{capacity: has.Name, name: axisName + "with " + has.Name})
			}
		}
	}
	counters := map[counterID]map[string]int64{}
	eachPool(s, func(p *model.DevicePool) {
		for _, n := range p.Counters {
			if counters[counterID{n.Set, n.Name}] == nil {
				counters[counterID{n.Set, n.Name}] = map[string]int64{}
			}
		}
	})
	eachPool(s, func(p *model.DevicePool) {
		for i := range p.Devices {
			d := &p.Devices[i]
			for id, least := range counters {
				used := int64(0)
				for _, u := range d.Uses {
					if id == (counterID{u.Set, u.Name}) {
						used = u.Value
					}
				}
				if known, ok := least[d.Kind.Key]; !ok || used < known {
					least[d.Kind.Key] = used
				}
			}
		}
	})
	var more []axis
	for id, least := range counters {
		more = append(more, axis{counter: id, uses: least, name: axisName + "with counter " + id.set + "/" + id.name})
	}
	slices.SortFunc(more, func(a, b axis) int { return strings.Compare(a.name, b.name) })
	return append(out, more...)
}

// kindsOf returns the kinds of devices of nodes and types, by key.
func kindsOf(s *model.Snapshot) []*model.DeviceKind {
	known := map[string]*model.DeviceKind{}
	eachPool(s, func(p *model.DevicePool) {
		for i := range p.Devices {
			known[p.Devices[i].Kind.Key] = p.Devices[i].Kind
		}
	})
	out := make([]*model.DeviceKind, 0, len(known))
	for _, k := range known {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b *model.DeviceKind) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// content returns the Keys of the kinds that some way of the request is content
// with; none if there are nodes where the request uses no devices up.
func (c *Charge) content(r *request, kinds []*model.DeviceKind) []string {
	var out []string
	if r.resource != "" || slices.ContainsFunc(r.ways, func(w *way) bool { return w.Admin }) {
		return nil
	}
	for _, k := range kinds {
		if c.wants(r, k) {
			if k.Shared {
				return nil
			}
			out = append(out, k.Key)
		}
	}
	return out
}

// needs returns how much of an axis pods with the set request.
func (c *Charge) needs(set *Set, a *axis, kinds map[*request][]string) int64 {
	if a.set != nil {
		if a.set == set {
			return 1
		}
		return 0
	}
	n := int64(0)
	for i := range set.claims {
		if set.claims[i].Shared != "" { // the first of its pods takes devices, and others none
			continue
		}
		for j := range set.claims[i].requests {
			switch r := &set.claims[i].requests[j]; {
			case a.kinds == nil:
				n += c.takesOf(r, a)
			case len(kinds[r]) > 0 && within(kinds[r], a.kinds):
				n += int64(r.least())
			}
		}
	}
	return n
}

// takesOf returns how much of a capacity or a counter the request takes at least,
// however it is met.
func (c *Charge) takesOf(r *request, a *axis) int64 {
	least, some := int64(0), false
	for _, w := range r.ways {
		if w.Admin || r.resource != "" {
			return 0
		}
		for _, k := range c.kinds {
			if v, _ := c.judge(w.DeviceWay, k); v == yes {
				takes, ok := asked(k, w.Takes)
				if !ok {
					continue
				}
				if n := a.takenOf(k, takes) * int64(w.least()); !some || n < least {
					least, some = n, true
				}
			}
		}
	}
	return least
}

// takenOf returns how much of the axis a device of the kind takes at least, or a
// part of one that takes so much of its capacities.
func (a *axis) takenOf(k *model.DeviceKind, takes []int64) int64 {
	switch {
	case !k.Shared:
		return a.uses[k.Key]
	case a.capacity == "":
		return 0 // others may have charged the counters
	}
	for i := range k.Capacity {
		if k.Capacity[i].Name == a.capacity {
			return takes[i]
		}
	}
	return 0
}

// within reports whether all of some sorted keys are among others.
func within(keys, others []string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool { return !has(others, k) })
}

// stocked returns how much of the axes there is of the stock.
func (c *Charge) stocked(s *Stock) []int64 {
	out := make([]int64, len(c.axes))
	for i := range c.axes {
		a := &c.axes[i]
		if a.set != nil {
			out[i] = c.copies(s, a.set)
			continue
		}
		for n, id := range s.names {
			if id == a.counter {
				out[i] += max(s.start.left[n], 0)
			}
		}
		for d := range s.devices {
			switch k := s.devices[d].Kind; {
			case a.capacity != "" && k.Shared && !s.start.taken[d]:
				out[i] += s.start.spare(d, a.capacity)
			case s.start.free(d) && has(a.kinds, k.Key):
				out[i]++
			}
		}
	}
	return out
}

func (c *Charge) list(p *model.Pool, shown []bool) []*model.InstanceType {
	types := p.Types
	if len(types) == 0 {
		return types
	}
	key := listKey{&types[0], pluginsText(shown), c.hostText(p)}
	if known := c.lists[key]; len(known) == len(types) {
		return known
	}
	out := make([]*model.InstanceType, len(types))
	for i, t := range types {
		daemons := c.daemonsOf(p, t)
		key := typeKey{t, key.plugins, pluginsText(daemons)}
		if c.types[key] == nil {
			with := *t
			e := c.equip(t.Allocatable, nil, t.Devices, c.plugged(t.Allocatable, t.Devices, c.served, shown), daemons)
			with.Allocatable, with.Devices = e.resources, e.pools
			c.types[key] = &with
		}
		out[i] = c.types[key]
	}
	c.lists[key] = out
	return out
}

// equipment is what there is of resources and axes, and the devices behind it.
type equipment struct {
	resources model.Resources
	pools     []model.DevicePool
}

// equip returns what there is of the resources, of which so much is requested, and of
// the axes. Plugins says of each served resource whether a device plugin has it, and
// daemons of each DaemonSet whether its pod is still to come.
func (c *Charge) equip(have, requested model.Resources, pools []model.DevicePool, plugins, daemons []bool) equipment {
	for i, has := range plugins {
		if has {
			pools = append(slices.Clip(pools), model.DevicePool{Driver: plugin, Name: c.served[i].name})
		}
	}
	pools = c.without(c.Book, pools, daemons)
	s := c.stock(pools)
	out := make(model.Resources, c.base+len(c.axes))
	copy(out, have)
	for i, has := range plugins {
		if r := &c.served[i]; !has {
			out[r.at] = requested.At(r.at) + c.most(s, r)
		}
	}
	copy(out[c.base:], c.stocked(s))
	return equipment{out, pools}
}

func (c *Charge) room(n *model.Node, shown []bool) equipment {
	plugins := c.ofPlugins(n, c.served, shown)
	daemons := c.daemonsTo(n)
	key := room{plugins: pluginsText(plugins), daemons: pluginsText(daemons)}
	if len(n.Allocatable) > 0 {
		key.have = &n.Allocatable[0]
	}
	if len(n.Requested) > 0 && len(plugins) > 0 {
		key.requested = &n.Requested[0]
	}
	if len(n.Devices) > 0 {
		key.devices = &n.Devices[0]
	}
	if key.have == nil {
		return c.equip(n.Allocatable, n.Requested, n.Devices, plugins, daemons)
	}
	out, known := c.rooms[key]
	if !known {
		out = c.equip(n.Allocatable, n.Requested, n.Devices, plugins, daemons)
		c.rooms[key] = out
	}
	return out
}

// pending returns the pods with what they need of devices as requests. Pods that
// wait are rejected if the scheduler abandons them on one of the nodes.
func (c *Charge) pending(all []model.Pending, nodes []model.Node) []model.Pending {
	out := slices.Clone(all)
	for i := range out {
		if shape := out[i].Shape; len(shape.Claims) > 0 {
			out[i].Shape = c.shape(shape, nodes)
			for _, claim := range shape.Claims {
				if claim.Shared != "" {
					out[i].Peer.Labels = labelled(out[i].Peer.Labels, sharedLabel(claim.Shared))
				}
			}
		}
	}
	return out
}

// sharedLabel is the label that pods which share a claim without devices have here,
// so that they follow each other to the node where it gets some.
func sharedLabel(claim string) string { return "shared claim " + claim }

// labelled returns the labels with one more, in order.
func labelled(labels []model.Label, key string) []model.Label {
	i, _ := slices.BinarySearchFunc(labels, key, func(l model.Label, key string) int { return strings.Compare(l.Key, key) })
	return slices.Insert(slices.Clone(labels), i, model.Label{Key: key})
}

// sharedAndNear rejects pods that share a claim without devices and have pod affinity,
// which would be read together with what ties them to each other.
func sharedAndNear(s *model.Shape) string {
	i := slices.IndexFunc(s.Claims, func(c model.DeviceClaim) bool { return c.Shared != "" })
	if i < 0 || !slices.ContainsFunc(s.PodTerms, func(t model.PodTerm) bool { return !t.Anti && t.Weight == 0 }) {
		return ""
	}
	return fmt.Sprintf("claim %s (ResourceClaim %s, which pods share, has no devices yet, and is not planned together with pod affinity)", s.Claims[i].Name, s.Claims[i].Shared)
}

func (c *Charge) shape(s *model.Shape, nodes []model.Node) *model.Shape {
	why := refusal(s.Claims, c.Book)
	if why == "" {
		why = sharedAndNear(s)
	}
	if why == "" {
		why = c.broken(s, nodes)
	}
	if why != "" || len(s.Refused) > 0 {
		if why == "" {
			return s
		}
		refused := *s
		refused.Refused = append(slices.Clone(s.Refused), why)
		return &refused
	}
	if known := c.shapes[s]; known != nil {
		return known
	}
	set := c.set(s.Claims)
	kinds := map[*request][]string{}
	for i := range c.axes {
		if a := &c.axes[i]; a.set == nil {
			for j := range set.claims {
				for k := range set.claims[j].requests {
					r := &set.claims[j].requests[k]
					if _, known := kinds[r]; !known {
						kinds[r] = c.content(r, c.kinds)
					}
				}
			}
		}
	}
	copied := *s
	for i := range c.axes {
		if n := c.needs(set, &c.axes[i], kinds); n > 0 {
			copied.Requests = copied.Requests.With(c.base+i, n)
		}
	}
	for _, claim := range s.Claims {
		if claim.Shared != "" {
			copied.PodTerms = append(slices.Clip(copied.PodTerms), model.PodTerm{Key: model.LabelHostname, Select: model.PodSelector{
				ByNamespace: true, Labels: model.NewRequirements(model.NewRequirement(sharedLabel(claim.Shared), model.Exists)),
			}})
		}
	}
	c.shapes[s] = &copied
	c.plain[&copied] = s
	if before := c.before[s]; before != nil {
		c.plain[&copied] = before
	}
	return &copied
}

// broken says of which claim a selector fails on a device of a node that takes the
// pods: the scheduler abandons them then; "" = of none.
func (c *Charge) broken(s *model.Shape, nodes []model.Node) string {
	set := c.set(s.Claims)
	for i := range nodes {
		n := &nodes[i]
		if len(n.Devices) == 0 || n.Deleting || !n.Initialized {
			continue
		}
		stock := c.stock(n.Devices)
		for j := range stock.devices {
			for k := range set.claims {
				for _, r := range set.claims[k].requests {
					if stock.plugins[r.resource] {
						continue
					}
					for _, w := range r.ways {
						v, at := c.judge(w.DeviceWay, stock.devices[j].Kind)
						if v == fails && takes(n, s) {
							return fmt.Sprintf("claim %s (request %s: the selector %q fails on device %s of node %s, so the scheduler does not bind the pod)",
								set.claims[k].Name, w.name, w.Selectors[at], stock.devices[j].Name, n.Name)
						}
					}
				}
			}
		}
	}
	return ""
}

// Undo has the plan speak of resources and shapes as the Snapshot does. What devices
// serve is not requested of new nodes, which have nothing of it to allocate.
func (c *Charge) Undo(plan *model.Plan) {
	if c.Book == nil {
		return
	}
	plan.Restore(c.base, c.plain)
	plan.Restore(c.base, c.before)
	release(plan.Launches, c.pools, c.served)
	for i := range plan.Commands {
		release(plan.Commands[i].Launches, c.pools, c.served)
	}
}
