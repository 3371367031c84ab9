package drift

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	v1 "karpenter/api/v1"
)

// remembered is how many failures are kept of each pool.
const remembered = 4

// Failures remembers when machines of which pools did not become nodes, by
// the template they were made from. Make it with NewFailures. Safe for
// concurrent use.
type Failures struct {
	clock clock.PassiveClock

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

// NewFailures returns a memory without any.
func NewFailures(c clock.PassiveClock) *Failures {
	return &Failures{clock: c, pools: map[string]failing{}}
}

// Succeeded is there so that Failures hears what others hear of claims; that
// nodes join is read from the claims.
func (f *Failures) Succeeded(*v1.NodeClaim) {}

// Failed notes that the claim's machine is given up. Why is told elsewhere.
func (f *Failures) Failed(claim *v1.NodeClaim, _, _ string) {
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
	p.last = append(p.last, failure{claim.UID, f.clock.Now()})
	p.last = p.last[max(len(p.last)-remembered, 0):]
	f.pools[name] = p
}

// after returns when machines made from the template failed later than t,
// oldest first.
func (f *Failures) after(pool, hash string, t time.Time) []time.Time {
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
func (f *Failures) forget(pool string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pools, pool)
}
