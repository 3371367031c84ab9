// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"slices"

	"karpenter/model"
)

// yield has pods that stand in for buffers give way: when a pod that exists
// finds no place beside them, but would without them, they are left out. They
// come back with the next decision, in whatever room there is then.
func yield(s *model.Snapshot, plan *model.Plan, place func(*model.Snapshot) *model.Plan) *model.Plan {
	homeless := existing(plan.Verdicts)
	if homeless == 0 {
		return plan
	}
	alone := *s
	alone.Pending = nil
	var left []model.Verdict
	for _, pending := range s.Pending {
		pods, standIns := split(pending.Pods)
		if len(standIns) > 0 {
			left = append(left, model.Verdict{Pods: standIns, Shape: pending.Shape, Reason: "pods that exist use its capacity"})
		}
		if pending.Pods = pods; len(pods) > 0 {
			alone.Pending = append(alone.Pending, pending)
		}
	}
	if len(left) == 0 {
		return plan
	}
	without := place(&alone)
	if existing(without.Verdicts) >= homeless {
		return plan
	}
	without.Verdicts = append(without.Verdicts, left...)
	return without
}

// split tells the pods that exist from those that stand in for buffers.
func split(all []model.Pod) (pods, standIns []model.Pod) {
	if !slices.ContainsFunc(all, func(p model.Pod) bool { return p.Buffer != "" }) {
		return all, nil
	}
	for _, p := range all {
		if p.Buffer == "" {
			pods = append(pods, p)
		} else {
			standIns = append(standIns, p)
		}
	}
	return pods, standIns
}

// existing counts the pods of the verdicts that exist.
func existing(verdicts []model.Verdict) int {
	n := 0
	for _, v := range verdicts {
		for _, p := range v.Pods {
			if p.Buffer == "" {
				n++
			}
		}
	}
	return n
}
