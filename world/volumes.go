// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
	"time"

	"karpenter/model"
)

// usual is how many volumes of each driver nodes of a type can attach: the
// least that any of them says. A node does not say so itself before its drivers
// run, long after pods have been planned on it. It counts more than what the provider
// says of the type; see lessons.
type usual struct {
	byType map[string]map[string]int
	stale  bool
}

// NoVolumeLimit is the limit of a driver that runs on a Node and says none.
const NoVolumeLimit = -1

// SetVolumeLimits takes in how many volumes of each driver that runs on a Node it
// may attach. Drivers that are not among them have the limit of its instance
// type, if that has one; with nil, all of them. The Node need not be known yet.
func (w *World) SetVolumeLimits(node string, limits map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if maps.Equal(w.limits[node], limits) {
		return
	}
	w.limits[node], w.usual.stale = limits, true
	if len(limits) == 0 {
		delete(w.limits, node)
	}
	w.touchHost(node)
}

// learnLimits brings what is usual up to date, and has the machines looked at
// again that go by it.
func (w *World) learnLimits() {
	if !w.usual.stale {
		return
	}
	before := w.usual.byType
	w.usual = usual{byType: map[string]map[string]int{}}
	for node, limits := range w.limits {
		m := w.machines[w.nodeIDs[node]]
		if m == nil || m.node == nil {
			continue
		}
		name := m.node.Labels[model.LabelInstanceType]
		known := w.usual.byType[name]
		if known == nil {
			known = map[string]int{}
			w.usual.byType[name] = known
		}
		for driver, n := range limits {
			if n <= 0 { // no limit, or one that only this node can have
				continue
			}
			if least, ok := known[driver]; !ok || n < least {
				known[driver] = n
			}
		}
	}
	for _, some := range []map[string]map[string]int{before, w.usual.byType} {
		for name := range some {
			if !maps.Equal(before[name], w.usual.byType[name]) {
				w.forget(name)
			}
		}
	}
	for _, m := range w.machines {
		if m.initialized() {
			continue
		}
		for _, t := range w.mayBe(m) {
			if !maps.Equal(before[t.Name], w.usual.byType[t.Name]) {
				w.touch(m)
				break
			}
		}
	}
}

// volumeLimits returns how many volumes of each driver the machine may attach:
// what its drivers say, as long as it starts what is usual, else what its type
// says, and the least of that as long as it may become one of several types; none of
// a driver that it lacks.
func (w *World) volumeLimits(m *machine, now time.Time) map[string]int {
	limits := map[string]int{}
	for _, t := range w.mayBe(m) {
		said := map[string]int{}
		for _, l := range t.VolumeLimits {
			said[l.Driver] = l.Most
		}
		if !m.initialized() {
			maps.Copy(said, w.usual.byType[t.Name])
		}
		for driver, n := range said {
			if least, ok := limits[driver]; !ok || n < least {
				limits[driver] = n
			}
		}
	}
	if m.node != nil {
		maps.Copy(limits, w.limits[m.node.Name])
	}
	maps.DeleteFunc(limits, func(_ string, n int) bool { return n == NoVolumeLimit })
	for _, driver := range w.lacks(m, now) {
		limits[driver] = 0
	}
	return limits
}

// attached returns what the machine has attached, by driver that has a limit.
func (w *World) attached(m *machine, now time.Time) []model.Attached {
	limits := w.volumeLimits(m, now)
	if len(limits) == 0 {
		return nil
	}
	out := make([]model.Attached, 0, len(limits))
	for _, driver := range slices.Sorted(maps.Keys(limits)) {
		a := model.Attached{Driver: driver, Limit: limits[driver]}
		for _, p := range w.podsOf(m) {
			for _, v := range p.Shape.Volumes {
				if v.Driver == driver {
					a.Own += v.Own
					a.Shared = append(a.Shared, v.Shared...)
				}
			}
		}
		slices.Sort(a.Shared)
		a.Shared = slices.Compact(a.Shared)
		out = append(out, a)
	}
	return out
}
