// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"slices"
	"time"

	"karpenter/model"
)

const (
	// leastPause is the minimum time for which a node is not disrupted after a
	// command for it has failed. It is long enough for users to see that the
	// node takes pods again.
	leastPause = time.Minute
	// mostPause is the maximum time, if a failed replacement is not deleted.
	mostPause = 30 * time.Minute
)

// pauses holds the nodes whose commands have failed recently, by claim. The
// zero value is ready for use.
type pauses map[string]pause

// pause is the time since which a node is not disrupted, and the failed
// replacements that must be deleted or have become nodes before the pause ends.
type pause struct {
	since  time.Time
	awaits []string // claims
}

// begin starts a pause for the nodes of the claims, whose command has failed.
func (p *pauses) begin(x *execution, claims []string, now time.Time) {
	if *p == nil {
		*p = pauses{}
	}
	var awaits []string
	for _, r := range x.replacements {
		if !r.ready {
			awaits = append(awaits, r.name)
		}
	}
	for _, c := range claims {
		(*p)[c] = pause{since: now, awaits: awaits}
	}
}

// keep returns the nodes of the Snapshot, with paused nodes marked as blocked,
// and forgets pauses that have ended.
func (p pauses) keep(s *scope) []model.Node {
	nodes := s.snapshot.Nodes
	cloned := false
	for claim, x := range p {
		n := s.managed[claim]
		awaited := x.awaited(s)
		since := s.now.Sub(x.since)
		if n == nil || since >= leastPause && awaited == "" || since >= mostPause {
			delete(p, claim)
			continue
		}
		i := slices.IndexFunc(nodes, func(n model.Node) bool { return n.Claim == claim })
		if i < 0 || nodes[i].Disruption.Blocked != "" && nodes[i].Disruption.Unhealthy == "" {
			continue
		}
		if !cloned {
			nodes, cloned = slices.Clone(nodes), true
		}
		nodes[i].Disruption.Unhealthy = ""
		nodes[i].Disruption.Blocked = fmt.Sprintf("its last disruption failed at %s", x.since.UTC().Format(time.RFC3339))
		if awaited != "" {
			nodes[i].Disruption.Blocked += "; waiting until replacement " + awaited + " is gone"
		}
	}
	return nodes
}

// awaited returns a replacement that the pause waits for, or "".
func (x pause) awaited(s *scope) string {
	for _, name := range x.awaits {
		n := s.managed[name]
		if (n != nil || s.claims[name] != nil) && (n == nil || !n.Initialized) {
			return name
		}
	}
	return ""
}
