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
// going away are not among them.
func (w *World) residents(m *machine, now time.Time) []model.Resident {
	counts := map[resident]int{}
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
		if m.view.Deleting && p.protected(now) {
			w.changesAt(m, p.ProtectedUntil)
		}
		counts[r]++
	}
	if len(counts) == 0 {
		return nil
	}
	kinds := make([]resident, 0, len(counts))
	for r := range counts {
		kinds = append(kinds, r)
	}
	slices.SortFunc(kinds, byResidence)
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
