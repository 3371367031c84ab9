// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/store"
)

const (
	collectedWithin = 10 * time.Minute                // an instance without claim
	joinsWithin     = 15*time.Minute + 10*time.Minute // or its instance goes: liveness, and the way there
	emptyWithin     = 6 * time.Minute                 // after consolidateAfter
	sampling        = 20 * time.Second
)

// since remembers when something was first seen to be so.
type since map[string]time.Time

// so notes whether it is so, and returns since when.
func (m since) so(key string, is bool, now time.Time) time.Time {
	if !is {
		delete(m, key)
		return now
	}
	if _, ok := m[key]; !ok {
		m[key] = now
	}
	return m[key]
}

func newOwned(t terms) *Law {
	alone, tick := since{}, every{period: sampling}
	return &Law{
		name:  "owned",
		means: "An instance without a NodeClaim is terminated within 10 minutes.",
		check: func(s *sim.Seen) error {
			if !tick.due(s.Now) {
				return nil
			}
			claims := map[types.UID]bool{}
			for c := range store.All[*v1.NodeClaim](s.API) {
				claims[c.UID] = true
			}
			for _, m := range running(s) {
				from := alone.so(m.ProviderID, !claims[m.ClaimUID] && !m.Deleting, s.Now)
				if s.Now.Sub(t.calm(s, from)) > collectedWithin {
					return fmt.Errorf("machine %s of claim %s, which is gone, has been running without it since %s", m.ProviderID, m.Claim, from.Sub(s.Started))
				}
			}
			return nil
		},
	}
}

func newOnce() *Law {
	version := int64(-1)
	return &Law{
		name:  "once",
		means: "No NodeClaim has two instances, and no instance has two NodeClaims.",
		check: func(s *sim.Seen) error {
			v := s.Cloud.Version()
			if v == version && !changed[*v1.NodeClaim](s) {
				return nil
			}
			version = v
			of := map[types.UID]string{}
			for _, m := range running(s) {
				if other := of[m.ClaimUID]; other != "" {
					return fmt.Errorf("claim %s has instances %s and %s", m.Claim, other, m.ProviderID)
				}
				of[m.ClaimUID] = m.ProviderID
			}
			by := map[string]string{}
			for c := range store.All[*v1.NodeClaim](s.API) {
				if id := c.Status.ProviderID; id != "" {
					if by[id] != "" {
						return fmt.Errorf("machine %s has claims %s and %s", id, by[id], c.Name)
					}
					by[id] = c.Name
				}
			}
			return nil
		},
	}
}

func newJoined(t terms) *Law {
	tick := every{period: sampling}
	return &Law{
		name:  "joined",
		means: "An instance that does not become a Node is terminated within 25 minutes.",
		check: func(s *sim.Seen) error {
			if !tick.due(s.Now) {
				return nil
			}
			joined := map[string]bool{}
			for n := range store.All[*corev1.Node](s.API) {
				joined[n.Spec.ProviderID] = true
			}
			for _, m := range running(s) {
				if !joined[m.ProviderID] && !m.Deleting && s.Now.Sub(t.calm(s, m.Created)) > joinsWithin {
					return fmt.Errorf("machine %s, launched at %s, still runs without Node", m.ProviderID, m.Created.Sub(s.Started))
				}
			}
			return nil
		},
	}
}

// idle follows how long nodes have been empty that nothing keeps.
type idle struct {
	terms
	empty since                // by claim
	moved map[string]time.Time // by pool: when a node was last removed, or the pool edited
	tick  every
}

func newIdle(t terms) *Law {
	i := &idle{t, since{}, map[string]time.Time{}, every{period: sampling}}
	return &Law{
		name: "idle", check: i.check,
		means: "Karpenter removes a node that runs only DaemonSet pods within 6 minutes after `consolidateAfter` of its NodePool. Exceptions: budgets, a pending pod, do-not-disrupt, or a CapacityBuffer keep the node, or other nodes of the NodePool are removed first.",
	}
}

func (i *idle) check(s *sim.Seen) error {
	for _, c := range s.Changes {
		switch o := c.Object().(type) {
		case *v1.NodeClaim:
			if began(c) {
				i.moved[o.Labels[v1.NodePoolLabelKey]] = s.Now
			}
		case *v1.NodePool:
			if c.By != Us {
				i.moved[o.Name] = s.Now
			}
		}
	}
	if !i.tick.due(s.Now) {
		return nil
	}
	busy, pending := occupied(s)
	reserved := buffered(s) > 0 && vacant(s, busy) <= buffered(s)
	for p := range store.All[*v1.NodePool](s.API) {
		for _, c := range claimsOf(s, p.Name) {
			from := i.empty.so(string(c.UID), !pending && !reserved && i.wasted(s, p, c, busy), s.Now)
			if i.moved[p.Name].After(from) {
				from = i.moved[p.Name]
			}
			if after := p.Spec.Disruption.ConsolidateAfter.Duration; after != nil && s.Now.Sub(i.calm(s, from)) > *after+emptyWithin {
				return fmt.Errorf("the node of claim %s in pool %s has been empty since %s", c.Name, p.Name, i.empty[string(c.UID)].Sub(s.Started))
			}
		}
	}
	return nil
}

// vacant counts the nodes of claims that are ready and not busy, in pools that consolidate: a node
// that is not ready is no capacity for a buffer. If
// there are more than pods of CapacityBuffers, one of these nodes is needed for none of
// them. Nodes of other pools prove nothing: a buffer's pods may not be allowed there, and
// if they are, stay where they were planned first.
func vacant(s *sim.Seen, busy map[string]bool) int {
	n := 0
	for p := range store.All[*v1.NodePool](s.API) {
		if p.Spec.Disruption.ConsolidateAfter.Duration == nil {
			continue
		}
		for _, c := range claimsOf(s, p.Name) {
			if node := nodeOf(s, c); node != nil && isReady(node) && !busy[node.Name] && c.DeletionTimestamp == nil {
				n++
			}
		}
	}
	return n
}

// occupied returns the nodes with pods that are no daemons, and whether any
// pod waits for a node.
func occupied(s *sim.Seen) (busy map[string]bool, pending bool) {
	busy = map[string]bool{}
	for p := range store.All[*corev1.Pod](s.API) {
		switch {
		case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || ownedByDaemonSet(p):
		case p.Spec.NodeName != "":
			busy[p.Spec.NodeName] = true
		case p.DeletionTimestamp == nil:
			pending = true
		}
	}
	return busy, pending
}

// wasted reports whether the claim's node is empty and may go.
func (i *idle) wasted(s *sim.Seen, p *v1.NodePool, c *v1.NodeClaim, busy map[string]bool) bool {
	if p.IsStatic() || p.DeletionTimestamp != nil || c.DeletionTimestamp != nil || !conditions.IsTrue(c, v1.InitializedCondition) {
		return false
	}
	n := nodeOf(s, c)
	if n == nil || !isReady(n) || busy[n.Name] || n.DeletionTimestamp != nil {
		return false
	}
	total, gone := 0, 0
	total, gone = going(s, p.Name)
	for _, other := range claimsOf(s, p.Name) {
		if o := nodeOf(s, other); o != nil && !isReady(o) {
			gone++
		}
	}
	return total > 0 && gone < mayGo(s, p, model.Empty)
}
