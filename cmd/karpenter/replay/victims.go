// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"math/bits"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// load is the pods of a run.
type load struct {
	pods    map[string]*pod // by UID
	current map[*demand]*pod
	instead map[*demand]*demand // whose pod ends when a demand ends, if it is not its own
}

// ending returns the demand whose pod ends when that of the demand does.
func (l *load) ending(d *demand) *demand { return cmp.Or(l.instead[d], d) }

// exchange ends the pod of the other demand when d ends. When the other demand ends, the pod that d would
// have ended ends.
func (l *load) exchange(d, other *demand) {
	for e, x := range l.instead {
		if x == other {
			l.instead[e] = l.ending(d)
			l.instead[d] = other
			return
		}
	}
	l.instead[d], l.instead[other] = other, l.ending(d)
}

// elect chooses the pod that the ReplicaSet deletes when the demand ends: the pod of the demand, unless the
// ReplicaSet deletes another one first, because the pods are on other nodes than in the recording.
func (r *run) elect(d *demand) {
	own := r.load.current[r.load.ending(d)]
	if own == nil || own.leaving {
		return
	}
	mates := map[string]int{} // of the ReplicaSet, by Node
	var all []*pod
	for _, e := range r.h.replicas[d.owner] {
		p := r.load.current[e]
		if p == nil || e.runs > 0 || e.pinned != "" || p.leaving && r.now.After(p.since.Add(atOnce)) {
			continue
		}
		mates[p.object.Spec.NodeName]++ // also those that it deletes with this one
		if !p.leaving {
			all = append(all, p)
		}
	}
	first := own
	for _, p := range all {
		if r.deletedBefore(p, first, mates) {
			first = p
		}
	}
	if first != own {
		r.load.exchange(d, first.demand)
	}
}

// deletedBefore reports whether a ReplicaSet that has too many pods deletes a before b: pods without a node, pods
// that are not ready, the lowest deletion cost, pods that share their Node with most others of the ReplicaSet, and pods
// that have been ready for less time come first. Times of the same power of two count as equal.
func (r *run) deletedBefore(a, b *pod, mates map[string]int) bool {
	flag := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	node := func(p *pod) string { return p.object.Spec.NodeName }
	return cmp.Or(
		cmp.Compare(flag(node(a) != ""), flag(node(b) != "")),
		cmp.Compare(flag(a.ready), flag(b.ready)),
		cmp.Compare(deletionCost(a.object), deletionCost(b.object)),
		cmp.Compare(mates[node(b)], mates[node(a)]),
		cmp.Compare(magnitude(r.now.Sub(a.since)), magnitude(r.now.Sub(b.since))),
	) < 0
}

func magnitude(d time.Duration) int { return bits.Len64(uint64(max(d, 0))) }

func deletionCost(p *corev1.Pod) int {
	n, err := strconv.Atoi(p.Annotations[corev1.PodDeletionCost])
	if err != nil {
		return 0
	}
	return n
}
