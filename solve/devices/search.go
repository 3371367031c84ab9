// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"maps"
	"math/bits"
	"slices"

	"karpenter/model"
)

// mostSteps is how many devices one search looks at. A search that needs more has
// failed, and says so.
const mostSteps = 1_000_000

// longSearch is how many devices a search looks at before it asks in advance whether devices
// are short for the requests behind. Few searches get there.
const longSearch = 5_000

// outcome is how a search ended.
type outcome int8

const (
	found outcome = iota
	none
	failed  // the scheduler abandons the pod: a selector fails, or a constraint forbids one of all devices
	tooLong // mostSteps was not enough
	full    // the claim would have more devices than a claim can
)

// search finds devices for the claims of one pod on a shelf.
type search struct {
	*Book
	*shelf
	set    *Set
	picked []pick
	all    map[*way][]int
	limits [][]limit // by claim and constraint
	counts []int     // by claim: devices
	left   int       // steps

	on    []model.Requirements // where the devices found so far can be used, as model.Device.On
	blind []bool               // by device: it is not for this search; nil = none is
}

// pick is a device that was found for a claim.
type pick struct {
	claim, request, way int
	device              int
}

// limit is a constraint with what the devices found so far have.
type limit struct {
	values []value // of the devices, in the order in which they were found
}

// find takes devices for the set from the shelf, or leaves it as it is.
func (b *Book) find(h *shelf, set *Set) (outcome, []pick) {
	if !set.shares() {
		return b.findAll(h, set)
	}
	set = set.without(h.shared)
	how, picked := b.findAll(h, set)
	if how == found {
		h.shared = maps.Clone(h.shared)
		if h.shared == nil {
			h.shared = map[string]bool{}
		}
		for _, c := range set.claims {
			if c.Shared != "" {
				h.shared[c.Shared] = true
			}
		}
	}
	return how, picked
}

// findAll is find for claims that have no devices yet.
func (b *Book) findAll(h *shelf, set *Set) (outcome, []pick) {
	how, s := b.findFrom(h, set, nil, nil)
	return how, s.picked
}

// findFrom is findAll for a pod that must be where one of the terms holds; none = it may
// be anywhere. It cannot use devices to which it is blind; nil = it is to none.
func (b *Book) findFrom(h *shelf, set *Set, on []model.Requirements, blind []bool) (outcome, *search) {
	s := &search{Book: b, shelf: h, set: set, all: map[*way][]int{}, counts: make([]int, len(set.claims)), left: mostSteps, on: on, blind: blind}
	mark := h.mark()
	for i := range set.claims {
		s.limits = append(s.limits, make([]limit, len(set.claims[i].constraints)))
		for _, r := range set.claims[i].requests {
			for _, w := range r.ways {
				if how := s.gather(w); how != found {
					return how, s
				}
			}
		}
	}
	how := s.request(0, 0)
	if how != found {
		h.rollback(mark)
		return how, s
	}
	s.settle(mark)
	return found, s
}

// gather finds the devices that a way which asks for all must have.
func (s *search) gather(w *way) outcome {
	if !w.All {
		return found
	}
	if len(s.broken) > 0 {
		return none
	}
	devices := []int{}
	for i := range s.devices {
		s.left--
		switch v, _ := s.judge(w.DeviceWay, s.devices[i].Kind); v {
		case fails:
			return failed
		case yes:
			if _, ok := asked(s.devices[i].Kind, w.Takes); ok {
				devices = append(devices, i)
			}
		}
	}
	s.all[w] = devices
	return found
}

// settle has admin access use nothing, now that the pod has its devices.
func (s *search) settle(mark int) {
	if !slices.ContainsFunc(s.done[mark:], func(t step) bool { return t.admin }) {
		return
	}
	steps := slices.Clone(s.done[mark:])
	s.rollback(mark)
	for _, t := range steps {
		if !t.admin {
			s.take(t)
		}
	}
}

// request finds devices for a request and for all behind it.
func (s *search) request(claim, at int) outcome {
	if claim == len(s.set.claims) {
		return found
	}
	c := &s.set.claims[claim]
	if at == len(c.requests) {
		how := s.request(claim+1, 0)
		if how == full { // other ways for the claims before may leave room for a smaller one
			return none
		}
		return how
	}
	if s.plugins[c.requests[at].resource] {
		return s.request(claim, at+1)
	}
	if mostSteps-s.left > longSearch && s.short(claim, at) {
		return none
	}
	ways := c.requests[at].ways
	all := full
	for i := range ways {
		switch how := s.device(claim, at, i, 0, 0); how {
		case found, failed, tooLong:
			return how
		case none:
			all = none
		}
	}
	return all
}

// short reports whether fewer devices are free than a request and those behind it need that
// can have no others. It does not if the scheduler could abandon the pod on the way, as it
// looks at the devices one after the other.
func (s *search) short(claim, at int) bool {
	if len(s.devices) > 64 {
		return false
	}
	need := map[uint64]int{} // by the devices that can be had, a bit each
	for ; claim < len(s.set.claims); claim, at = claim+1, 0 {
		c := &s.set.claims[claim]
		total := s.counts[claim]
		for _, r := range c.requests[at:] {
			if s.plugins[r.resource] {
				continue
			}
			most := 0
			for _, w := range r.ways {
				can, ok := s.candidates(w)
				if !ok || w.All {
					return false
				}
				if most = max(most, w.Count); len(r.ways) == 1 && !w.Admin && can&s.shareable() == 0 {
					need[can] += w.Count
				}
			}
			if total += most; total > mostResults {
				return false
			}
		}
	}
	for can := range need {
		sum := 0
		for other, n := range need {
			if other&^can == 0 {
				sum += n
			}
		}
		if sum > bits.OnesCount64(can) {
			return true
		}
	}
	return false
}

// candidates returns the free devices that a way is content with, a bit each. They are not
// known if a selector fails on some.
func (s *search) candidates(w *way) (can uint64, known bool) {
	s.left -= len(s.devices)
	for i := range s.devices {
		d := &s.devices[i]
		switch v, _ := s.judge(w.DeviceWay, d.Kind); {
		case v == fails:
			return 0, false
		case v == yes && s.free(i) && !tainted(d.Taints, w.Tolerations) && (s.blind == nil || !s.blind[i]):
			if _, ok := asked(d.Kind, w.Takes); ok {
				can |= 1 << i
			}
		}
	}
	return can, true
}

// shareable returns the devices that several requests can have, a bit each.
func (s *search) shareable() (out uint64) {
	for i := range s.devices {
		if s.devices[i].Kind.Shared {
			out |= 1 << i
		}
	}
	return out
}

// device finds the n-th device for a way, among those from a position on, and all
// behind it.
func (s *search) device(claim, at, wayAt, n, from int) outcome {
	c := &s.set.claims[claim]
	w := c.requests[at].ways[wayAt]
	want := w.Count
	if w.All {
		if want = len(s.all[w]); want == 0 {
			return none
		}
	}
	if n >= want {
		return s.request(claim, at+1)
	}
	if want-n > mostResults-s.counts[claim] {
		return full
	}
	if w.All {
		return s.try(claim, at, wayAt, n, s.all[w][n], 0)
	}
	for i := from; i < len(s.devices); i++ {
		if s.left--; s.left <= 0 {
			return tooLong
		}
		if !w.Admin && !s.free(i) {
			continue
		}
		switch v, _ := s.judge(w.DeviceWay, s.devices[i].Kind); v {
		case fails:
			return failed
		case no:
			continue
		}
		if how := s.try(claim, at, wayAt, n, i, i+1); how != none {
			return how
		}
	}
	return none
}

// try takes a device for a way if it can be used where the others can, and goes on, from
// a position for the next device.
func (s *search) try(claim, at, wayAt, n, i, next int) outcome {
	if s.blind != nil && s.blind[i] {
		return none
	}
	before := s.on
	if on, ok := joined(before, s.devices[i].On); ok {
		s.on = on
	} else {
		return none
	}
	how := s.use(claim, at, wayAt, n, i, next)
	if how != found {
		s.on = before
	}
	return how
}

// use is try, places not asked.
func (s *search) use(claim, at, wayAt, n, i, next int) outcome {
	c := &s.set.claims[claim]
	w := c.requests[at].ways[wayAt]
	d := &s.devices[i]
	if w.Admin && !d.Kind.Shared && slices.ContainsFunc(s.picked, func(p pick) bool { return p.claim == claim && p.device == i }) {
		return none
	}
	if !w.Admin && !s.free(i) || !s.enough(i) || tainted(d.Taints, w.Tolerations) {
		return none
	}
	if !s.admit(claim, at, wayAt, d) {
		if w.All {
			return failed
		}
		return none
	}
	takes, ok := asked(d.Kind, w.Takes)
	if !ok || d.Kind.Shared && !s.holds(i, takes) {
		s.dismiss(claim, at, wayAt)
		return none
	}
	mark := s.mark()
	t := step{device: i, admin: w.Admin}
	if d.Kind.Shared {
		t.shared, t.takes = true, takes
	}
	t.again = !t.shared && !s.free(i)
	s.take(t)
	s.picked = append(s.picked, pick{claim, at, wayAt, i})
	s.counts[claim]++
	how := s.device(claim, at, wayAt, n+1, next)
	if how == found {
		return found
	}
	s.counts[claim]--
	s.picked = s.picked[:len(s.picked)-1]
	s.rollback(mark)
	s.dismiss(claim, at, wayAt)
	return how
}

// admit reports whether the constraints of the claim let the device be one of its,
// and counts it if they do.
func (s *search) admit(claim, at, wayAt int, d *device) bool {
	c := &s.set.claims[claim]
	for k := range c.constraints {
		if !c.constraints[k].about[at][wayAt] {
			continue
		}
		v, ok := d.values[c.constraints[k].attribute]
		l := &s.limits[claim][k]
		if c.constraints[k].distinct {
			ok = ok && v.kind != unknown && !slices.Contains(l.values, v)
		} else {
			ok = ok && (len(l.values) == 0 || l.values[0] == v)
		}
		if !ok {
			s.undo(claim, at, wayAt, k)
			return false
		}
		l.values = append(l.values, v)
	}
	return true
}

// dismiss undoes admit.
func (s *search) dismiss(claim, at, wayAt int) {
	s.undo(claim, at, wayAt, len(s.set.claims[claim].constraints))
}

// undo undoes what admit has counted for the first constraints.
func (s *search) undo(claim, at, wayAt, constraints int) {
	c := &s.set.claims[claim]
	for k := range constraints {
		if l := &s.limits[claim][k]; c.constraints[k].about[at][wayAt] {
			l.values = l.values[:len(l.values)-1]
		}
	}
}

// tainted reports whether a taint keeps the device from the request.
func tainted(taints []model.Taint, tolerations []model.Toleration) bool {
	_, bad := model.Untolerated(taints, tolerations)
	return bad
}
