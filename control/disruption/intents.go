package disruption

import (
	"time"

	"karpenter/model"
)

// removal takes one node away.
type removal struct {
	model.Target
	Reason model.Reason
}

// removals returns the commands of the plan that only take nodes away.
func removals(plan *model.Plan) []removal {
	var out []removal
	for _, c := range plan.Commands {
		for _, n := range c.Nodes {
			if len(c.Launches) == 0 {
				out = append(out, removal{n, c.Reason})
			}
		}
	}
	return out
}

// intent is a Removal that waits to be confirmed.
type intent struct {
	removal removal
	due     time.Time
}

// intents are the Removals seen so far, by claim.
type intents map[string]intent

// confirm returns the intents after a plan with these removals: those of
// before that are still in the plan, and those that are new, due after delay.
// It also returns the removals whose time has come, in the plan's order, and
// the intents that the plan no longer has.
func (old intents) confirm(removals []removal, now time.Time, delay time.Duration) (next intents, due []removal, dropped []intent) {
	next = intents{}
	for _, r := range removals {
		i, known := old[r.Claim]
		if !known || i.removal.Reason != r.Reason {
			i = intent{removal: r, due: now.Add(delay)}
		}
		next[r.Claim] = i
		if !now.Before(i.due) {
			due = append(due, r)
		}
	}
	for claim, i := range old {
		if _, ok := next[claim]; !ok {
			dropped = append(dropped, i)
		}
	}
	return next, due, dropped
}

// wait returns how long it is until the first intent is due, at most limit.
// Those that are due already do not count.
func (old intents) wait(now time.Time, limit time.Duration) time.Duration {
	for _, i := range old {
		if left := i.due.Sub(now); left > 0 {
			limit = min(limit, left)
		}
	}
	return limit
}
