// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"fmt"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve/pack"
	"karpenter/solve/work"
)

// TestGroupsOfManyPodsAreOneTry counts the plans that are made for a PodGroup (spec 46/101): as
// many for one of 500 equal pods as for one of 2, whether there is a place for it or not.
func TestGroupsOfManyPodsAreOneTry(t *testing.T) {
	tries := func(pods, min int, limit string) int {
		s, err := scenario.Parse(strings.NewReader(fmt.Sprintf("type m cpu=2 mem=4Gi pods=9 zones=a spot=0.02\npool p types=m %s\ngroup default/g min=%d\npods g-1..%d cpu=1 group=default/g\n", limit, min, pods)))
		if err != nil {
			t.Fatal(err)
		}
		n, policy := 0, model.DefaultPolicy()
		together(s, work.New(int64(policy.Work)), func(s *model.Snapshot, budget *work.Budget) *model.Plan {
			n++
			return pack.Place(s, policy, &pack.Memory{}, budget)
		})
		return n
	}
	for limit, most := range map[string]int{"": 1, "limits=nodes:0": 3} {
		few, many := tries(2, 2, limit), tries(500, 500, limit)
		if few != many || many > most {
			t.Errorf("%q: %d plans for 2 pods, %d for 500, want at most %d", limit, few, many, most)
		}
	}
}
