// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"karpenter/model"
)

// TestIndexAgreesWithSelectors asks about random pods on nodes that change, and compares
// the answers with those of every selector on every pod.
func TestIndexAgreesWithSelectors(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		var m Memory
		nodes := make([]model.Node, 1+rng.IntN(6))
		for i := range nodes {
			nodes[i] = model.Node{Name: fmt.Sprint("n", i), Registered: true}
		}
		for range 8 {
			for i := range nodes {
				if rng.IntN(3) == 0 {
					nodes[i].Residents = drawResidents(rng)
				}
			}
			if rng.IntN(4) == 0 && len(nodes) > 1 {
				nodes = nodes[:len(nodes)-1]
			}
			shape, peer := &model.Shape{PodTerms: drawTerms(rng)}, drawPeer(rng)
			if got, want := m.Apart(nodes, shape, &peer), apart(nodes, shape, &peer); !slices.Equal(got, want) {
				t.Fatalf("seed %d: pods %+v with %+v are kept from %v, and should be from %v", seed, peer, shape.PodTerms, got, want)
			}
			sel := drawSelector(rng)
			if got, want := m.Selected(nodes, &sel), selected(nodes, &sel); !slices.Equal(got, want) {
				t.Fatalf("seed %d: %+v selects pods on %v, and should on %v", seed, sel, got, want)
			}
		}
	}
}

func apart(nodes []model.Node, shape *model.Shape, peer *model.Peer) []bool {
	forbids := func(terms []model.PodTerm, p *model.Peer) bool {
		return slices.ContainsFunc(terms, func(t model.PodTerm) bool {
			return t.Anti && t.Weight == 0 && t.Key == model.LabelHostname && t.Select.Selects(p)
		})
	}
	out := make([]bool, len(nodes))
	for i := range nodes {
		out[i] = slices.ContainsFunc(nodes[i].Residents, func(r model.Resident) bool {
			return !r.Terminating && (forbids(shape.PodTerms, &r.Peer) || forbids(r.Anti, peer))
		})
	}
	return out
}

func selected(nodes []model.Node, s *model.PodSelector) []int {
	var out []int
	for i := range nodes {
		if slices.ContainsFunc(nodes[i].Residents, func(r model.Resident) bool { return !r.Terminating && s.Selects(&r.Peer) }) {
			out = append(out, i)
		}
	}
	return out
}

func drawResidents(rng *rand.Rand) []model.Resident {
	out := make([]model.Resident, rng.IntN(4))
	for i := range out {
		anti := slices.DeleteFunc(drawTerms(rng), func(t model.PodTerm) bool { return !t.Anti || t.Weight > 0 })
		out[i] = model.Resident{Peer: drawPeer(rng), Anti: anti, Terminating: rng.IntN(4) == 0, Count: 1}
	}
	return out
}

func drawPeer(rng *rand.Rand) model.Peer {
	p := model.Peer{Namespace: []string{"shop", "infra"}[rng.IntN(2)]}
	for _, key := range []string{"app", "tier"} {
		if rng.IntN(3) > 0 {
			p.Labels = append(p.Labels, model.Label{Key: key, Value: drawValue(rng)})
		}
	}
	return p
}

func drawValue(rng *rand.Rand) string { return []string{"", "db", "web"}[rng.IntN(3)] }

func drawTerms(rng *rand.Rand) []model.PodTerm {
	out := make([]model.PodTerm, rng.IntN(3))
	for i := range out {
		out[i] = model.PodTerm{
			Key: []string{model.LabelHostname, model.LabelZone}[rng.IntN(2)], Select: drawSelector(rng),
			Anti: rng.IntN(3) > 0, Weight: int32(rng.IntN(3) / 2),
		}
	}
	return out
}

func drawSelector(rng *rand.Rand) model.PodSelector {
	s := model.PodSelector{Namespaces: []string{"shop"}, ByNamespace: rng.IntN(3) == 0, Nothing: rng.IntN(10) == 0}
	for range rng.IntN(3) {
		op := []model.Operator{model.In, model.In, model.NotIn, model.Exists, model.DoesNotExist}[rng.IntN(5)]
		var values []string
		if op == model.In || op == model.NotIn {
			for range 1 + rng.IntN(2) {
				values = append(values, drawValue(rng))
			}
		}
		s.Labels = s.Labels.And(model.NewRequirement([]string{"app", "tier"}[rng.IntN(2)], op, values...))
	}
	return s
}

// TestLargeClustersAreNotForgotten sees a node with more different pods than are kept of
// those that are gone, again and again.
func TestLargeClustersAreNotForgotten(t *testing.T) {
	var m Memory
	node := model.Node{Name: "n", Registered: true}
	for i := range mostPeers + 1 {
		node.Residents = append(node.Residents, model.Resident{Peer: model.Peer{Labels: []model.Label{{Key: "app", Value: fmt.Sprint(i)}}}, Count: 1})
	}
	m.see([]model.Node{node})
	first := &m.sites[0].peers[0]
	for range 3 {
		m.see([]model.Node{node})
	}
	if &m.sites[0].peers[0] != first {
		t.Error("what was compiled of the pods was forgotten, although they are there")
	}
}
