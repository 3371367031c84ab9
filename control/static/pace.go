// SPDX-License-Identifier: Apache-2.0

package static

import (
	"sync"
	"time"

	v1 "karpenter/api/v1"
)

const (
	firstPause = time.Second // doubled each time
	mostPause  = time.Minute
	// forgotten is the age from which a round no longer slows down the next
	// one.
	forgotten = 5 * time.Minute
)

// pace slows down pools whose new claims do not stay, such as those that the
// cloud has no instance for. The zero value is ready; it is safe for concurrent
// use.
type pace struct {
	mu     sync.Mutex
	rounds map[string]round // the latest, by pool
}

// round is claims that were created together.
type round struct {
	at      time.Time
	names   []string
	strikes int // rounds before it of which claims were lost
}

// pause returns how long to wait before more claims are created, given those
// there are.
func (p *pace) pause(pool string, claims []v1.NodeClaim, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.rounds[pool]
	if !ok || !last.lost(claims) {
		return 0
	}
	return max(last.at.Add(min(firstPause<<min(last.strikes, 10), mostPause)).Sub(now), 0)
}

// created records a round, and the claims that existed before it.
func (p *pace) created(pool string, names []string, claims []v1.NodeClaim, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := round{at: now, names: names}
	if last, ok := p.rounds[pool]; ok && last.lost(claims) && now.Sub(last.at) < forgotten {
		next.strikes = last.strikes + 1
	}
	if p.rounds == nil {
		p.rounds = map[string]round{}
	}
	p.rounds[pool] = next
}

// forget forgets a pool that is gone.
func (p *pace) forget(pool string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.rounds, pool)
}

// lost reports whether a claim of the round is not to stay.
func (r round) lost(claims []v1.NodeClaim) bool {
	stay := map[string]bool{}
	for i := range claims {
		stay[claims[i].Name] = claims[i].DeletionTimestamp.IsZero()
	}
	for _, name := range r.names {
		if !stay[name] {
			return true
		}
	}
	return false
}
