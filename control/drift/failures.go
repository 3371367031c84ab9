// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
)

const (
	// remembered is how many failures are kept of each pool.
	remembered = 4
	// givenUpAfter is the minimum age at which the deletion of a claim that has
	// not become a node counts as a failed instance. Claims without capacity
	// are deleted sooner, and tell nothing about instances.
	givenUpAfter = 4 * time.Minute
)

// failures remembers which instances never became nodes for pods, by pool and
// the template they were made from. The zero value is ready for use. Safe for
// concurrent use.
type failures struct {
	mu    sync.Mutex
	pools map[string]failing // by name
}

// failing is the failures of one pool.
type failing struct {
	hash string // of the template
	last []failure
}

type failure struct {
	claim types.UID
	at    time.Time
}

// gone records when the deletion of the claim began.
func (f *failures) gone(claim *v1.NodeClaim, at time.Time) {
	if _, ok := isInitialized(claim); ok || at.Sub(claim.CreationTimestamp.Time) < givenUpAfter {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name, hash := claim.Labels[v1.NodePoolLabelKey], claim.Annotations[v1.NodePoolHashAnnotationKey]
	p := f.pools[name]
	if p.hash != hash {
		p = failing{hash: hash}
	}
	if slices.ContainsFunc(p.last, func(x failure) bool { return x.claim == claim.UID }) {
		return
	}
	p.last = append(p.last, failure{claim.UID, at})
	p.last = p.last[max(len(p.last)-remembered, 0):]
	if f.pools == nil {
		f.pools = map[string]failing{}
	}
	f.pools[name] = p
}

// joined records that the claim has become a node. Earlier failures no longer
// count.
func (f *failures) joined(claim *v1.NodeClaim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := claim.Labels[v1.NodePoolLabelKey]
	if f.pools[name].hash == claim.Annotations[v1.NodePoolHashAnnotationKey] {
		delete(f.pools, name)
	}
}

// after returns when instances made from the template failed later than t,
// oldest first.
func (f *failures) after(pool, hash string, t time.Time) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []time.Time
	if p := f.pools[pool]; p.hash == hash {
		for _, x := range p.last {
			if x.at.After(t) {
				out = append(out, x.at)
			}
		}
	}
	return out
}

// forget drops what is known of a pool that is gone.
func (f *failures) forget(pool string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pools, pool)
}
