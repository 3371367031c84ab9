// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"maps"
	"time"

	"karpenter/model"
)

// repose limits how often plans are made because of events: the time between
// two such plans is at least repose times the time that the last plan took. So is the
// time between plans while nothing is under way, but not more than calm periods.
const (
	repose = 10
	calm   = 3
)

// cadence says when the next plan is due. The zero value has it due at once.
type cadence struct {
	made    time.Time // the last plan
	took    time.Duration
	stirred bool                            // something has happened since then that may change what can be done
	allowed map[string]map[model.Reason]int // what budgets left in the last pass, by pool
}

// notice records what a pass has found: whether an execution has ended, and
// whether budgets allow more than in the previous pass.
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

// planned records that a plan was made.
func (c *cadence) planned(at time.Time, took time.Duration) {
	c.made, c.took, c.stirred = at, took, false
}

// pause returns how long nothing is planned while nothing is under way: a period, or
// longer in a cluster so large that plans take long.
func (c *cadence) pause(period time.Duration) time.Duration {
	return max(period, min(repose*c.took, calm*period))
}

// due reports whether a plan is due. It is due every period, and sooner if an
// intent is due or after events that notice records.
func (c *cadence) due(now time.Time, waiting intents, period time.Duration) bool {
	return !now.Before(c.made.Add(waiting.wait(c.made, period))) || c.stirred && !now.Before(c.made.Add(repose*c.took))
}
