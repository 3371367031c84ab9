// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
)

const (
	// window is how many outcomes are remembered of each pool.
	window = 4
	// tolerated is how many of them may be failures in a healthy pool.
	tolerated = 1
)

// Health remembers for the latest claims of each pool whether their instances
// became nodes. The zero Health is ready for use; it is safe for concurrent
// use.
//
// Outcomes are counted towards the very pool that owns the claim, by UID, so
// that a pool recreated under an old name starts with a clean record.
type Health struct {
	mu    sync.Mutex
	pools map[types.UID]*record
}

// record is what is remembered of one pool.
type record struct {
	name     string
	outcomes []outcome // oldest first, at most window
	verdict  verdict   // of the last outcome that changed it
}

type outcome struct {
	claim types.UID // "" = taken over from the condition after a restart
	ok    bool
}

// verdict is a condition without its type. The zero verdict means that the
// condition is not set.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// Succeeded notes that the claim's instance became a Node.
func (h *Health) Succeeded(claim *v1.NodeClaim) {
	h.note(claim, true, verdict{
		status: metav1.ConditionTrue, reason: v1.NodeRegistrationHealthyCondition,
	})
}

// Failed records that it never did, and why.
func (h *Health) Failed(claim *v1.NodeClaim, reason, message string) {
	h.note(claim, false, verdict{status: metav1.ConditionFalse, reason: reason, message: message})
}

// note adds an outcome, once for each claim. A success makes the pool healthy
// if there are few failures, and a failure makes it unhealthy if there are
// many. Otherwise the verdict and its first reason stay.
func (h *Health) note(claim *v1.NodeClaim, ok bool, then verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.recordOf(claim)
	if r == nil || slices.Contains(r.outcomes, outcome{claim.UID, ok}) {
		return
	}
	r.push(outcome{claim.UID, ok})
	if r.isHealthy() == ok && r.verdict.status != then.status {
		r.verdict = then
	}
}

// recordOf returns the record of the pool that owns the claim, or nil.
func (h *Health) recordOf(claim *v1.NodeClaim) *record {
	for _, o := range claim.OwnerReferences {
		if o.Kind == "NodePool" && o.Name == claim.Labels[v1.NodePoolLabelKey] {
			return h.of(o.UID, o.Name)
		}
	}
	return nil
}

func (h *Health) of(uid types.UID, name string) *record {
	if h.pools == nil {
		h.pools = map[types.UID]*record{}
	}
	if h.pools[uid] == nil {
		h.pools[uid] = &record{name: name}
	}
	return h.pools[uid]
}

// resume takes the verdict from the pool's condition if nothing is remembered
// of the pool, as after a restart.
func (h *Health) resume(pool *v1.NodePool, condition *metav1.Condition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.of(pool.UID, pool.Name)
	if len(r.outcomes) > 0 || condition == nil {
		return
	}
	switch condition.Status {
	case metav1.ConditionTrue:
		r.outcomes = []outcome{{ok: true}}
	case metav1.ConditionFalse:
		r.outcomes = []outcome{{ok: false}, {ok: false}}
	default:
		return
	}
	r.verdict = verdict{condition.Status, condition.Reason, condition.Message}
}

// reset forgets the outcomes of the pool.
func (h *Health) reset(pool *v1.NodePool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.of(pool.UID, pool.Name)
	r.outcomes, r.verdict = nil, verdict{}
}

// judge returns the verdict on the pool.
func (h *Health) judge(pool *v1.NodePool) verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of(pool.UID, pool.Name).verdict
}

// forget drops all records of pools of the name.
func (h *Health) forget(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for uid, r := range h.pools {
		if r.name == name {
			delete(h.pools, uid)
		}
	}
}

func (r *record) push(o outcome) {
	r.outcomes = append(r.outcomes, o)
	if len(r.outcomes) > window {
		r.outcomes = slices.Delete(r.outcomes, 0, 1)
	}
}

func (r *record) isHealthy() bool {
	failures := 0
	for _, o := range r.outcomes {
		if !o.ok {
			failures++
		}
	}
	return failures <= tolerated
}
