// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"math/rand/v2"
	"slices"
	"testing"

	"karpenter/model"
)

// TestOrphanedKindsHaveNoPlace puts pods with random affinity on one node for as long as one more is let in:
// those that are orphaned never are, and all others are.
func TestOrphanedKindsHaveNoPlace(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 4))
	orphans, followers := 0, 0
	for range 3000 {
		s := drawZones(rng)
		for range rng.IntN(4) {
			s.Pending = append(s.Pending, model.Pending{Shape: &model.Shape{PodTerms: drawTerms(rng)}, Peer: drawPeer(rng), Pods: make([]model.Pod, 1)})
		}
		for i := range s.Nodes {
			s.Nodes[i].Residents = nil
		}
		for i := range s.Pending {
			shape := s.Pending[i].Shape
			shape.Spread = nil
			shape.PodTerms = slices.DeleteFunc(shape.PodTerms, func(term model.PodTerm) bool { return term.Anti })
		}
		var m Memory
		st := New(s, nil, &m)
		st.Hurry()
		orphaned := st.Orphaned()
		in := make([]bool, len(s.Pending))
		for changed := true; changed; {
			changed = false
			for kind := range in {
				if move := (Move{Kind: kind, Pods: 1}); !in[kind] && st.lets(move) {
					st.one(move, 1)
					in[kind], changed = true, true
				}
			}
		}
		for kind := range in {
			if in[kind] == orphaned[kind] {
				t.Fatalf("seed %d: pods of kind %d are let in: %t, and orphaned: %t, of\n%s", seed, kind, in[kind], orphaned[kind], said(st))
			}
			if orphaned[kind] {
				orphans++
			} else if st.Follows(kind) {
				followers++
			}
		}
	}
	if orphans < 100 || followers < 100 {
		t.Errorf("seed %d: %d kinds are orphaned and %d follow others; there should be many of both", seed, orphans, followers)
	}
}
