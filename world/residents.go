// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// resident is what equal residents of a node have in common.
type resident struct {
	peer        *peer
	anti        *shape // whose anti-affinity they have; nil = none
	terminating bool
}

// residents returns the pods of the machine that some selector is about, and
// those that keep others away. Pods that are pending because the machine is
// being removed are not among them. As long as they stay what they were, so does the
// slice.
func (w *World) residents(m *machine, was []model.Resident, now time.Time) []model.Resident {
	var counts map[resident]int
	for _, p := range w.podsOf(m) {
		r := resident{peer: p.group.peer, terminating: p.Terminating}
		if len(p.shape.anti) > 0 {
			r.anti = p.shape
		}
		if r.anti == nil && !r.peer.asked() {
			continue
		}
		if m.view.Deleting && p.leaves(now) {
			continue
		}
		if counts == nil {
			counts = map[resident]int{}
		}
		counts[r]++
	}
	kinds := make([]resident, 0, len(counts))
	for r := range counts {
		kinds = append(kinds, r)
	}
	if len(kinds) == 0 {
		m.kinds = nil
		return nil
	}
	slices.SortFunc(kinds, byResidence)
	if slices.Equal(kinds, m.kinds) && slices.EqualFunc(kinds, was, func(r resident, w model.Resident) bool { return counts[r] == w.Count }) {
		return was
	}
	m.kinds = kinds
	out := make([]model.Resident, len(kinds))
	for i, r := range kinds {
		out[i] = model.Resident{Terminating: r.terminating, Count: counts[r]}
		if r.peer != nil {
			out[i].Peer = r.peer.Peer
		}
		if r.anti != nil {
			out[i].Anti = r.anti.anti
		}
	}
	return out
}

func byResidence(a, b resident) int {
	text := func(r resident) (space, peer, anti string, terminating int) {
		if r.peer != nil {
			space, peer = r.peer.Namespace, r.peer.text
		}
		if r.anti != nil {
			anti = r.anti.Key
		}
		if r.terminating {
			terminating = 1
		}
		return space, peer, anti, terminating
	}
	spaceA, peerA, antiA, endsA := text(a)
	spaceB, peerB, antiB, endsB := text(b)
	return cmp.Or(strings.Compare(spaceA, spaceB), strings.Compare(peerA, peerB), strings.Compare(antiA, antiB), endsA-endsB)
}

func sortPorts(ports []model.HostPort) []model.HostPort {
	slices.SortFunc(ports, func(a, b model.HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Protocol, b.Protocol), strings.Compare(a.IP, b.IP))
	})
	return slices.Compact(ports)
}
