// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"maps"
	"slices"

	"karpenter/model"
	"karpenter/solve/devices"
)

// waiting is a pod that needs devices.
type waiting struct {
	kind int
	pod  model.Pod
}

// confirm looks at the nodes of the plan as the scheduler will: pods of high priority
// first, then older ones, each by first fit. Pods that find no devices then are taken
// out of the plan again. It reports whether there are none.
func (r repair) confirm() bool {
	if r.book == nil {
		return true
	}
	refused := map[string]bool{}
	moves, pods, _, bins := r.moves()
	bySite := map[int][]waiting{}
	for i, m := range moves {
		if s := r.snapshot.Pending[m.Kind].Shape; len(s.Claims) > 0 {
			for _, p := range pods[i] {
				bySite[m.Site] = append(bySite[m.Site], waiting{m.Kind, p})
			}
		}
	}
	for _, site := range slices.Sorted(maps.Keys(bySite)) {
		all := bySite[site]
		slices.SortFunc(all, func(a, b waiting) int { return r.sooner(a.kind, b.kind, &a.pod, &b.pod) })
		load := r.loadAt(site, bins)
		for _, w := range all {
			claims := r.snapshot.Pending[w.kind].Shape.Claims
			if load.Room(claims, 1) == 0 {
				refused[w.pod.Key()] = true
				continue
			}
			load = load.With(claims, 1)
		}
	}
	return r.takeOut(refused)
}

// sharers takes pods that share a claim out of the plan if one of them has no place: it
// could not have any once the claim has devices. Pods that need these near lose their places,
// too, and so may others that share claims with them. Others get what they had.
func (r repair) sharers() {
	if r.book == nil {
		return
	}
	for !r.takeOut(r.lonely()) {
		r.prune()
		for _, d := range r.demands {
			if len(shared(d.Shape)) > 0 {
				d.stuck, d.left = append(d.stuck, d.left...), nil
			}
		}
		r.insertAll()
		if !r.confirm() {
			r.prune()
		}
	}
}

// shared lists the claims of the shape that other pods may have, too.
func shared(s *model.Shape) []string {
	var out []string
	for _, c := range s.Claims {
		if c.Shared != "" {
			out = append(out, c.Shared)
		}
	}
	return out
}

// lonely returns the pods that have a place, and share a claim with one that has none.
func (r repair) lonely() map[string]bool {
	all, placed := map[string]int{}, map[string][]string{}
	each := func(kind int, f func(claim string)) {
		if s := r.snapshot.Pending[kind].Shape; len(s.Refused) == 0 {
			for _, claim := range shared(s) {
				f(claim)
			}
		}
	}
	for kind := range r.snapshot.Pending {
		each(kind, func(claim string) { all[claim] += len(r.snapshot.Pending[kind].Pods) })
	}
	if len(all) == 0 {
		return nil
	}
	moves, pods, _, _ := r.moves()
	for i, m := range moves {
		each(m.Kind, func(claim string) {
			for _, p := range pods[i] {
				placed[claim] = append(placed[claim], p.Key())
			}
		})
	}
	refused := map[string]bool{}
	for claim, keys := range placed {
		for _, key := range keys {
			refused[key] = refused[key] || len(keys) < all[claim]
		}
	}
	maps.DeleteFunc(refused, func(_ string, yes bool) bool { return !yes })
	return refused
}

// takeOut takes the pods out of the plan. It reports whether there are none.
func (r repair) takeOut(refused map[string]bool) bool {
	if len(refused) == 0 {
		return true
	}
	moves, pods, _, _ := r.moves()
	r.comeApart(refused)
	for i, m := range moves {
		for _, p := range pods[i] {
			if refused[p.Key()] {
				d := r.wholeOf(m.Kind)
				d.stuck = append(d.stuck, p)
			}
		}
	}
	r.unplace(refused)
	return false
}

// loadAt returns the devices of a node there is, or of a new one.
func (r repair) loadAt(site int, bins []int) *devices.Load {
	if n := len(r.snapshot.Nodes); site >= n {
		b := r.bins[bins[site-n]]
		return r.book.Load(r.catalogue.Types[r.catalogue.Offers[b.offer].Type].Devices)
	}
	return r.book.Load(r.snapshot.Nodes[site].Devices)
}
