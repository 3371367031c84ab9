// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// Moves follows which nodes were launched for consolidation, and what has
// changed since.
type Moves struct {
	// ByConsolidation is when claims were made for consolidation, by UID: to
	// replace nodes while no pod waited.
	ByConsolidation map[types.UID]time.Time
	// Changed is when demand last changed: a pod came or went other than by
	// being moved, a workload or pool was edited, an instance was lost, a node stopped
	// being ready and so had no capacity for a while, a node was launched for a moved
	// pod after another had gone astray.
	Changed time.Time
	owed    map[string]int     // by workload: pods the process has moved and that are not made again
	waiting map[types.UID]bool // pods made again, and not bound
	strays  map[types.UID]bool // as All has them
	astray  bool               // one of those made again is a stray
	lost    int                // instances
	version int64              // of the cloud
}

// NewMoves has seen nothing.
func NewMoves() *Moves {
	return &Moves{ByConsolidation: map[types.UID]time.Time{}, owed: map[string]int{}, waiting: map[types.UID]bool{}}
}

// kept follows what the instances cost whenever consolidation begins and
// nothing else is under way.
type kept struct {
	moves  *Moves
	at     time.Time // of the last such beginning; zero = none
	cost   model.Price
	prices uint64
	took   bool // a node has been removed since
}

func newKept(t terms) *Law {
	k := &kept{moves: NewMoves()}
	k.moves.strays = t.strays
	return &Law{
		name: "kept", check: k.check,
		means: "While neither demand nor prices change, each consolidation that removes a node makes the instances cheaper than before. So no sequence of moves leads back to where it began. `sim/laws` says exactly when demand counts as changed.",
	}
}

func (k *kept) check(s *sim.Seen) error {
	k.moves.See(s)
	begins := false
	for _, c := range s.Changes {
		claim, old := as[*v1.NodeClaim](c.New), as[*v1.NodeClaim](c.Old)
		if claim != nil && old != nil && c.By == Us && voluntary(claim) == model.Underutilized && voluntary(old) == "" {
			begins = true
		}
		if old != nil && c.By == Us && began(c) {
			k.took = true
		}
	}
	if !begins || !alone(s) {
		return nil
	}
	cost, now := model.Price(0), prices(s.Cloud)
	for _, m := range running(s) {
		cost += priceNow(s.Cloud, m)
	}
	before := *k
	k.at, k.cost, k.prices, k.took, k.moves.astray = s.Now, cost, now, false, false
	if before.took && !before.at.IsZero() && before.at.After(k.moves.Changed) && before.prices == now && cost >= before.cost {
		return fmt.Errorf("instances cost $%.4f/h when consolidation began at %s and $%.4f/h as it begins again; neither demand nor prices have changed",
			before.cost.Dollars(), before.at.Sub(s.Started), cost.Dollars())
	}
	return nil
}

// alone reports whether nothing is under way but one command that begins with
// this step.
func alone(s *sim.Seen) bool {
	marked := 0
	for c := range store.All[*v1.NodeClaim](s.API) {
		if c.DeletionTimestamp != nil || !conditions.IsTrue(c, v1.InitializedCondition) {
			return false
		}
		if voluntary(c) != "" {
			marked++
		}
	}
	_, pending := occupied(s)
	return marked == 1 && !pending
}

// Again is a node that consolidation has launched and removes.
type Again struct {
	Claim    *v1.NodeClaim
	Launched time.Time
	Idle     bool // demand did not change in between
}

// See takes note of a step, and returns what consolidation moves again with it,
// or nil.
func (m *Moves) See(s *sim.Seen) *Again {
	var out *Again
	for _, c := range s.Changes {
		switch o := c.Object().(type) {
		case *corev1.Pod:
			m.pod(s, c, o)
		case *appsv1.Deployment, *appsv1.DaemonSet:
			m.Changed = s.Now
		case *corev1.Node:
			if old := as[*corev1.Node](c.Old); old != nil && isReady(old) && !isReady(o) {
				m.Changed = s.Now
			}
		case *v1.NodePool:
			if c.By != Us {
				m.Changed = s.Now
			}
		case *v1.NodeClaim:
			if u := m.claim(s, c, o); u != nil {
				out = u
			}
		}
	}
	if v := s.Cloud.Version(); v != m.version {
		m.version = v
		m.losses(s)
	}
	return out
}

// losses notes instances that ended without having been told to.
func (m *Moves) losses(s *sim.Seen) {
	lost := 0
	for _, x := range s.Cloud.Machines() {
		if x.Lost {
			lost++
		}
	}
	if lost != m.lost {
		m.lost, m.Changed = lost, s.Now
	}
}

func (m *Moves) pod(s *sim.Seen, c store.Change, p *corev1.Pod) {
	if len(p.OwnerReferences) == 0 || ownedByDaemonSet(p) {
		return
	}
	owner := string(p.OwnerReferences[0].UID)
	switch {
	case began(c):
		delete(m.waiting, p.UID)
		if c.By == Us {
			m.owed[owner]++
		} else {
			m.Changed = s.Now
		}
	case c.Old == nil && m.owed[owner] > 0:
		m.owed[owner]--
		m.waiting[p.UID] = true
	case c.Old == nil:
		m.Changed = s.Now
	case m.waiting[p.UID] && p.Spec.NodeName != "":
		delete(m.waiting, p.UID)
		m.astray = m.astray || m.strays[p.UID]
	}
}

func (m *Moves) claim(s *sim.Seen, c store.Change, claim *v1.NodeClaim) *Again {
	switch {
	case began(c) && (c.By != Us || voluntary(claim) != model.Underutilized && voluntary(claim) != model.Empty):
		m.Changed = s.Now
	case c.By != Us:
	case c.Old == nil && consolidating(s):
		m.ByConsolidation[claim.UID] = s.Now
	case c.Old == nil && m.astray && len(m.waiting) > 0:
		m.Changed = s.Now
	case c.New != nil && c.Old != nil && voluntary(claim) == model.Underutilized && voluntary(c.Old.(*v1.NodeClaim)) == "":
		if at, ok := m.ByConsolidation[claim.UID]; ok {
			return &Again{claim, at, !m.Changed.After(at)}
		}
	}
	return nil
}

// consolidating reports whether nodes are being replaced and no pod waits.
func consolidating(s *sim.Seen) bool {
	if _, pending := occupied(s); pending {
		return false
	}
	for c := range store.All[*v1.NodeClaim](s.API) {
		if voluntary(c) == model.Underutilized && c.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

// priceNow returns what the instance costs now, or did when it was launched if its
// offering is gone.
func priceNow(c *simcloud.Cloud, m simcloud.Machine) model.Price {
	for _, t := range c.Types() {
		for i := range t.Offerings {
			if o := &t.Offerings[i]; t.Name == m.Offering.Type && o.Zone() == m.Offering.Zone && o.CapacityType() == m.Offering.CapacityType {
				return o.Price
			}
		}
	}
	return m.Price
}

func prices(c *simcloud.Cloud) uint64 {
	h := fnv.New64a()
	for _, t := range c.Types() {
		for i := range t.Offerings {
			o := &t.Offerings[i]
			fmt.Fprint(h, t.Name, o.Zone(), o.CapacityType(), o.Price, o.Available)
		}
	}
	return h.Sum64()
}
