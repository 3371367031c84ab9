package world

import (
	"maps"
	"slices"

	"karpenter/model"
)

// SetVolumeLimits takes in how many volumes of each driver a Node may attach.
// Drivers that are not among them have no limit; with nil, none has. The Node
// need not be known yet.
func (w *World) SetVolumeLimits(node string, limits map[string]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if maps.Equal(w.limits[node], limits) {
		return
	}
	w.limits[node] = limits
	if len(limits) == 0 {
		delete(w.limits, node)
	}
	w.touchHost(node)
}

// attached returns what the machine has attached, by driver that has a limit.
func (w *World) attached(m *machine) []model.Attached {
	if m.node == nil {
		return nil
	}
	limits := w.limits[m.node.Name]
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
