// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"maps"
	"time"

	"karpenter/model"
)

// repose is how many times as long as the last plan took passes at least before
// another is made for what has happened since.
const repose = 10

// cadence says when the next plan is due. The zero value has it due at once.
type cadence struct {
	made    time.Time // the last plan
	took    time.Duration
	stirred bool                            // something has happened since then that may change what can be done
	allowed map[string]map[model.Reason]int // what budgets left in the last pass, by pool
}

// notice takes in what a pass has found: whether an execution has ended, and
// whether budgets leave more than in the pass before.
func (c *cadence) notice(pools []model.Pool, ended bool) {
	c.stirred = c.stirred || ended
	allowed := map[string]map[model.Reason]int{}
	for i := range pools {
		p := &pools[i]
		for reason, n := range p.Disruption.Allowed {
			c.stirred = c.stirred || n > c.allowed[p.Name][reason]
		}
		allowed[p.Name] = maps.Clone(p.Disruption.Allowed)
	}
	c.allowed = allowed
}

// planned takes in that a plan was made.
func (c *cadence) planned(at time.Time, took time.Duration) {
	c.made, c.took, c.stirred = at, took, false
}

// due reports whether a plan is due at least every period: it is sooner when an
// intent is due, and for what has happened.
func (c *cadence) due(now time.Time, waiting intents, period time.Duration) bool {
	return !now.Before(c.made.Add(waiting.wait(c.made, period))) || c.stirred && !now.Before(c.made.Add(repose*c.took))
}
