// SPDX-License-Identifier: Apache-2.0

package solve_test

import (
	"fmt"
	"math"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// TestSpotPoolsCostLittle compares plans that spread workloads over spot pools with
// plans that do not: they place the same pods, break no rule, cost at most the
// allowance more, and crowd workloads no more. Some crowd them less.
func TestSpotPoolsCostLittle(t *testing.T) {
	spread := 0
	for _, d := range []draw{
		{name: "workloads", Draw: solvetest.Draw{Workloads: true}},
		{name: "peers", Draw: solvetest.Draw{Workloads: true, Spread: true, Affinity: true, Ports: true, Volumes: true}},
		{name: "everything", Draw: solvetest.Everything()},
	} {
		t.Run(d.name, func(t *testing.T) {
			situations(t, d.Draw, 150, func(s *model.Snapshot) []string {
				policy := model.DefaultPolicy()
				policy.PreferenceAllowance = 2000 // the prices that are drawn are about as much
				with := solve.Decide(s, policy)
				wrong := solvetest.Check(s, policy, with)
				policy.MaxSpotPoolShare = 1
				plain := *s
				plain.Pools = append([]model.Pool(nil), s.Pools...)
				most := policy.PreferenceAllowance
				for i := range plain.Pools {
					aims := &plain.Pools[i].Aims
					if aims.MaxSpotPoolShare = nil; aims.PreferenceAllowance != nil {
						most = max(most, *aims.PreferenceAllowance)
					}
				}
				without := solve.Decide(&plain, policy)
				if with.Cost > without.Cost+most {
					wrong = append(wrong, fmt.Sprintf("spreading over spot pools costs %d instead of %d:\n%s", with.Cost, without.Cost, scenario.Text(s, without)))
				}
				if pods(with) != pods(without) {
					wrong = append(wrong, fmt.Sprintf("%d pods have a place instead of %d", pods(with), pods(without)))
				}
				more, less := crowding(s, with), crowding(s, without)
				if more > less+1e-9 {
					wrong = append(wrong, fmt.Sprintf("crowds %g instead of %g:\n%s", more, less, scenario.Text(s, without)))
				}
				if more < less-1e-9 {
					spread++
				}
				return wrong
			})
		})
	}
	if spread == 0 {
		t.Error("no workload was spread")
	}
}

// crowding returns which parts of workloads and pools a plan has in spot pools beyond
// their shares, summed up.
func crowding(s *model.Snapshot, plan *model.Plan) float64 {
	type in struct{ load, pool, spot string }
	counts, totals := map[in]float64{}, map[string]float64{}
	add := func(load, pool, spot string, n float64) {
		totals[load] += n
		if spot != "" {
			counts[in{load, pool, spot}] += n
		}
	}
	shares := map[string]*float64{}
	for i := range s.Pools {
		shares[s.Pools[i].Name] = s.Pools[i].Aims.MaxSpotPoolShare
	}
	nodes, launched := map[string]*model.Node{}, map[string]bool{}
	spotOf := func(n *model.Node) string {
		if ct, _ := n.Labels.Value(model.LabelCapacityType); ct != model.Spot {
			return ""
		}
		kind, known := n.Labels.Value(model.LabelInstanceType)
		zone, settled := n.Labels.Value(model.LabelZone)
		if !known || !settled {
			kind = n.Name
		}
		return kind + " " + zone
	}
	for i := range plan.Launches {
		l := &plan.Launches[i]
		launched[l.Pool] = true
		for _, p := range l.Pods {
			if p.Workload != "" {
				launched[p.Namespace+"/"+p.Workload] = true
			}
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		nodes[n.Name] = n
		if n.Deleting || n.Closed {
			continue
		}
		for _, m := range n.Movable {
			for _, p := range m.Pods {
				if launched[p.Namespace+"/"+p.Workload] {
					add(p.Namespace+"/"+p.Workload, n.Pool, spotOf(n), 1)
				}
			}
		}
		if shares[n.Pool] != nil && launched[n.Pool] {
			add(n.Pool, n.Pool, spotOf(n), float64(n.Capacity.At(model.CPU)))
		}
	}
	for _, p := range plan.Placements {
		if n := nodes[p.Node]; launched[p.Pod.Namespace+"/"+p.Pod.Workload] {
			add(p.Pod.Namespace+"/"+p.Pod.Workload, n.Pool, spotOf(n), 1)
		}
	}
	for i := range plan.Launches {
		l := &plan.Launches[i]
		spot := ""
		if l.CapacityType == model.Spot {
			spot = l.Type + " " + l.Zone
		}
		for _, p := range l.Pods {
			if p.Workload != "" && p.Buffer == "" {
				add(p.Namespace+"/"+p.Workload, l.Pool, spot, 1)
			}
		}
		if shares[l.Pool] != nil {
			add(l.Pool, l.Pool, spot, float64(capacityOf(s, l).At(model.CPU)))
		}
	}
	sum := 0.0
	for at, n := range counts {
		share := model.DefaultPolicy().MaxSpotPoolShare
		if own := shares[at.pool]; own != nil {
			share = *own
		}
		most := max(1, math.Ceil(share*totals[at.load]-1e-9))
		if _, pool := shares[at.load]; pool {
			most = share * totals[at.load]
		}
		sum += max(0, n-most) / totals[at.load]
	}
	return sum
}

func capacityOf(s *model.Snapshot, l *model.Launch) model.Resources {
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			if s.Pools[i].Name == l.Pool && t.Name == l.Type {
				return t.Capacity
			}
		}
	}
	return nil
}
