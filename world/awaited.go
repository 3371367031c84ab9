// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"time"
)

// disbelief is how long a pod can wait for a node to which the scheduler has nominated it and
// where it can not run, before another node is planned for it. The scheduler needs a moment
// to tell victims of preemption to leave, or to clear the field.
const disbelief = 30 * time.Second

// awaits reports whether the pod counts on the node that its status names on behalf of the
// scheduler.
func (p *pod) awaits() bool { return p.Awaits != "" && p.Node == "" && !p.Terminal && !p.forsaken }

// asks reports whether the pod needs a place, and has none.
func (p *pod) asks() bool { return p.Pending && p.Node == "" && !p.awaits() }

// expect enters the pod at the node that it awaits.
func (w *World) expect(p *pod) {
	if p.Awaits == "" || p.Node != "" || p.Terminal {
		return
	}
	if w.awaited[p.Awaits] == nil {
		w.awaited[p.Awaits] = map[string]*pod{}
	}
	w.awaited[p.Awaits][p.key] = p
	w.touchHost(p.Awaits)
}

// unexpect undoes expect.
func (w *World) unexpect(p *pod) {
	if w.awaited[p.Awaits][p.key] == nil {
		return
	}
	if delete(w.awaited[p.Awaits], p.key); len(w.awaited[p.Awaits]) == 0 {
		delete(w.awaited, p.Awaits)
	}
	w.touchHost(p.Awaits)
}

// believe decides which nominations still count, and returns the UIDs of pods that need another
// place from now on, sorted.
func (w *World) believe(now time.Time) []string {
	var out []string
	for node, waiting := range w.awaited {
		for _, p := range waiting {
			switch {
			case w.canRun(p, node):
				p.doubted = time.Time{}
				w.forsake(p, false)
			case p.doubted.IsZero():
				p.doubted = now
			case now.Sub(p.doubted) >= disbelief && !p.forsaken:
				w.forsake(p, true)
				if p.asks() {
					out = append(out, p.UID)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// forsake has the pod count on the node that it awaits no more, or again.
func (w *World) forsake(p *pod, is bool) {
	if p.forsaken == is {
		return
	}
	asked := p.asks()
	p.forsaken = is
	switch {
	case p.asks() && !asked:
		w.await(p)
	case !p.asks() && asked:
		w.unwait(p, p.group)
		w.unplan(p.UID)
	}
	if p.Group != "" {
		w.listed.podGroups = nil
	}
	w.touchHost(p.Awaits)
}

// canRun reports whether the node exists, stays and has the capacity for the pod once
// pods that are ending are gone.
func (w *World) canRun(p *pod, node string) bool {
	m := w.machines[w.nodeIDs[node]]
	if m == nil || m.deleting() || m.node.Deleting {
		return false
	}
	need := slices.Clone(p.Shape.Requests)
	for _, o := range w.podsOf(m) {
		if !o.Terminating {
			need = addTimes(need, o.Shape.Requests, 1)
		}
	}
	have := w.allocatable(m)
	for i, n := range need {
		if n > have.At(i) && p.Shape.Requests.At(i) > 0 {
			return false
		}
	}
	return true
}

// expected adds to the view of the machine the pods that the scheduler has nominated for it.
func (w *World) expected(m *machine) {
	if m.node == nil {
		return
	}
	for _, p := range w.awaited[m.node.Name] {
		if p.awaits() {
			m.view.Requested = addTimes(m.view.Requested, p.Shape.Requests, 1)
			m.view.HostPorts = append(m.view.HostPorts, p.Shape.HostPorts...)
			m.view.Disruption.Empty = false
		}
	}
}

// nominee reports whether a pod counts on the machine.
func (w *World) nominee(m *machine) bool {
	for _, p := range w.awaited[m.node.Name] {
		if p.awaits() {
			return true
		}
	}
	return false
}
