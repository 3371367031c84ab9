// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"slices"
	"time"

	"karpenter/model"
)

// moves is the pods of a machine that need a place elsewhere when it is removed,
// and may go now, or any if the machine is sick: by group, and in each the oldest first.
type moves struct {
	groups []*group        // of list, in the order of Snapshots
	list   []model.Pending // handed out
}

// move finds the moves of the machine: of one that is being removed, or that may
// be removed. As long as they stay the same, so do the slices. It sees to it
// that the machine is looked at again when a protection ends.
func (w *World) move(m *machine, now time.Time) {
	pods := w.scratch[:0]
	if sick := m.sick(); sick || m.deleting() || m.claim != nil && m.initialized() {
		for _, p := range w.podsOf(m) {
			if p.leaves(now) || sick && p.Reschedulable {
				pods = append(pods, p)
			} else if p.Reschedulable && p.protected(now) {
				w.changesAt(m, p.ProtectedUntil)
			}
		}
	}
	w.scratch = pods
	slices.SortFunc(pods, byGroup)
	if w.stillMoves(&m.moves, pods) {
		return
	}
	m.moves = w.movesOf(pods)
	if m.deleting() {
		w.listed.pending = nil
	}
}

func byGroup(a, b *pod) int {
	if a.group != b.group {
		return byText(a.group, b.group)
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// stillMoves reports whether the moves are of the sorted pods.
func (w *World) stillMoves(v *moves, pods []*pod) bool {
	for i, g := range v.groups {
		for _, was := range v.list[i].Pods {
			if len(pods) == 0 || pods[0].group != g || w.model(pods[0]) != was {
				return false
			}
			pods = pods[1:]
		}
	}
	return len(pods) == 0
}

// movesOf makes moves of sorted pods.
func (w *World) movesOf(pods []*pod) moves {
	if len(pods) == 0 {
		return moves{}
	}
	kinds := 0
	for i, p := range pods {
		if i == 0 || p.group != pods[i-1].group {
			kinds++
		}
	}
	out := moves{groups: make([]*group, 0, kinds), list: make([]model.Pending, 0, kinds)}
	all := make([]model.Pod, len(pods))
	for i, p := range pods {
		all[i] = w.model(p)
	}
	for from := 0; from < len(pods); {
		g, to := pods[from].group, from+1
		for to < len(pods) && pods[to].group == g {
			to++
		}
		out.groups = append(out.groups, g)
		out.list = append(out.list, model.Pending{Shape: g.shape.Shape, Peer: g.seen(), Pods: all[from:to:to]})
		from = to
	}
	return out
}
