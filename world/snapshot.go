// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// Snapshot returns the cluster as it is known at the time. It is the caller's
// to read and to share. Times must not run backwards.
func (w *World) Snapshot(now time.Time) *model.Snapshot {
	w.mu.Lock()
	w.now = now
	forsaken := w.believe(now)
	defer w.notify(forsaken...)
	w.settle()
	w.learnLimits()
	w.refresh(now)
	w.learnDrivers(now)
	w.learnFeatures(now)
	w.unlearn(now)
	if w.learn(); len(w.touched) > 0 {
		w.refresh(now)
	}
	return w.answered(&model.Snapshot{
		Now:       now,
		WellKnown: w.wellKnown,
		Pools:     w.listStatic(w.listPools(now)),
		Nodes:     w.nodes,
		Daemons:   w.listDaemons(),
		Pending:   w.listPending(),
		Groups:    w.listPodGroups(),
		Resources: w.axis.Names(),
		Devices:   w.published[""],
	})
}

// refresh brings the views of all machines up to date, and w.nodes with them.
func (w *World) refresh(now time.Time) {
	for m := range w.timed {
		if !now.Before(m.until) {
			w.touch(m)
		}
	}
	changed := w.touched[:0]
	for _, m := range w.touched {
		if w.machines[m.id] != m {
			continue
		}
		name := m.view.Name
		w.look(m, now)
		w.moved = w.moved || m.view.Name != name
		changed = append(changed, m)
	}
	switch {
	case w.moved || w.nodes == nil:
		w.layOut()
	case len(changed) > 0:
		w.nodes = slices.Clone(w.nodes)
		for _, m := range changed {
			w.nodes[m.index] = m.view
		}
	}
	clear(w.touched)
	w.touched = w.touched[:0]
}

// layOut puts the views of all machines in order.
func (w *World) layOut() {
	order := slices.SortedFunc(maps.Values(w.machines), func(a, b *machine) int {
		return cmp.Or(strings.Compare(a.view.Name, b.view.Name), strings.Compare(a.id, b.id))
	})
	w.nodes, w.moved = make([]model.Node, len(order)), false
	for i, m := range order {
		m.index, w.nodes[i] = i, m.view
	}
}

// look makes the view of a machine. What stays the same in it stays the same
// slice.
func (w *World) look(m *machine, now time.Time) {
	if w.going[m] != m.deleting() {
		w.listed.pending = nil
	}
	w.exclude(m)
	m.stale = false
	was := m.view
	m.view = model.Node{
		Name: w.nameOf(m), Pool: m.label(model.LabelNodePool),
		Registered: m.registered(), Initialized: m.initialized(),
		Labels: w.labels(m), Taints: keep(was.Taints, m.taints()),
		Capacity: keep(was.Capacity, m.capacity()), Allocatable: keep(was.Allocatable, w.allocatable(m)),
		Price: w.price(m), Deleting: m.deleting(), Closed: len(m.twins) > 0,
	}
	v := &m.view
	if m.claim != nil {
		v.Claim, v.Template = m.claim.Name, m.claim.Template
		v.Reservation = w.reservation(m)
	}
	w.load(m, &was, now)
	w.disruption(m, now)
	w.include(m)
}

// load has the view of the machine, which was another before, say what its pods
// take.
func (w *World) load(m *machine, was *model.Node, now time.Time) {
	v := &m.view
	v.Disruption.Cost, v.Disruption.Empty = 1, true
	for _, p := range w.podsOf(m) {
		v.Requested = addTimes(v.Requested, p.Shape.Requests, 1)
		if w.leavesSoon(m, p, now) {
			v.Leaving = addTimes(v.Leaving, p.Shape.Requests, 1)
		}
		if p.Daemon {
			v.DaemonRequested = addTimes(v.DaemonRequested, p.Shape.Requests, 1)
		}
		if p.Reschedulable {
			cost := max(p.EvictionCost, 0)
			v.Disruption.Cost += cost
			v.Disruption.Startup += time.Duration(cost * float64(p.Startup))
			v.Disruption.Empty = false
		}
		v.HostPorts = append(v.HostPorts, p.Shape.HostPorts...)
		v.Stuck = v.Stuck || v.Deleting && p.keeps(now)
	}
	w.expected(m)
	v.Leaving = keep(was.Leaving, v.Leaving)
	v.Requested, v.DaemonRequested = keep(was.Requested, v.Requested), keep(was.DaemonRequested, v.DaemonRequested)
	v.HostPorts = keep(was.HostPorts, sortPorts(v.HostPorts))
	v.Attached = w.attached(m, now)
	v.Devices = w.devicesOf(m)
	w.observe(m)
	v.Residents = w.residents(m, was.Residents, now)
	if w.move(m, now); !v.Deleting {
		v.Movable = m.moves.list
	}
}

// keep returns was if it holds the same as now, which no caller has yet.
func keep[S ~[]T, T comparable](was, now S) S {
	if len(now) > 0 && slices.Equal(was, now) {
		return was
	}
	return now
}

// addTimes adds s times n to r, which no caller has yet.
func addTimes(r, s model.Resources, n int64) model.Resources {
	for len(r) < len(s) {
		r = append(r, 0)
	}
	for i, v := range s {
		r[i] += n * v
	}
	return r
}

func (w *World) podsOf(m *machine) []*pod {
	if m.node == nil {
		return nil
	}
	var out []*pod
	if h := w.hosts[m.node.Name]; h != nil {
		out = h.pods
	}
	for _, twin := range m.twins {
		if h := w.hosts[twin.Name]; h != nil {
			out = slices.Concat(out, h.pods)
		}
	}
	return out
}

// price returns what the machine costs, 0 when its offering is not known.
func (w *World) price(m *machine) model.Price {
	t, labels := w.typeOf(m), m.labels()
	if t == nil {
		return 0
	}
	for i := range t.Offerings {
		o := &t.Offerings[i]
		if o.Zone == labels[model.LabelZone] && o.CapacityType == labels[model.LabelCapacityType] {
			return o.Price
		}
	}
	return 0
}

// typeOf returns the instance type of the machine, nil if it is not known.
func (w *World) typeOf(m *machine) *model.InstanceType {
	labels := m.labels()
	for _, t := range w.types[labels[model.LabelNodePool]] {
		if t.Name == labels[model.LabelInstanceType] {
			return t
		}
	}
	return nil
}

// mayBe returns the types the machine may be of, one once it is launched. Of a type
// that its pool does not offer, only the name is known.
func (w *World) mayBe(m *machine) []*model.InstanceType {
	if m.launched() {
		if t := w.typeOf(m); t != nil {
			return []*model.InstanceType{t}
		}
		return []*model.InstanceType{{Name: m.label(model.LabelInstanceType)}}
	}
	allowed, ok := m.claim.Requirements.Get(model.LabelInstanceType)
	if !ok {
		return nil
	}
	var out []*model.InstanceType
	for _, t := range w.types[m.label(model.LabelNodePool)] {
		if allowed.Has(t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// reserve returns what the machine counts in its pool's limits. As long as
// no one knows what a claim becomes, it is the most it may become.
func (w *World) reserve(m *machine, capacity model.Resources) model.Resources {
	if m.launched() {
		return m.charged(capacity, w.typeOf(m))
	}
	out := capacity.Max(m.claim.Requests)
	allowed, ok := m.claim.Requirements.Get(model.LabelInstanceType)
	if !ok {
		return out
	}
	known := w.mayBe(m)
	for _, t := range known {
		out = out.Max(t.Capacity)
	}
	if len(known) < len(allowed.Values) { // the provider leaves some out for now
		out = out.Max(m.most)
	}
	m.most = out
	return out.With(model.Nodes, 1)
}
