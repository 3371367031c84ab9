package solve

import (
	"strings"

	"karpenter/model"
	"karpenter/solve/drain"
	"karpenter/solve/pack"
)

// Decide places the pending pods of s and chooses the nodes to take away.
func Decide(s *model.Snapshot, p model.Policy) *model.Plan {
	plan := &model.Plan{}
	pack.New(s, p).Run(plan)
	refuse(s, plan)
	drain.Empty(s, plan)
	return plan
}

// refuse gives a verdict to every pod that uses something no plan can honour.
func refuse(s *model.Snapshot, plan *model.Plan) {
	for _, pending := range s.Pending {
		if len(pending.Shape.Refused) > 0 {
			plan.Verdicts = append(plan.Verdicts, model.Verdict{
				Pods: pending.Pods, Shape: pending.Shape,
				Reason: "no node is planned for pods with " + strings.Join(pending.Shape.Refused, ", "),
			})
		}
	}
}
