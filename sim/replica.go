// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing/synctest"
	"time"
)

const (
	// leaseDuration is how long no other replica leads after the last renewal.
	leaseDuration = 15 * time.Second
	// noticesWithin is how long a replica that was frozen works on before it looks
	// at the lease.
	noticesWithin = 2 * time.Second
)

// freeze has the leader stand still for the time. If that is longer than its
// lease lasts, another replica takes over meanwhile.
func (p *play) freeze(d time.Duration) {
	now := time.Now()
	p.process.asleep = now.Add(d)
	p.takeover = time.Time{}
	if d >= leaseDuration {
		p.takeover = now.Add(leaseDuration)
	}
}

// awake returns the replicas that work: the leader first, then those that do not
// know yet that another leads.
func (p *play) awake() []*process {
	now := time.Now()
	out := p.workers[:0]
	for _, r := range append([]*process{p.process}, p.earlier...) {
		if !r.asleep.After(now) {
			out = append(out, r)
		}
	}
	p.workers = out
	return out
}

// elect renews the lease of the leader, has another replica take over when it has
// expired, and ends a replica that finds out. It says what has happened, if
// anything has.
func (p *play) elect() (string, error) {
	now := time.Now()
	informed := slices.IndexFunc(p.earlier, func(r *process) bool { return !r.asleep.Add(noticesWithin).After(now) })
	switch {
	case !p.takeover.IsZero() && !p.takeover.After(now):
		p.takeover = time.Time{}
		p.earlier = append(p.earlier, p.process)
		p.result.Restarts++
		return "another replica takes over", p.startProcess()
	case informed >= 0:
		p.part(informed)
		return "an earlier leader finds that another leads", nil
	case !p.process.asleep.After(now):
		p.process.fence.Renewed(now)
	}
	return "", nil
}

// part ends an earlier leader.
func (p *play) part(i int) {
	r := p.earlier[i]
	p.earlier = append(p.earlier[:i:i], p.earlier[i+1:]...)
	r.fence.Close()
	r.end(synctest.Wait)
}

// dues are when something about replicas happens by itself.
func (p *play) dues(sooner func(time.Time)) {
	sooner(p.takeover)
	sooner(p.process.asleep)
	for _, r := range p.earlier {
		sooner(r.asleep)
		sooner(r.asleep.Add(noticesWithin))
	}
}
