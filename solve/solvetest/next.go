// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
)

// Next returns the situation after a plan was begun: its launches are claims
// on their way, as large as they request, and its pods are still pending and
// know where they were planned.
func Next(s *model.Snapshot, plan *model.Plan) *model.Snapshot {
	out := clone(s)
	planned := Places(plan)
	for i := range plan.Launches {
		l := &plan.Launches[i]
		p := slices.IndexFunc(out.Pools, func(p model.Pool) bool { return p.Name == l.Pool })
		size := l.Requests.With(model.Nodes, 1)
		out.Pools[p].Usage = out.Pools[p].Usage.Plus(size)
		reservation := ""
		if len(l.ReservationIDs) > 0 {
			reservation = l.ReservationIDs[0]
		}
		out.Nodes = append(out.Nodes, model.Node{
			Name: claimName(i), Claim: claimName(i), Pool: l.Pool, Taints: out.Pools[p].Taints, Capacity: size, Allocatable: l.Requests,
			Labels: claimLabels(s, &out.Pools[p], l), Devices: claimDevices(&out.Pools[p], l), Reservation: reservation,
		})
	}
	slices.SortFunc(out.Nodes, func(a, b model.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range out.Pending {
		for j := range out.Pending[i].Pods {
			p := &out.Pending[i].Pods[j]
			p.Planned = planned[p.Key()]
		}
	}
	return out
}

// claimLabels is what the claim demands, and what all instances it may become
// have. Labels of the user's own are settled by the claim: they get one of the
// values they may have, a number where none is named.
func claimLabels(s *model.Snapshot, pool *model.Pool, l *model.Launch) model.Requirements {
	all := outcomes(pool, l)
	var out model.Requirements
	for _, r := range all[0].labels {
		var values []string
		for _, o := range all {
			if v, ok := o.labels.Get(r.Key); ok && !v.Complement && len(v.Values) > 0 {
				values = append(values, v.Values...)
				continue
			}
			values = nil
			break
		}
		if len(values) > 0 {
			out = out.And(model.NewRequirement(r.Key, model.In, values...))
		}
	}
	out = out.And(l.Requirements...).And(model.NewRequirement(model.LabelNodePool, model.In, l.Pool))
	for _, r := range numbered(s, pool.Requirements.And(l.Requirements...)) {
		switch {
		case s.WellKnown.Has(r.Key) || r.AllowsAbsence():
		case len(r.Values) > 0:
			out = out.Without(r.Key).And(model.NewRequirement(r.Key, model.In, r.Values[0]))
		}
	}
	return out
}

// claimDevices is the devices of the instance with the fewest that the claim may become.
func claimDevices(pool *model.Pool, l *model.Launch) []model.DevicePool {
	count := func(o outcome) (n int) {
		for _, p := range o.kind.Devices {
			n += len(p.Devices)
		}
		return n
	}
	return slices.MinFunc(outcomes(pool, l), func(a, b outcome) int { return cmp.Compare(count(a), count(b)) }).kind.Devices
}

func claimName(launch int) string { return fmt.Sprintf("claim-%d", launch) }

// Places tells by pod where a plan sends it; claims are named as Next does.
func Places(plan *model.Plan) map[string]string {
	out := map[string]string{}
	for _, p := range plan.Placements {
		out[p.Pod.Key()] = p.Node
	}
	for i, l := range plan.Launches {
		for _, p := range l.Pods {
			out[p.Key()] = claimName(i)
		}
	}
	return out
}
