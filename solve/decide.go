// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"strings"
	"sync"

	"karpenter/model"
	"karpenter/solve/devices"
	"karpenter/solve/drain"
	"karpenter/solve/pack"
	"karpenter/solve/work"
)

// Decide places the pending pods of s and chooses the nodes to remove.
func Decide(s *model.Snapshot, p model.Policy) *model.Plan { return new(Planner).Decide(s, p) }

// Planner decides again and again. Its plans are those of Decide; it only
// remembers what it compiled of pools that stay the same, and its last decisions. The
// zero value is ready. It is safe for concurrent use.
type Planner struct {
	mu      sync.Mutex
	memory  pack.Memory
	drain   drain.Memory
	charge  charge
	devices devices.Charge
	decided decision // the last one of Decide
	placed  decision // and of Place
}

// Decide is as the function of that name.
func (l *Planner) Decide(s *model.Snapshot, p model.Policy) *model.Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.decided.holds(s, p) {
		charged := l.devices.Of(l.charge.of(s))
		plan := l.place(charged, p)
		l.drain.Decide(charged, p, plan)
		l.devices.Undo(plan)
		l.charge.undo(plan)
		l.decided = decision{*s, p, plan}
	}
	return l.decided.again()
}

// Place is Decide without the nodes to remove.
func (l *Planner) Place(s *model.Snapshot, p model.Policy) *model.Plan {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.placed.holds(s, p) {
		plan := l.place(l.devices.Of(l.charge.of(s)), p)
		l.devices.Undo(plan)
		l.charge.undo(plan)
		l.placed = decision{*s, p, plan}
	}
	return l.placed.again()
}

func (l *Planner) place(s *model.Snapshot, p model.Policy) *model.Plan {
	try := func(s *model.Snapshot, budget *work.Budget) *model.Plan {
		plan := pack.Place(s, p, &l.memory, budget)
		plan.Exhausted = budget.Spent()
		refuse(s, plan)
		return plan
	}
	place := func(s *model.Snapshot) *model.Plan { return together(s, work.New(int64(p.Work)), try) }
	s = condemned(vacated(s))
	return yield(s, place(s), place)
}

// refuse gives a verdict to every pod that uses something no plan can honor.
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
