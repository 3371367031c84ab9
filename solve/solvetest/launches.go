// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"slices"

	"karpenter/model"
)

// CheapestLaunches is Cheapest where pools have minValues and offerings take
// from reservations: a node is launched as one of a list of types that all hold
// its pods and span what the pool demands.
func CheapestLaunches(s *model.Snapshot) (model.Price, bool) {
	l := &launcher{s: s, shape: s.Pending[0].Shape, left: map[string]int64{}}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			for _, o := range t.Offerings {
				if n, ok := l.left[o.ReservationID]; o.ReservationID != "" && (!ok || o.ReservationLeft < n) {
					l.left[o.ReservationID] = o.ReservationLeft
				}
			}
		}
	}
	return l.cheapest(len(s.Pending[0].Pods))
}

type launcher struct {
	s     *model.Snapshot
	shape *model.Shape
	left  map[string]int64 // by reservation
}

// cheapest launches for so many pods with the reservations that are left.
func (l *launcher) cheapest(pods int) (best model.Price, ok bool) {
	if pods == 0 {
		return 0, true
	}
	ids := []string{""}
	for id, n := range l.left {
		if n > 0 {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		l.left[id]--
		for n := 1; n <= pods; n++ {
			price, can := l.one(n, id)
			if !can {
				break
			}
			if rest, can := l.cheapest(pods - n); can && (!ok || price+rest < best) {
				best, ok = price+rest, true
			}
		}
		l.left[id]++
	}
	return best, ok
}

// one is the price of one node for so many pods that takes from the
// reservation, or from none.
func (l *launcher) one(pods int, id string) (best model.Price, ok bool) {
	for i := range l.s.Pools {
		pool := &l.s.Pools[i]
		if _, bad := model.Untolerated(firm(pool.Taints), l.shape.Tolerations); bad {
			continue
		}
		own := pool.Requirements.And(model.NewRequirement(model.LabelNodePool, model.In, pool.Name))
		for _, alt := range l.shape.Alternatives() {
			var types []*model.InstanceType
			price := model.Price(-1)
			for _, t := range pool.Types {
				for j := range t.Offerings {
					o := &t.Offerings[j]
					if o.Available && o.ReservationID == id && suitsOne(l.s, own, t, o, alt) && room(l.s, pool, t, l.shape, pods) == pods {
						types = append(types, t)
						if price < 0 || o.Price < price {
							price = o.Price
						}
					}
				}
			}
			few := slices.ContainsFunc(pool.Requirements, func(r model.Requirement) bool {
				allowed, _ := own.And(alt...).Get(r.Key)
				return span(types, r.Key, allowed) < r.MinValues
			})
			if price >= 0 && !few && (!ok || price < best) {
				best, ok = price, true
			}
		}
	}
	return best, ok
}
