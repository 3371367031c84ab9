// SPDX-License-Identifier: Apache-2.0

package world

import "time"

const (
	// settled is how long after a pod was moved it is not moved again for what that
	// saves. What a replacement saves at least pays for it by then.
	settled = time.Hour
	// mourned is how long after a pod ended another one is taken for its successor.
	mourned = 5 * time.Minute
)

// ending is the end of a pod.
type ending struct {
	key   string // of its heirs
	at    time.Time
	moved bool // its node was being removed
}

// endings are those pods that have ended recently and have no successor yet, oldest
// first. Who succeeds whom is not written anywhere: of pods that may stand in for
// each other, the first to come is taken for the successor of the first to go. This
// is forgotten when the process ends; nodes that were launched for moved pods say so
// themselves.
type endings []ending

// ends notes that the pod is ending.
func (w *World) ends(p *pod) {
	if p.Terminal || p.Daemon || p.Buffer != "" || p.Node == "" {
		return
	}
	m := w.machines[w.nodeIDs[p.Node]]
	moved := m != nil && m.deleting()
	if !moved {
		w.lived(p)
	}
	w.ended = append(w.ended.since(w.now.Add(-mourned)), ending{key: heirKey(p), at: w.now, moved: moved})
}

// succeed has a new pod be the successor of one that has ended.
func (w *World) succeed(p *pod) {
	w.ended = w.ended.since(w.now.Add(-mourned))
	key := heirKey(p)
	for i, e := range w.ended {
		if e.key != key {
			continue
		}
		if e.moved {
			p.moved = e.at
		}
		w.ended = append(w.ended[:i:i], w.ended[i+1:]...)
		return
	}
}

// SetMoved says that the pod took the place of one that had to leave a node at the time,
// which happened before the World was made.
func (w *World) SetMoved(namespace, name string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[namespace+"/"+name]; p != nil {
		p.moved = at
		w.touchHost(p.Node)
	}
}

// since returns the endings after the time.
func (e endings) since(t time.Time) endings {
	for len(e) > 0 && !e[0].at.After(t) {
		e = e[1:]
	}
	return e
}

const (
	// moments is how soon a pod has to end for its room to count as free for pods
	// that would need a new node otherwise: no node comes sooner.
	moments = time.Minute
	// overdue is how long after its deadline a pod that is ending is believed to end
	// at any moment.
	overdue = 10 * time.Second
)

// leavesSoon reports whether the pod ends within moments. It sees to it that the
// machine is looked at again when that changes without an event.
func (w *World) leavesSoon(m *machine, p *pod, now time.Time) bool {
	if !p.Terminating || p.Daemon || p.Ends.IsZero() {
		return false
	}
	switch from, to := p.Ends.Add(-moments), p.Ends.Add(overdue); {
	case now.Before(from):
		w.changesAt(m, from)
		return false
	case now.Before(to):
		w.changesAt(m, to)
		return true
	}
	return false
}
