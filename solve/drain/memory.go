// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"runtime"

	"karpenter/model"
	"karpenter/solve/pack"
)

// Memory is what is kept between decisions, to be quicker. The zero value is
// ready.
type Memory struct{ workers []pack.Memory }

// mostWorkers bounds the memory that goes with asking several questions at once.
const mostWorkers = 8

// Decide adds to the plan, which says where the pending pods of s go, the nodes
// to remove, and why others that might be are kept.
func (m *Memory) Decide(s *model.Snapshot, p model.Policy, plan *model.Plan) {
	if m.workers == nil {
		m.workers = make([]pack.Memory, min(runtime.GOMAXPROCS(0), mostWorkers))
	}
	decide(s, p, m.workers, plan)
}
