// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// evictedReason is what the API server gives as reason on pods that it evicts.
const evictedReason = "EvictionByEvictionAPI"

// Account sums up what happened during a time.
type Account struct {
	Launched int // machines that were claimed
	Removed  int // machines whose claims went
	Evicted  int // pods that went through the eviction API
	Lost     int // pods that went for another reason of the cluster's: their node vanished, or others preempted them

	MostWaiting int           // pods without a node at once
	LongestWait time.Duration // of one pod, for its node; those that still have none wait on

	MostDisrupted int // nodes of a pool at once, of those that budgets count
	Allowed       int // how many that might have been then, at least; NoBudget if there is none
	// LastChange is when a machine came, went, or was marked to go, or a pod was evicted, last; zero: never.
	LastChange time.Time
	// Broken says where more nodes of a pool were disrupted at once than its budgets allow, once for each pool.
	Broken []string
}

// NoBudget is how many nodes may be disrupted where no budget says how many.
const NoBudget = math.MaxInt32

// Between returns what happened from one moment to another.
func (h *History) Between(from, to time.Time) Account {
	r := replay{
		from: from, to: to,
		nodes: map[string]*node{}, claims: map[string]*claim{}, pools: map[string]*Pool{},
		pods: map[string]*pod{}, waiting: map[string]time.Time{}, told: map[string]bool{},
	}
	for _, c := range h.inOrder() {
		if c.seen.After(to) {
			continue
		}
		r.take(&c)
	}
	for _, since := range r.waiting {
		r.account.LongestWait = max(r.account.LongestWait, to.Sub(later(since, from)))
	}
	return r.account
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// replay goes through a History.
type replay struct {
	from, to time.Time
	account  Account

	nodes   map[string]*node
	claims  map[string]*claim
	pools   map[string]*Pool
	pods    map[string]*pod
	waiting map[string]time.Time // pods without a node: since when; by uid
	told    map[string]bool      // pools with a line in account.Broken
}

// counts reports whether a change belongs to the time asked for.
func (r *replay) counts(c *change) bool { return !c.seen.Before(r.from) }

func (r *replay) take(c *change) {
	switch {
	case c.pod != nil:
		r.takePod(c)
	case c.pool != nil:
		set(r.pools, c, c.pool)
	case c.claim != nil:
		before := set(r.claims, c, c.claim)
		r.changed(c, before == nil, before != nil && before.removing.IsZero() != c.claim.removing.IsZero())
		r.holdBudget(c, c.claim.pool)
	default:
		before := set(r.nodes, c, c.node)
		r.changed(c, false, before == nil || before.removing.IsZero() != c.node.removing.IsZero())
		r.holdBudget(c, c.node.pool)
	}
}

// set takes over what the object became, and returns what it was; nil: there was none.
func set[T any](all map[string]*T, c *change, now *T) *T {
	before := all[c.key]
	if c.gone {
		delete(all, c.key)
	} else {
		all[c.key] = now
	}
	return before
}

func (r *replay) changed(c *change, launched, other bool) {
	if !r.counts(c) {
		return
	}
	if launched && !c.gone {
		r.account.Launched++
	}
	if c.gone && c.claim != nil {
		r.account.Removed++
	}
	if launched || other || c.gone {
		r.account.LastChange = c.seen
	}
}

func (r *replay) takePod(c *change) {
	before := set(r.pods, c, c.pod)
	if before != nil && before.uid != c.pod.uid {
		delete(r.waiting, string(before.uid)) // another one of the same name
		before = nil
	}
	uid := string(c.pod.uid)
	since, waited := r.waiting[uid]
	if c.pod.node == "" && !c.gone && !c.pod.stopping && !c.pod.finished() {
		if !waited {
			r.waiting[uid] = c.seen
		}
	} else if waited {
		delete(r.waiting, uid)
		if r.counts(c) {
			r.account.LongestWait = max(r.account.LongestWait, c.seen.Sub(later(since, r.from)))
		}
	}
	if !r.counts(c) {
		return
	}
	r.account.MostWaiting = max(r.account.MostWaiting, len(r.waiting))
	if c.pod.target == "" || before != nil && before.target != "" {
		return
	}
	r.account.LastChange = c.seen
	if c.pod.target == evictedReason {
		r.account.Evicted++
	} else {
		r.account.Lost++
	}
}

// holdBudget holds the pool against its budgets. They count nodes that are initialized and whose machine is not being
// terminated yet.
func (r *replay) holdBudget(c *change, pool string) {
	p := r.pools["/"+pool]
	if p == nil || !r.counts(c) {
		return
	}
	total, disrupted := 0, 0
	for _, owner := range r.claims {
		n := r.nodes["/"+owner.nodeName]
		if owner.pool != pool || owner.terminating || n == nil || !n.counts {
			continue
		}
		total++
		if !n.removing.IsZero() || !owner.removing.IsZero() {
			disrupted++
		}
	}
	may := allowed(p.Budgets, total)
	if disrupted > r.account.MostDisrupted {
		r.account.MostDisrupted, r.account.Allowed = disrupted, may
	}
	if disrupted > may && !r.told[pool] {
		r.told[pool] = true
		r.account.Broken = append(r.account.Broken, fmt.Sprintf("%s: %d of the %d nodes of pool %s were disrupted at once, its budgets allow %d",
			c.seen.Format("15:04:05.000"), disrupted, total, pool, may))
	}
}

// allowed returns how many of the nodes may be disrupted at once; percentages are rounded up.
func allowed(budgets []string, nodes int) int {
	may := NoBudget
	for _, b := range budgets {
		text, percent := strings.CutSuffix(b, "%")
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0 // as the autoscaler reads it; the API server lets none of these in
		}
		if percent {
			n = (nodes*n + 99) / 100
		}
		may = min(may, n)
	}
	return may
}
