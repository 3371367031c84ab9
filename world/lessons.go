// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// lessons is what nodes have shown of what can be launched: it counts more than what the
// provider says.
type lessons struct {
	offered   map[string][]*model.InstanceType // what the provider says, by pool; offers.types has the rest as well
	devices   map[kindOfNode]lesson
	corrected map[kindOfNode]corrected
	forgotten map[string]bool // pools whose types are to be corrected again
}

// kindOfNode is an instance type of a pool.
type kindOfNode struct{ pool, name string }

// lesson is the devices that the node launched last has published.
type lesson struct {
	node    string
	created time.Time
	seen    time.Time          // when the node was last there
	said    []model.DevicePool // what the provider said then
	devices []model.DevicePool
}

// corrected is an instance type, and what it is with what has been learned of it.
type corrected struct{ of, with *model.InstanceType }

func newLessons() lessons {
	return lessons{
		offered: map[string][]*model.InstanceType{}, devices: map[kindOfNode]lesson{},
		corrected: map[kindOfNode]corrected{}, forgotten: map[string]bool{},
	}
}

// observe learns what nodes like the machine will publish from what it has published. Of
// several nodes the one launched last counts: what is launched next is most like it. So a
// driver that publishes less than was planned costs one launch.
func (w *World) observe(m *machine) {
	if m.claim == nil || m.node == nil || !m.initialized() {
		return
	}
	published := w.published[m.node.Name]
	if len(published) == 0 || slices.ContainsFunc(published, func(p model.DevicePool) bool { return p.Broken != "" }) {
		return
	}
	of := kindOfNode{m.label(model.LabelNodePool), m.label(model.LabelInstanceType)}
	known, taught := w.lessons.devices[of]
	if taught && cmp.Or(m.claim.Created.Compare(known.created), strings.Compare(m.node.Name, known.node)) < 0 {
		return
	}
	next := lesson{node: m.node.Name, created: m.claim.Created, seen: w.now, devices: w.template(published, m.node.Name, of.name)}
	same := taught && reflect.DeepEqual(known.devices, next.devices)
	if same && known.node == next.node && known.said != nil {
		return // if the provider has changed its mind since, that is newer
	}
	for _, t := range w.offered[of.pool] {
		if t.Name == of.name {
			next.said = t.Devices
		}
	}
	if !same || !reflect.DeepEqual(known.said, next.said) {
		w.forgotten[of.pool] = true
	}
	w.lessons.devices[of] = next
}

// unlearn drops lessons of nodes that went so long ago that the next node may be different, if
// an older node or the provider can say what it will have.
func (w *World) unlearn(now time.Time) {
	for of, l := range w.lessons.devices {
		if m := w.machines[w.nodeIDs[l.node]]; m != nil && m.claim != nil && m.claim.Created.Equal(l.created) {
			l.seen = now
			w.lessons.devices[of] = l
			continue
		}
		if now.Sub(l.seen) < unlikely {
			continue
		}
		var older []*machine
		for _, m := range w.machines {
			if m.claim != nil && m.node != nil && m.label(model.LabelNodePool) == of.pool && m.label(model.LabelInstanceType) == of.name && len(w.published[m.node.Name]) > 0 {
				older = append(older, m)
			}
		}
		if len(older)+len(l.said) == 0 && w.pools[of.pool] != nil {
			continue
		}
		delete(w.lessons.devices, of)
		w.forgotten[of.pool] = true
		for _, m := range older {
			w.observe(m)
		}
	}
}

// template returns what the pools of a node say of others of its type: nothing about its
// claims, the taints of its devices or a single piece of hardware.
func (w *World) template(published []model.DevicePool, node, name string) []model.DevicePool {
	out := make([]model.DevicePool, len(published))
	for i, p := range published {
		p.Name, p.InUse = strings.ReplaceAll(p.Name, node, name), nil
		p.Devices = slices.Clone(p.Devices)
		for j := range p.Devices {
			p.Devices[j].Kind, p.Devices[j].Taints = common(p.Devices[j].Kind), nil
		}
		out[i] = p
	}
	slices.SortStableFunc(out, byDriver)
	return out
}

func byDriver(a, b model.DevicePool) int {
	return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Name, b.Name))
}

// common returns the kind without attributes that name one piece of hardware.
func common(kind *model.DeviceKind) *model.DeviceKind {
	if !slices.ContainsFunc(kind.Attributes, unique) {
		return kind
	}
	out := *kind
	out.Attributes = slices.DeleteFunc(slices.Clone(kind.Attributes), unique)
	out.Key = ""
	out.Key = out.Identity()
	return &out
}

// unique reports whether no other device has the same value: so drivers call UUIDs, serial
// numbers and addresses.
func unique(a model.DeviceAttribute) bool {
	_, name, _ := strings.Cut(strings.ToLower(a.Name), "/")
	for _, s := range []string{"uuid", "guid", "serial", "serialnumber", "pcibusid", "pciaddress", "mac", "macaddress"} {
		if name == s {
			return true
		}
	}
	return false
}

// forget has the instance type corrected again in every pool that has it.
func (w *World) forget(name string) {
	for pool, types := range w.offered {
		if slices.ContainsFunc(types, func(t *model.InstanceType) bool { return t.Name == name }) {
			w.forgotten[pool] = true
		}
	}
}

// learn corrects the types of pools of which more is known than when it was last called.
func (w *World) learn() {
	if len(w.forgotten) == 0 {
		return
	}
	for pool := range w.forgotten {
		w.types[pool] = w.correct(pool)
		w.touchPool(pool)
	}
	clear(w.outlooks)
	clear(w.forgotten)
}

// correct returns the types of the pool with what has been learned of them. Types that stay
// what they were stay the same pointers.
func (w *World) correct(pool string) []*model.InstanceType {
	var out []*model.InstanceType
	for i, t := range w.offered[pool] {
		with := w.correctedType(kindOfNode{pool, t.Name}, t)
		if with != t && out == nil {
			out = slices.Clone(w.offered[pool])
		}
		if out != nil {
			out[i] = with
		}
	}
	if out == nil {
		return w.offered[pool]
	}
	return out
}

func (w *World) correctedType(kind kindOfNode, t *model.InstanceType) *model.InstanceType {
	known, taught := w.lessons.devices[kind]
	arch, _ := t.Requirements.Value(model.LabelArch)
	missing := w.missing[site{kind.pool, arch}]
	if !taught && len(w.usual.byType[t.Name])+len(missing) == 0 {
		delete(w.corrected, kind)
		return t
	}
	with := *t
	if taught && reflect.DeepEqual(known.said, t.Devices) {
		with.Devices = replace(t.Devices, known.devices)
	}
	limits := map[string]int{}
	for _, l := range t.VolumeLimits {
		limits[l.Driver] = l.Most
	}
	before := maps.Clone(limits)
	maps.Copy(limits, w.usual.byType[t.Name])
	for driver := range missing {
		limits[driver] = 0
	}
	if !maps.Equal(limits, before) {
		with.VolumeLimits = nil
		for _, driver := range slices.Sorted(maps.Keys(limits)) {
			with.VolumeLimits = append(with.VolumeLimits, model.VolumeLimit{Driver: driver, Most: limits[driver]})
		}
	}
	old := w.corrected[kind]
	switch {
	case reflect.DeepEqual(with.Devices, t.Devices) && slices.Equal(with.VolumeLimits, t.VolumeLimits):
		delete(w.corrected, kind)
		return t
	case old.of == t && reflect.DeepEqual(with.Devices, old.with.Devices) && slices.Equal(with.VolumeLimits, old.with.VolumeLimits):
		return old.with
	}
	w.corrected[kind] = corrected{t, &with}
	return &with
}

// replace returns the pools with those of the drivers that are in others from there.
func replace(pools, others []model.DevicePool) []model.DevicePool {
	out := slices.Clone(others)
	for _, p := range pools {
		if !slices.ContainsFunc(others, func(o model.DevicePool) bool { return o.Driver == p.Driver }) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, byDriver)
	return out
}

// FewerDevices says of which drivers the node of the claim has fewer devices than the provider
// says of its type, by driver. A driver that has published nothing, or not all, is not one
// of them.
func (w *World) FewerDevices(claim string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.machines[w.claimIDs[claim]]
	if m == nil || m.node == nil {
		return nil
	}
	said, published := map[string]int{}, map[string]int{}
	for _, t := range w.offered[m.label(model.LabelNodePool)] {
		if t.Name == m.label(model.LabelInstanceType) {
			tallyDevices(said, t.Devices)
		}
	}
	tallyDevices(published, w.published[m.node.Name])
	var out []string
	for _, driver := range slices.Sorted(maps.Keys(published)) {
		broken := slices.ContainsFunc(w.published[m.node.Name], func(p model.DevicePool) bool { return p.Driver == driver && p.Broken != "" })
		if n := published[driver]; n < said[driver] && !broken {
			out = append(out, fmt.Sprintf("expected %d devices of driver %s, but found %d", said[driver], driver, n))
		}
	}
	return out
}

// tallyDevices adds the number of devices of each driver.
func tallyDevices(to map[string]int, pools []model.DevicePool) {
	for _, p := range pools {
		to[p.Driver] += len(p.Devices)
	}
}
