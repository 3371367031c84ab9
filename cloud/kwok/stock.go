// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"slices"
	"sync"
	"time"

	"karpenter/cloud"
)

// unavailableFor is how long an offering is advertised as unavailable after a
// launch of it has failed.
const unavailableFor = 3 * time.Minute

// stock is the catalogue as advertised now. Safe for concurrent use.
type stock struct {
	mu    sync.Mutex
	base  []*cloud.InstanceType
	index map[string]int            // type → position
	out   map[offeringKey]time.Time // marked unavailable
	view  []*cloud.InstanceType     // handed out; replaced, never modified
}

func newStock(types []*cloud.InstanceType) *stock {
	s := &stock{base: types, view: types, index: make(map[string]int, len(types)), out: map[offeringKey]time.Time{}}
	for i, t := range types {
		s.index[t.Name] = i
	}
	return s
}

// types returns what is advertised at now: the same slice, and for each type
// the same pointer, as long as nothing has changed.
func (s *stock) types(now time.Time) []*cloud.InstanceType {
	s.mu.Lock()
	defer s.mu.Unlock()
	var back []string
	for key, until := range s.out {
		if !now.Before(until) {
			delete(s.out, key)
			back = append(back, key.instanceType)
		}
	}
	s.refreshLocked(back)
	return s.view
}

// soldOut marks offerings unavailable from now on, for unavailableFor.
func (s *stock) soldOut(now time.Time, keys []offeringKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []string
	for _, key := range keys {
		s.out[key] = now.Add(unavailableFor)
		gone = append(gone, key.instanceType)
	}
	s.refreshLocked(gone)
}

// refreshLocked makes the named types again in a new view.
func (s *stock) refreshLocked(names []string) {
	if len(names) == 0 {
		return
	}
	s.view = slices.Clone(s.view)
	for _, name := range names {
		i := s.index[name]
		t := *s.base[i]
		t.Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			_, out := s.out[keyOf(&t, &t.Offerings[j])]
			t.Offerings[j].Available = !out
		}
		s.view[i] = &t
	}
}
