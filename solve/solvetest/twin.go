// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"slices"

	"karpenter/model"
)

// option is one offering with how many pods of a shape it takes.
type option struct {
	price model.Price
	room  int
}

func options(s *model.Snapshot, shape *model.Shape, most int) []option {
	var out []option
	for i := range s.Pools {
		pool := &s.Pools[i]
		if _, bad := model.Untolerated(firm(pool.Taints), shape.Tolerations); bad {
			continue
		}
		for _, t := range pool.Types {
			for j := range t.Offerings {
				if o := &t.Offerings[j]; o.Available && suits(s, pool, t, o, shape) {
					out = append(out, option{o.Price, room(s, pool, t, shape, most)})
				}
			}
		}
	}
	return out
}

// firm returns the taints that keep a pod away for good.
func firm(taints []model.Taint) []model.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
}

// suits reads the rule for a new node: what the pool demands, the type and the
// offering are and the pod wants must have values in common, and a label that
// is not well known must be the pool's.
func suits(s *model.Snapshot, pool *model.Pool, t *model.InstanceType, o *model.Offering, shape *model.Shape) bool {
	own := pool.Requirements.And(model.NewRequirement(model.LabelNodePool, model.In, pool.Name))
	return slices.ContainsFunc(shape.Alternatives(), func(alt model.Requirements) bool { return suitsOne(s, own, t, o, alt) })
}

func suitsOne(s *model.Snapshot, own model.Requirements, t *model.InstanceType, o *model.Offering, alt model.Requirements) bool {
	if r, ok := alt.Get(model.LabelHostname); ok && r.Operator() == model.DoesNotExist {
		return false // every node has one
	}
	if _, ok := own.Compatible(alt, s.WellKnown); !ok {
		return false
	}
	merged := own.And(alt...)
	if _, ok := t.Requirements.Intersects(merged); !ok {
		return false
	}
	_, ok := merged.Compatible(o.Requirements, s.WellKnown)
	return ok
}

// room counts how many pods of the shape fit next to the daemons.
func room(s *model.Snapshot, pool *model.Pool, t *model.InstanceType, shape *model.Shape, most int) int {
	used := model.Resources{}
	for _, d := range s.Daemons {
		if _, bad := model.Untolerated(firm(pool.Taints), d.Shape.Tolerations); bad {
			continue
		}
		if slices.ContainsFunc(t.Offerings, func(o model.Offering) bool { return suits(s, pool, t, &o, d.Shape) }) {
			used = used.Plus(d.Shape.Requests)
		}
	}
	n := 0
	for used = used.Plus(shape.Requests); n < most && used.Fits(t.Allocatable); used = used.Plus(shape.Requests) {
		n++
	}
	return n
}

// Cheapest returns the least price of new nodes for all pods of the only
// pending shape of s, by trying every combination. It reports false when there
// is no way.
func Cheapest(s *model.Snapshot) (model.Price, bool) {
	pods := len(s.Pending[0].Pods)
	choices := options(s, s.Pending[0].Shape, pods)
	best := make([]model.Price, pods+1) // for so many pods
	for n := 1; n <= pods; n++ {
		best[n] = -1
		for _, o := range choices {
			if o.room == 0 {
				continue
			}
			if rest := best[max(n-o.room, 0)]; rest >= 0 && (best[n] < 0 || rest+o.price < best[n]) {
				best[n] = rest + o.price
			}
		}
	}
	return best[pods], best[pods] >= 0
}
