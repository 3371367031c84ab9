// SPDX-License-Identifier: Apache-2.0

package scenariotest_test

import (
	"fmt"
	"testing"

	"karpenter/model"
	"karpenter/scenario/scenariotest"
)

func TestRun(t *testing.T) {
	scenariotest.Run(t, "testdata", func(s *model.Snapshot, p model.Policy) *model.Plan {
		plan := &model.Plan{}
		for _, pending := range s.Pending {
			for _, pod := range pending.Pods {
				plan.Placements = append(plan.Placements, model.Placement{Pod: pod, Node: s.Nodes[0].Name})
			}
		}
		plan.Stays = append(plan.Stays, model.Stay{Node: s.Nodes[0].Name, Reason: model.Empty,
			Why: fmt.Sprintf("%d type, at most %d", len(s.Pools[0].Types), p.MaxTypes)})
		return plan
	})
}
