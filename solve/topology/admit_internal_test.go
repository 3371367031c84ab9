// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"karpenter/model"
)

// TestHopelessMovesHaveNoOrder tries all orders of random moves of few pods: none lets in all of those that are
// hopeless. Most of those that no order lets in are known to be hopeless.
func TestHopelessMovesHaveNoOrder(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 3))
	found, impossible := 0, 0
	for range 3000 {
		s := drawZones(rng)
		var moves []Move
		for range 1 + rng.IntN(4) {
			moves = append(moves, Move{Kind: rng.IntN(len(s.Pending)), Site: rng.IntN(len(s.Nodes)), Pods: 1 + rng.IntN(2)})
		}
		var m Memory
		st := New(s, nil, &m)
		st.Final(rng.IntN(2) == 0)
		before := said(st)
		hopeless := st.hopeless(moves)
		if after := said(st); after != before {
			t.Fatalf("seed %d: to look for hope changed\n%s\nto\n%s", seed, before, after)
		}
		if st.someOrder(moves) {
			if hopeless {
				t.Fatalf("seed %d: there is an order for %+v of\n%s", seed, moves, before)
			}
			continue
		}
		if impossible++; hopeless {
			found++
		}
	}
	if found*2 < impossible {
		t.Errorf("seed %d: %d of %d moves that no order lets in are hopeless, and should be most", seed, found, impossible)
	}
}

// someOrder reports whether the pods of the moves can be added one by one in some order.
func (st *State) someOrder(moves []Move) bool {
	left := false
	for i := range moves {
		m := moves[i]
		if m.Pods == 0 {
			continue
		}
		left = true
		if !st.lets(m) {
			continue
		}
		st.one(m, 1)
		moves[i].Pods--
		ok := st.someOrder(moves)
		moves[i].Pods++
		st.one(m, -1)
		if ok {
			return true
		}
	}
	return !left
}

// drawZones draws nodes in zones, some with pods, and pods with rules to be placed.
func drawZones(rng *rand.Rand) *model.Snapshot {
	s := &model.Snapshot{}
	for i := range 2 + rng.IntN(4) {
		name := fmt.Sprint("n", i)
		n := model.Node{Name: name, Registered: true, Labels: model.LabelRequirements(map[string]string{model.LabelHostname: name, model.LabelZone: []string{"a", "b", "c"}[rng.IntN(3)]})}
		if rng.IntN(3) == 0 {
			n.Residents = drawResidents(rng)
		}
		s.Nodes = append(s.Nodes, n)
	}
	for range 1 + rng.IntN(3) {
		shape := &model.Shape{PodTerms: drawTerms(rng)}
		for range rng.IntN(3) {
			shape.Spread = append(shape.Spread, model.Spread{
				Key: []string{model.LabelZone, model.LabelHostname}[rng.IntN(2)], MaxSkew: 1 + rng.IntN(2), MinDomains: rng.IntN(4), Select: drawSelector(rng),
			})
		}
		s.Pending = append(s.Pending, model.Pending{Shape: shape, Peer: drawPeer(rng), Pods: make([]model.Pod, 3)})
	}
	return s
}
