// SPDX-License-Identifier: Apache-2.0

package pack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// crowded is a few Deployments of many pods, most of which prefer a node each:
// more pods than nodes are worth.
func crowded(t *testing.T, seed uint64) *model.Snapshot {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	var b strings.Builder
	b.WriteString("pool general\n")
	for _, cpu := range []int{2, 4, 8, 16, 32} {
		price := 0.012 * float64(cpu)
		fmt.Fprintf(&b, "type t%d cpu=%d mem=%dGi pods=%d zones=a,b,c spot=a:%.4f,b:%.4f,c:%.4f\n", cpu, cpu, 4*cpu, min(110, 15*cpu), price, price*1.05, price*0.95)
	}
	for i := range r.IntN(4) {
		fmt.Fprintf(&b, "node old-%d pool=general type=t%d zone=a ct=spot\n", i, []int{4, 8, 16}[r.IntN(3)])
	}
	for i := range 4 + r.IntN(8) {
		name := fmt.Sprintf("app-%d", i)
		preference := []string{`anti="100: host of app=NAME"`, `spread="host soft of app=NAME"`, `anti="100: host of app=NAME" spread="zone soft of app=NAME"`, ""}[r.IntN(4)]
		fmt.Fprintf(&b, "pods %s-1..%d labels=app=%s cpu=%dm mem=%dMi %s\n", name, 1+r.IntN(60), name, 50+r.IntN(700), 50+r.IntN(1500), strings.ReplaceAll(preference, "NAME", name))
	}
	s, err := scenario.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	return s
}

// place is a node of a plan.
type place struct {
	free model.Resources
	zone string
	app  map[string]int
}

// places returns the nodes of the plan, and which pods each has.
func places(s *model.Snapshot, plan *model.Plan, apps map[string]string) []place {
	var out []place
	requests := map[string]model.Resources{}
	for i := range s.Pending {
		for _, p := range s.Pending[i].Pods {
			requests[p.Key()] = s.Pending[i].Shape.Requests
		}
	}
	for i := range s.Nodes {
		n := place{free: s.Nodes[i].Allocatable.Minus(s.Nodes[i].Requested), zone: "a", app: map[string]int{}}
		for _, p := range plan.Placements {
			if p.Node == s.Nodes[i].Name {
				n.app[apps[p.Pod.Key()]]++
				n.free = n.free.Minus(requests[p.Pod.Key()])
			}
		}
		out = append(out, n)
	}
	for _, l := range plan.Launches {
		kind := s.Pools[0].Types[slices.IndexFunc(s.Pools[0].Types, func(t *model.InstanceType) bool { return t.Name == l.Type })]
		n := place{free: kind.Allocatable.Minus(l.Requests), zone: l.Zone, app: map[string]int{}}
		for _, p := range l.Pods {
			n.app[apps[p.Key()]]++
		}
		out = append(out, n)
	}
	return out
}

// TestReplicasAreApartWhereThereIsRoom has plans whose nodes are fewer than the
// pods of a Deployment that prefer a node each. None of these shares a node while
// another node of the plan has room and none of its like.
func TestReplicasAreApartWhereThereIsRoom(t *testing.T) {
	first := 1 + rand.Uint64N(1<<40)
	shared := 0
	for seed := first; seed < first+60; seed++ {
		s := crowded(t, seed)
		apps, shapes := map[string]string{}, map[string]*model.Shape{}
		for i := range s.Pending {
			for _, p := range s.Pending[i].Pods {
				app := p.Name[:strings.LastIndex(p.Name, "-")]
				apps[p.Key()], shapes[app] = app, s.Pending[i].Shape
			}
		}
		all := places(s, new(solve.Planner).Place(s, model.DefaultPolicy()), apps)
		for _, from := range all {
			for app, pods := range from.app {
				shape := shapes[app]
				if pods < 2 || len(shape.PodTerms) == 0 && (len(shape.Spread) == 0 || shape.Spread[0].Key != model.LabelHostname) {
					continue
				}
				shared++
				for _, to := range all {
					// Where a spread over zones was granted, the pod is to stay in its zone.
					if to.app[app] == 0 && shape.Requests.Fits(to.free) && (from.zone == to.zone || len(shape.Spread) == 0 || shape.Spread[0].Key == model.LabelHostname) {
						t.Errorf("seed %d: %d pods of %s share a node, and another node has room", seed, pods, app)
					}
				}
			}
		}
	}
	if shared == 0 {
		t.Error("no pods share a node in any plan")
	}
}
