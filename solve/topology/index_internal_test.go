// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

// TestWarmMemoryCompilesTheSame compiles random pods on nodes that change, with what is known
// of earlier ones and without: what the rules say and what it took is the same.
func TestWarmMemoryCompilesTheSame(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 100 {
		var m Memory
		nodes := make([]model.Node, 1+rng.IntN(6))
		for range 8 {
			for len(nodes) < 1+rng.IntN(6) {
				nodes = append(nodes, model.Node{})
			}
			nodes = slices.Clone(nodes[:1+rng.IntN(len(nodes))])
			for i := range nodes {
				nodes[i].Name, nodes[i].Registered = fmt.Sprint("n", i), true
				nodes[i].Labels = model.LabelRequirements(map[string]string{model.LabelHostname: nodes[i].Name, model.LabelZone: []string{"a", "b"}[i%2]})
				if rng.IntN(2) == 0 {
					nodes[i].Residents = drawResidents(rng)
				}
			}
			s := &model.Snapshot{Nodes: nodes}
			for range rng.IntN(4) {
				shape := &model.Shape{PodTerms: drawTerms(rng)}
				if rng.IntN(2) == 0 {
					shape.Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1, Select: drawSelector(rng), Soft: rng.IntN(3) == 0}}
				}
				if rng.IntN(6) == 0 {
					shape.Refused = []string{"a part of the spec"}
				}
				s.Pending = append(s.Pending, model.Pending{Shape: shape, Peer: drawPeer(rng), Pods: make([]model.Pod, rng.IntN(3))})
			}
			if rng.IntN(5) == 0 {
				m.see(nil)
			}
			if rng.IntN(5) == 0 {
				m.most = m.size() / 2
			}
			var fresh Memory
			if got, want := said(New(s, nil, &m)), said(New(s, nil, &fresh)); got != want {
				t.Fatalf("seed %d: with what was known\n%s\nand without\n%s", seed, got, want)
			}
		}
	}
}

// said is what a State holds of the rules.
func said(st *State) string {
	var b strings.Builder
	count := func(t *tally) {
		fmt.Fprintf(&b, " [%d %d", t.key, t.total)
		for _, at := range t.counts.positive() {
			fmt.Fprintf(&b, " %d:%d", at, t.at(at))
		}
		b.WriteString("]")
	}
	fmt.Fprintln(&b, st.Steps, st.Keys)
	for i := range st.kinds {
		k := &st.kinds[i]
		fmt.Fprintf(&b, "%d keys %v adds", i, k.keys)
		for _, t := range k.adds {
			count(t)
		}
		b.WriteString(" empties")
		for _, t := range k.empties {
			count(t)
		}
		for _, a := range k.affinity {
			fmt.Fprintf(&b, " affinity %v %v %v", a.self, a.waits, a.before)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestLargeClustersAreNotForgotten sees a node with more different pods than are kept of
// those that are gone, again and again.
func TestLargeClustersAreNotForgotten(t *testing.T) {
	var m Memory
	node := model.Node{Name: "n", Registered: true}
	for i := range fewKnown + 1 {
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

// TestWaitingPodsAreNotForgotten compiles more different pods that need a place than that.
func TestWaitingPodsAreNotForgotten(t *testing.T) {
	s := &model.Snapshot{}
	for i := range fewKnown + 1 {
		s.Pending = append(s.Pending, model.Pending{Shape: &model.Shape{}, Peer: model.Peer{Labels: []model.Label{{Key: "app", Value: fmt.Sprint(i)}}}})
	}
	var m Memory
	New(s, nil, &m)
	last := &m.known[fewKnown]
	New(s, nil, &m)
	if &m.known[fewKnown] != last {
		t.Error("the pods were forgotten, although they are there")
	}
}
