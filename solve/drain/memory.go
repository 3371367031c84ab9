// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"maps"
	"reflect"
	"runtime"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/pack"
)

// Memory is what is kept between decisions, to be quicker. The zero value is
// ready.
type Memory struct {
	workers  []pack.Memory
	snapshot *model.Snapshot // that was decided last
	policy   model.Policy
	commands []model.Command // what came of it
	stays    []model.Stay
}

// mostWorkers bounds the memory that goes with asking several questions at once.
const mostWorkers = 8

// Decide adds to the plan, which says where the pending pods of s go, the nodes
// to remove, and why others that might be are kept.
func (m *Memory) Decide(s *model.Snapshot, p model.Policy, plan *model.Plan) {
	if m.snapshot == nil || m.policy != p || !alike(m.snapshot, s) {
		if m.workers == nil {
			m.workers = make([]pack.Memory, min(runtime.GOMAXPROCS(0), mostWorkers))
		}
		decide(s, p, m.workers, plan)
		m.snapshot, m.policy, m.commands, m.stays = s, p, plan.Commands, plan.Stays
	}
	plan.Commands, plan.Stays = slices.Clone(m.commands), slices.Clone(m.stays)
}

// alike reports whether the Snapshots differ in nothing that is decided by, but
// the time. Parts that are not one are taken to differ.
func alike(a, b *model.Snapshot) bool {
	return fit.Same(a.Nodes, b.Nodes) && fit.Same(a.Pending, b.Pending) && fit.Same(a.Daemons, b.Daemons) && fit.Same(a.Selectors, b.Selectors) &&
		reflect.DeepEqual(a.Intents, b.Intents) && maps.Equal(a.WellKnown, b.WellKnown) &&
		slices.EqualFunc(a.Pools, b.Pools, func(a, b model.Pool) bool {
			types := fit.Same(a.Types, b.Types)
			a.Types, b.Types = nil, nil
			return types && reflect.DeepEqual(a, b)
		})
}
