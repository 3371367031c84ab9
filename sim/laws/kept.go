package laws

import (
	"fmt"
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// Launched is a claim that was made to replace nodes, while no pod waited.
type Launched struct {
	At     time.Time
	prices uint64 // a fingerprint of them
}

// Moves follows which nodes were launched for consolidation, and what has
// changed since.
type Moves struct {
	// ByConsolidation are the claims made for consolidation, by UID.
	ByConsolidation map[types.UID]Launched
	// Changed is when demand last changed: a pod came or went other than by
	// being moved, a workload or pool was edited, a machine was lost.
	Changed time.Time
	owed    map[string]int // by workload: pods the process has moved and that are not made again
	lost    int            // machines
}

// NewMoves has seen nothing.
func NewMoves() *Moves {
	return &Moves{ByConsolidation: map[types.UID]Launched{}, owed: map[string]int{}}
}

func newKept(terms) *Law {
	m := NewMoves()
	return &Law{
		name:  "kept",
		means: "A node that consolidation has launched is not taken away by consolidation unless demand or prices changed in between: a pod came or went other than by being moved, a workload or pool was edited, a machine was lost, a price or what is for sale changed.",
		check: func(s *sim.Seen) error {
			if undone := m.See(s); undone != nil && undone.Idle {
				return fmt.Errorf("claim %s, launched by consolidation at %s, is consolidated; demand has not changed since %s, prices not at all",
					undone.Claim.Name, undone.Launched.At.Sub(s.Started), m.Changed.Sub(s.Started))
			}
			return nil
		},
	}
}

// Undone is a node that consolidation has launched and takes away.
type Undone struct {
	Claim    *v1.NodeClaim
	Launched Launched
	Idle     bool // neither demand nor prices changed in between
}

// See takes note of a step, and returns what consolidation undoes with it, or
// nil.
func (m *Moves) See(s *sim.Seen) *Undone {
	var out *Undone
	for _, c := range s.Changes {
		switch o := c.Object().(type) {
		case *corev1.Pod:
			m.pod(s, c, o)
		case *appsv1.Deployment, *appsv1.DaemonSet:
			m.Changed = s.Now
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
	if len(s.Changes) == 0 {
		m.losses(s)
	}
	return out
}

// losses notes machines that ended without having been told to.
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
	case began(c) && c.By == Us:
		m.owed[owner]++
	case began(c):
		m.Changed = s.Now
	case c.Old == nil && m.owed[owner] > 0:
		m.owed[owner]--
	case c.Old == nil:
		m.Changed = s.Now
	}
}

func (m *Moves) claim(s *sim.Seen, c store.Change, claim *v1.NodeClaim) *Undone {
	switch {
	case c.By != Us && began(c):
		m.Changed = s.Now
	case c.By != Us:
	case c.Old == nil && consolidating(s):
		m.ByConsolidation[claim.UID] = Launched{s.Now, prices(s.Cloud)}
	case c.New != nil && c.Old != nil && voluntary(claim) == model.Underutilized && voluntary(c.Old.(*v1.NodeClaim)) == "":
		if l, ok := m.ByConsolidation[claim.UID]; ok {
			return &Undone{claim, l, !m.Changed.After(l.At) && l.prices == prices(s.Cloud)}
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
