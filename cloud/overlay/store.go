// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"sync"

	"karpenter/cloud"
)

// Store applies the Set it was given last. The zero value is ready and has
// evaluated no pool. It is safe for concurrent use.
type Store struct {
	mu    sync.Mutex
	set   *Set
	pools map[string]*memory
}

// memory is the types of one pool as handed out last, so that equal types give
// equal pointers.
type memory struct {
	overlaid map[*cloud.InstanceType]*cloud.InstanceType // by what they were made from
	applied  map[string]applied                          // by name of the type
}

// Swap replaces the Set and reports whether that changes anything. Types of
// pools that the new Set changes in the same way stay cached.
func (s *Store) Swap(set *Set) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set != nil && s.set.equal(set) {
		return false
	}
	kept := map[string]*memory{}
	for pool, m := range s.pools {
		if s.set.agrees(set, pool) {
			kept[pool] = m
		}
	}
	s.set, s.pools = set, kept
	return true
}

// Evaluated reports whether there has been an evaluation.
func (s *Store) Evaluated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set != nil
}

// Overlay returns the types of a pool as overlaid. Nothing handed in is
// modified, and what is handed out is shared. The error is a
// cloud.UnevaluatedNodePoolError or nil.
func (s *Store) Overlay(pool string, types []*cloud.InstanceType) ([]*cloud.InstanceType, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		return nil, unevaluated(pool)
	}
	own, ok := s.set.pools[pool]
	if !ok {
		return nil, unevaluated(pool)
	}
	if len(s.set.rules) == 0 {
		return types, nil
	}
	old := s.pools[pool]
	now := &memory{overlaid: make(map[*cloud.InstanceType]*cloud.InstanceType, len(types)), applied: map[string]applied{}}
	out := make([]*cloud.InstanceType, len(types))
	for i, t := range types {
		known, changed := old.recall(t)
		if known == nil {
			known, changed = s.set.apply(own, t)
		}
		out[i], now.overlaid[t] = known, known
		if changed != (applied{}) {
			now.applied[t.Name] = changed
		}
	}
	s.pools[pool] = now
	return out, nil
}

// recall returns the cached result for the type, or nil.
func (m *memory) recall(t *cloud.InstanceType) (*cloud.InstanceType, applied) {
	if m == nil || m.overlaid[t] == nil {
		return nil, applied{}
	}
	return m.overlaid[t], m.applied[t.Name]
}

// Applied reports what overlays have changed of any of the named types, as
// handed out last for the pool.
func (s *Store) Applied(pool string, types []string) (price, capacity bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.pools[pool]
	if m == nil {
		return false, false
	}
	for _, name := range types {
		price = price || m.applied[name].price
		capacity = capacity || m.applied[name].capacity
	}
	return price, capacity
}

func unevaluated(pool string) error {
	return &cloud.UnevaluatedNodePoolError{Err: fmt.Errorf("node pool %s", pool)}
}
