// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"karpenter/model"
)

// dealer gives pods the devices that are of no single node, before anything is planned:
// in the order in which the scheduler is likely to take the pods, each by first fit.
// What a pod gets is settled then, and keeps it where the devices can be used. So to
// planning such a device is a demand for labels.
//
// A request gets such devices if no device of a node or of a type is of a kind that it
// is content with. Other requests get devices of their node alone.
type dealer struct {
	*Book
	s      *model.Snapshot
	shelf  *shelf
	local  []*model.DeviceKind
	places [][]model.Requirements          // where devices are that are not everywhere, each once
	parts  map[*model.Shape]*parts         // remembered
	failed map[*model.Shape]string         // why pods of the shape get nothing more
	shared map[string][]model.Requirements // by ResourceClaim: where the devices are that pods of it have got
	taken  map[int]model.Resources         // by node: what pods that were sent there request
}

// parts is the claims of a shape apart.
type parts struct {
	common []model.DeviceClaim // for devices that are of no single node
	rest   []model.DeviceClaim
	why    string // neither can be planned
}

// deal is what the pods of a shape become.
type deal struct {
	on   []model.Requirements // where the devices are; as Shape.DeviceTerms
	rest []model.DeviceClaim
	why  string // they are refused; "" = they are not
}

func newDealer(b *Book, s *model.Snapshot) *dealer {
	d := &dealer{
		Book: b, s: s, shelf: b.stock(s.Devices).start.clone(),
		parts: map[*model.Shape]*parts{}, failed: map[*model.Shape]string{}, shared: map[string][]model.Requirements{}, taken: map[int]model.Resources{},
	}
	known := map[*model.DeviceKind]bool{}
	eachPool(s, func(p *model.DevicePool) {
		for i := range p.Devices {
			if k := p.Devices[i].Kind; p.Broken == "" && !known[k] {
				known[k] = true
				d.local = append(d.local, k)
			}
		}
	})
	seen := map[string]bool{}
	for i := range d.shelf.devices {
		if on := d.shelf.devices[i].On; len(on) > 0 && !seen[termsText(on)] {
			seen[termsText(on)] = true
			d.places = append(d.places, on)
		}
	}
	return d
}

// partsOf takes the claims of the shape apart.
func (d *dealer) partsOf(s *model.Shape) *parts {
	known := d.parts[s]
	if known == nil {
		known = &parts{}
		d.parts[s] = known
		for i := range s.Claims {
			d.part(known, s, &s.Claims[i])
		}
		if known.common == nil {
			known.rest = s.Claims
		}
	}
	return known
}

func (d *dealer) part(to *parts, s *model.Shape, claim *model.DeviceClaim) {
	compiled := compileClaim(claim)
	common := make([]bool, len(compiled.requests))
	for i := range compiled.requests {
		r := &compiled.requests[i]
		common[i] = d.isCommon(r)
		switch {
		case to.why != "":
		case common[i]:
			to.why = d.scattered(claim, r)
		default:
			to.why = d.besides(s, claim, r)
		}
	}
	if !slices.Contains(common, true) {
		to.rest = append(to.rest, *claim)
		return
	}
	first, second := *claim, *claim
	first.Requests, second.Requests, first.Constraints, second.Constraints = nil, nil, nil, nil
	for i := range claim.Requests {
		if common[i] {
			first.Requests = append(first.Requests, claim.Requests[i])
		} else {
			second.Requests = append(second.Requests, claim.Requests[i])
		}
	}
	for i, k := range compiled.constraints {
		about := map[bool]bool{}
		for j := range k.about {
			about[common[j]] = about[common[j]] || slices.Contains(k.about[j], true)
		}
		switch {
		case about[true] && about[false]:
			to.why = fmt.Sprintf("claim %s (%s for devices of a node and others together, which is not planned)", claim.Name, k)
		case about[true]:
			first.Constraints = append(first.Constraints, claim.Constraints[i])
		default:
			second.Constraints = append(second.Constraints, claim.Constraints[i])
		}
	}
	to.common = append(to.common, first)
	if len(second.Requests) > 0 {
		to.rest = append(to.rest, second)
	}
}

// isCommon reports whether the request gets devices that are of no single node.
func (d *dealer) isCommon(r *request) bool {
	if r.resource != "" || slices.ContainsFunc(d.local, func(k *model.DeviceKind) bool { return d.wants(r, k) }) {
		return false
	}
	return slices.ContainsFunc(d.s.Devices, func(p model.DevicePool) bool {
		return slices.ContainsFunc(p.Devices, func(v model.Device) bool { return d.wants(r, v.Kind) })
	})
}

// wants reports whether some way of the request is content with the kind.
func (b *Book) wants(r *request, k *model.DeviceKind) bool {
	return slices.ContainsFunc(r.ways, func(w *way) bool { v, _ := b.judge(w.DeviceWay, k); return v == yes })
}

// scattered says why a request for devices that are of no single node cannot be planned;
// "" = it can: all devices are not the same on every node if some are only on some.
func (d *dealer) scattered(claim *model.DeviceClaim, r *request) string {
	for i := range d.shelf.devices {
		v := &d.shelf.devices[i]
		for _, w := range r.ways {
			if says, _ := d.judge(w.DeviceWay, v.Kind); w.All && len(v.On) > 0 && says == yes {
				return fmt.Sprintf("claim %s (request %s is for all devices, of which %s is only on some nodes, which is not planned)", claim.Name, w.name, v.Name)
			}
		}
	}
	return ""
}

// besides says why a request that gets devices of its node cannot be planned beside
// devices that are of no single node; "" = it can. The scheduler looks at both: all that
// match must be had by a request for all, a pool that is broken ends its search, and so
// does a selector that fails.
func (d *dealer) besides(s *model.Shape, claim *model.DeviceClaim, r *request) string {
	if r.resource != "" {
		return ""
	}
	for i := range d.s.Devices {
		p := &d.s.Devices[i]
		for j := range p.Devices {
			v := &p.Devices[j]
			if _, ok := joined(s.Alternatives(), v.On); !ok {
				continue
			}
			for _, w := range r.ways {
				says, at := d.judge(w.DeviceWay, v.Kind)
				switch {
				case w.All && p.Broken != "" && len(v.On) == 0:
					return fmt.Sprintf("claim %s (request %s is for all devices, and pool %s of %s gives nothing: %s)", claim.Name, w.name, p.Name, p.Driver, p.Broken)
				case p.Broken != "":
				case says == fails:
					return fmt.Sprintf("claim %s (request %s: the selector %q fails on device %s of pool %s, so the scheduler does not bind the pod)",
						claim.Name, w.name, w.Selectors[at], v.Name, p.Name)
				case w.All && says == yes:
					return fmt.Sprintf("claim %s (request %s is for all devices, of nodes and of others, which is not planned)", claim.Name, w.name)
				}
			}
		}
	}
	return ""
}

// deal gives a pod of the shape its devices that are of no single node.
func (d *dealer) deal(s *model.Shape) deal {
	of := d.partsOf(s)
	switch why := d.failed[s]; {
	case of.why != "":
		return deal{why: of.why}
	case why != "":
		return deal{why: why}
	}
	start := s.DeviceTerms
	var open []model.DeviceClaim
	for i := range of.common {
		c := &of.common[i]
		if on, known := d.shared[c.Shared]; c.Shared != "" && known {
			var ok bool
			if start, ok = joined(start, on); !ok {
				return deal{why: fmt.Sprintf("claim %s (its devices are where those of other claims of the pod are not)", c.Name)}
			}
			continue
		}
		open = append(open, *c)
	}
	if len(open) == 0 {
		return deal{on: start, rest: of.rest}
	}
	on, ok := d.settle(s, open, of.rest, start)
	if !ok {
		d.failed[s] = d.whyNone(open)
		return deal{why: d.failed[s]}
	}
	return deal{on: on, rest: of.rest}
}

// settle takes devices for the claims, and returns where they are. Of places where there
// are some, it takes the first where a node has room for the pod, or else the one with the
// cheapest offering for it.
func (d *dealer) settle(s *model.Shape, claims, rest []model.DeviceClaim, start []model.Requirements) ([]model.Requirements, bool) {
	set := &Set{}
	for i := range claims {
		set.claims = append(set.claims, compileClaim(&claims[i]))
	}
	type option struct{ from, on []model.Requirements }
	var options []option
	try := func(from []model.Requirements) {
		mark := d.shelf.mark()
		how, search := d.findFrom(d.shelf, set, from)
		d.shelf.rollback(mark)
		if how == found && !slices.ContainsFunc(options, func(o option) bool { return termsText(o.on) == termsText(search.on) }) {
			options = append(options, option{from, search.on})
		}
	}
	try(start)
	if len(options) == 0 || termsText(options[0].on) != termsText(start) {
		for _, place := range d.places {
			if from, ok := joined(start, place); ok {
				try(from)
			}
		}
	}
	if len(options) == 0 {
		return nil, false
	}
	best, least, node := 0, math.Inf(1), -1
	for i := range options {
		if cost, at := d.cost(s, rest, options[i].on); cost < least {
			best, least, node = i, cost, at
		}
	}
	if node >= 0 {
		d.taken[node] = d.taken[node].Plus(s.Requests)
	}
	_, taken := d.findFrom(d.shelf, set, options[best].from)
	for i := range claims {
		if claims[i].Shared == "" {
			continue
		}
		var on []model.Requirements
		for _, p := range taken.picked {
			if p.claim == i {
				on, _ = joined(on, d.shelf.devices[p.device].On)
			}
		}
		d.shared[claims[i].Shared] = on
	}
	return options[best].on, true
}

// cost returns what a node for a pod of the shape costs where the terms hold: nothing
// if there is one with room and with devices for the rest of its claims, and which.
func (d *dealer) cost(s *model.Shape, rest []model.DeviceClaim, on []model.Requirements) (cost float64, node int) {
	there := *s
	there.DeviceTerms = on
	portion := []Portion{{rest, 1}}
	for i := range d.s.Nodes {
		n := &d.s.Nodes[i]
		free := n.Allocatable.Minus(n.Requested).Minus(d.taken[i])
		if !n.Deleting && !n.Closed && s.Requests.Fits(free) && takes(n, &there) && (len(rest) == 0 || d.Holds(n.Devices, portion)) {
			return 0, i
		}
	}
	least := math.Inf(1)
	demands := there.Alternatives()
	for i := range d.s.Pools {
		p := &d.s.Pools[i]
		if _, bad := model.Untolerated(p.Taints, s.Tolerations); bad || p.Unavailable != "" {
			continue
		}
		for _, t := range p.Types {
			labels := p.Requirements.And(t.Requirements...)
			if !s.Requests.Fits(t.Allocatable) || len(rest) > 0 && !d.Holds(t.Devices, portion) {
				continue
			}
			for j := range t.Offerings {
				o := &t.Offerings[j]
				if price := float64(o.Price); o.Available && price < least && slices.ContainsFunc(demands, func(r model.Requirements) bool {
					_, ok := labels.And(o.Requirements...).Compatible(r, d.s.WellKnown)
					return ok
				}) {
					least = price
				}
			}
		}
	}
	return least, -1
}

// whyNone says why there are no devices for the claims.
func (d *dealer) whyNone(claims []model.DeviceClaim) string {
	for i := range claims {
		c := compileClaim(&claims[i])
		for j := range c.requests {
			r := &c.requests[j]
			match, free := 0, 0
			for k := range d.shelf.devices {
				if d.wants(r, d.shelf.devices[k].Kind) {
					if match++; d.shelf.free(k) && d.shelf.enough(k) {
						free++
					}
				}
			}
			for _, p := range d.shelf.broken {
				if match == 0 && slices.ContainsFunc(p.Devices, func(v model.Device) bool { return d.wants(r, v.Kind) }) {
					return fmt.Sprintf("claim %s (request %s: pool %s of %s gives nothing: %s)", c.Name, r.name, p.Name, p.Driver, p.Broken)
				}
			}
			if free < r.least() {
				return fmt.Sprintf("claim %s (request %s: of %d devices that match, which are of no single node, %d can still be had, and it asks for %d)", c.Name, r.name, match, free, r.least())
			}
		}
	}
	return fmt.Sprintf("%s (what can still be had of devices that are of no single node is not enough)", claimNames(claims))
}

// joined returns the terms of which one must hold so that one of each holds. No terms
// demand nothing. It reports false if none can hold.
func joined(a, b []model.Requirements) ([]model.Requirements, bool) {
	switch {
	case len(a)+len(b) == 0:
		return nil, true
	case len(a) == 0:
		a = []model.Requirements{nil}
	case len(b) == 0:
		return a, true
	}
	var out []model.Requirements
	for _, x := range a {
		for _, y := range b {
			if _, ok := x.Intersects(y); !ok {
				continue
			}
			both := x.And(y...)
			if !slices.ContainsFunc(both, func(r model.Requirement) bool { return r.Present && !r.Complement && len(r.Values) == 0 }) {
				out = append(out, both)
			}
		}
	}
	return out, len(out) > 0
}

// termsText tells terms apart.
func termsText(terms []model.Requirements) string {
	return (&model.Shape{DeviceTerms: terms}).Identity(nil)
}

// eachPool calls f for every pool of devices of nodes and types.
func eachPool(s *model.Snapshot, f func(p *model.DevicePool)) {
	add := func(pools []model.DevicePool) {
		for i := range pools {
			f(&pools[i])
		}
	}
	for i := range s.Nodes {
		add(s.Nodes[i].Devices)
	}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			add(t.Devices)
		}
	}
}

func claimNames(claims []model.DeviceClaim) string {
	names := make([]string, len(claims))
	for i := range claims {
		names[i] = claims[i].Name
	}
	return "claim " + strings.Join(names, ", ")
}

// takes reports whether the taints and labels of a node let the pods run there.
func takes(n *model.Node, s *model.Shape) bool {
	_, bad := model.Untolerated(n.Taints, s.Tolerations)
	return !bad && slices.ContainsFunc(s.Alternatives(), func(alt model.Requirements) bool {
		_, ok := n.Labels.Satisfies(alt)
		return ok
	})
}

// inOrder returns positions of pods in the order in which the scheduler is likely to take
// them: entry of Pending, and pod of it.
func inOrder(all []model.Pending, which func(*model.Shape) bool) [][2]int {
	var out [][2]int
	for i := range all {
		if which(all[i].Shape) {
			for j := range all[i].Pods {
				out = append(out, [2]int{i, j})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b [2]int) int {
		p, q := &all[a[0]].Pods[a[1]], &all[b[0]].Pods[b[1]]
		return cmp.Or(cmp.Compare(all[b[0]].Shape.Priority, all[a[0]].Shape.Priority), p.Created.Compare(q.Created), cmp.Compare(p.Key(), q.Key()))
	})
	return out
}
