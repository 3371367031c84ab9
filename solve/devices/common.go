// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"karpenter/model"
)

// dealer gives pods the devices that are of no single node, before anything is planned:
// in the order in which the scheduler is likely to take the pods, each by first fit.
// What a pod gets is settled then, and keeps it where the devices can be used. So to
// planning such a device is a demand for labels, and costs nothing.
//
// A request that devices of nodes can meet as well gets such a device if there is one. Its
// pod is kept from nodes and types with devices of their own that would do: the scheduler
// might take these, which are planned for others.
type dealer struct {
	*Book
	s      *model.Snapshot
	shelf  *shelf
	nodes  map[*model.DeviceKind][]string  // names of nodes with devices of the kind
	types  map[*model.DeviceKind][]string  // likewise
	drains map[*model.DeviceKind]bool      // kinds of which nodes or types have devices that use counters
	places [][]model.Requirements          // where devices are that are not everywhere, each once
	views  [][]bool                        // by device, that some nodes cannot use it; each once
	parts  map[try]*parts                  // remembered
	failed map[try]string                  // why pods of the shape get nothing more
	shared map[string][]model.Requirements // by ResourceClaim: where the devices are that pods of it have got
	taken  map[int]model.Resources         // by node: what pods that were sent there request
	spoilt []bool                          // by device: no other pod gets it
	prices map[dealt]float64               // of new nodes for pods that must be somewhere; remembered
}

// dealt is a shape of which pods got such devices, or none, by what that means for them.
type dealt struct {
	of  *model.Shape
	how string
}

// try is a shape of which every request gets devices that are of no single node if there
// are some that it is content with, or only those that no other devices meet.
type try struct {
	*model.Shape
	must bool
}

// parts is the claims of a shape apart.
type parts struct {
	common []model.DeviceClaim // for devices that are of no single node
	rest   []model.DeviceClaim
	strays []stray            // of the rest that might get devices that are of no single node
	avoid  model.Requirements // nodes and types with other devices for common
	why    string             // they cannot be planned
}

// stray is a request that is planned with devices of its node and might get others.
type stray struct {
	*request
	claim string
	// one device, whichever, and none that uses counters: then those of the node are enough for its
	// pod and for others, whatever it gets. A device that uses counters is in the way of others.
	one bool
}

// deal is what the pods of a shape become.
type deal struct {
	on   []model.Requirements // where the devices are; as Shape.DeviceTerms
	rest []model.DeviceClaim
	why  string // why the devices cannot be used; "" = they can
	lost bool   // no node that is known of can take them there, so nothing was taken
}

func newDealer(b *Book, s *model.Snapshot) *dealer {
	s = orderly(s)
	d := &dealer{
		Book: b, s: s, shelf: b.stock(s.Devices).start.clone(), nodes: map[*model.DeviceKind][]string{}, types: map[*model.DeviceKind][]string{}, drains: map[*model.DeviceKind]bool{},
		parts: map[try]*parts{}, failed: map[try]string{}, shared: map[string][]model.Requirements{}, taken: map[int]model.Resources{}, prices: map[dealt]float64{},
	}
	add := func(to map[*model.DeviceKind][]string, pools []model.DevicePool, name string) {
		for i := range pools {
			for j := range pools[i].Devices {
				k := pools[i].Devices[j].Kind
				d.drains[k] = d.drains[k] || len(pools[i].Devices[j].Uses) > 0
				if known := to[k]; pools[i].Broken == "" && (len(known) == 0 || known[len(known)-1] != name) {
					to[k] = append(known, name)
				}
			}
		}
	}
	for i := range s.Nodes {
		add(d.nodes, s.Nodes[i].Devices, s.Nodes[i].Name)
	}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			add(d.types, t.Devices, t.Name)
		}
	}
	d.spoilt = make([]bool, len(d.shelf.devices))
	seen := map[string]bool{}
	for i := range d.shelf.devices {
		if on := d.shelf.devices[i].On; len(on) > 0 && !seen[termsText(on)] {
			seen[termsText(on)] = true
			d.places = append(d.places, on)
		}
	}
	d.look()
	return d
}

// orderly returns the Snapshot without the pools that the scheduler tries after others on some
// nodes and before them on others, as only some see a device with binding conditions: there is
// one order for all nodes.
func orderly(s *model.Snapshot) *model.Snapshot {
	out := *s
	for i := range s.Devices {
		if !isLate(&s.Devices[i]) {
			continue
		}
		late := map[string]bool{} // by where devices are
		for _, v := range s.Devices[i].Devices {
			if on := termsText(v.On); v.Late || !late[on] {
				late[on] = v.Late
			}
		}
		if late[termsText(nil)] || !slices.Contains(slices.Collect(maps.Values(late)), false) {
			continue
		}
		if &out.Devices[0] == &s.Devices[0] {
			out.Devices = slices.Clone(s.Devices)
		}
		out.Devices[i].Broken = cmp.Or(out.Devices[i].Broken, "devices with binding conditions are on some of its nodes only, which is not planned")
	}
	return &out
}

// look finds out which devices nodes can use that exist or are on their way.
func (d *dealer) look() {
	if len(d.places) == 0 {
		return
	}
	known := map[string]bool{}
	for i := range d.s.Nodes {
		n := &d.s.Nodes[i]
		if n.Deleting || n.Closed {
			continue
		}
		sees := map[string]bool{}
		for _, place := range d.places {
			sees[termsText(place)] = slices.ContainsFunc(place, func(r model.Requirements) bool { _, ok := n.Labels.Satisfies(r); return ok })
		}
		blind := make([]bool, len(d.shelf.devices))
		for j := range blind {
			on := d.shelf.devices[j].On
			blind[j] = len(on) > 0 && !sees[termsText(on)]
		}
		if text := fmt.Sprint(blind); !known[text] {
			known[text] = true
			d.views = append(d.views, blind)
		}
	}
}

// partsOf takes the claims of the shape apart.
func (d *dealer) partsOf(s try) *parts {
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

func (d *dealer) part(to *parts, s try, claim *model.DeviceClaim) {
	compiled := compileClaim(claim)
	common := make([]bool, len(compiled.requests))
	for i := range compiled.requests {
		r := &compiled.requests[i]
		names, types := d.others(d.nodes, r), d.others(d.types, r)
		common[i] = d.isCommon(r) && (!s.must || len(names)+len(types) == 0)
		switch {
		case to.why != "":
		case common[i]:
			to.avoid = avoiding(avoiding(to.avoid, model.FieldName, names), model.LabelInstanceType, types)
			to.why = d.scattered(claim, r, len(names)+len(types) > 0)
		default:
			if to.why = d.besides(s.Shape, claim, r); d.tempts(r) {
				to.strays = append(to.strays, stray{r, claim.Name, len(r.ways) == 1 && r.least() == 1 && len(claim.Constraints) == 0 && !d.drainsBy(r)})
			}
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

// isCommon reports whether the request may get devices that are of no single node.
func (d *dealer) isCommon(r *request) bool { return r.resource == "" && d.tempts(r) }

// tempts reports whether some device that is of no single node meets the request.
func (d *dealer) tempts(r *request) bool {
	return slices.ContainsFunc(d.s.Devices, func(p model.DevicePool) bool {
		return slices.ContainsFunc(p.Devices, func(v model.Device) bool { return d.wants(r, v.Kind) })
	})
}

// others returns the names of those that have devices of their own for the request, sorted.
func (d *dealer) others(all map[*model.DeviceKind][]string, r *request) []string {
	var out []string
	for k, names := range all {
		if d.wants(r, k) {
			out = append(out, names...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// drainsBy reports whether devices of nodes or types that use counters meet the request.
func (d *dealer) drainsBy(r *request) bool {
	for k, uses := range d.drains {
		if uses && d.wants(r, k) {
			return true
		}
	}
	return false
}

// avoiding returns the demand with one not to have any of the values.
func avoiding(rs model.Requirements, key string, values []string) model.Requirements {
	if len(values) == 0 {
		return rs
	}
	return rs.And(model.NewRequirement(key, model.NotIn, values...))
}

// wants reports whether some way of the request is content with the kind.
func (b *Book) wants(r *request, k *model.DeviceKind) bool {
	return slices.ContainsFunc(r.ways, func(w *way) bool { v, _ := b.judge(w.DeviceWay, k); return v == yes })
}

// scattered says why a request for devices that are of no single node cannot be planned;
// "" = it can: all devices are not the same on every node if some are only on some, or of
// some, or if a pool of a node is broken.
func (d *dealer) scattered(claim *model.DeviceClaim, r *request, others bool) string {
	if all := slices.IndexFunc(r.ways, func(w *way) bool { return w.All }); all >= 0 && others {
		return ofBoth(claim, r.ways[all])
	}
	for i := range d.s.Nodes {
		n := &d.s.Nodes[i]
		for j := range n.Devices {
			if n.Devices[j].Broken != "" && slices.ContainsFunc(r.ways, func(w *way) bool { return w.All }) {
				return fmt.Sprintf("claim %s (request %s is for all devices, and pool %s of node %s gives nothing, which is not planned)", claim.Name, r.name, n.Devices[j].Name, n.Name)
			}
		}
	}
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
		if all := slices.IndexFunc(r.ways, func(w *way) bool { return w.All }); all >= 0 && p.Broken != "" {
			return fmt.Sprintf("claim %s (request %s is for all devices, and pool %s of %s gives nothing: %s)", claim.Name, r.ways[all].name, p.Name, p.Driver, p.Broken)
		}
		for j := range p.Devices {
			v := &p.Devices[j]
			if _, ok := joined(s.Alternatives(), v.On); !ok {
				continue
			}
			for _, w := range r.ways {
				says, at := d.judge(w.DeviceWay, v.Kind)
				switch {
				case p.Broken != "":
				case says == fails:
					return fmt.Sprintf("claim %s (request %s: the selector %q fails on device %s of pool %s, so the scheduler does not bind the pod)",
						claim.Name, w.name, w.Selectors[at], v.Name, p.Name)
				case w.All && says == yes:
					return ofBoth(claim, w)
				}
			}
		}
	}
	return ""
}

// ofBoth says that a way for all devices is about devices of nodes and about others.
func ofBoth(claim *model.DeviceClaim, w *way) string {
	return fmt.Sprintf("claim %s (request %s is for all devices, of nodes and of others, which is not planned)", claim.Name, w.name)
}

// deal gives a pod of the shape its devices that are of no single node.
func (d *dealer) deal(s *model.Shape) deal {
	by := try{Shape: s}
	out := d.try(by)
	if out.why != "" || out.lost {
		must := try{s, true}
		if other := d.try(must); out.why != "" || other.why == "" {
			by, out = must, other
		}
	}
	strays := d.partsOf(by).strays
	if out.why != "" || len(strays) == 0 {
		return out
	}
	if cost, _ := d.cost(s, out.rest, out.on); !math.IsInf(cost, 1) {
		out.why = d.spoil(strays)
	}
	return out
}

// spoil has no other pod get devices that the scheduler might take for these requests. It
// says why they cannot be planned, if they take other devices of the node then.
func (d *dealer) spoil(strays []stray) string {
	for i := range d.shelf.devices {
		for _, r := range strays {
			if !d.shelf.free(i) || !d.wants(r.request, d.shelf.devices[i].Kind) {
				continue
			}
			if d.spoilWith(i); !r.one {
				return fmt.Sprintf("claim %s (request %s can get some of its devices from the node and others, such as %s, from none, which is not planned)", r.claim, r.name, d.shelf.devices[i].Name)
			}
		}
	}
	return ""
}

// spoilWith has no other pod get the device, or one that needs of the same counters.
func (d *dealer) spoilWith(i int) {
	for j := range d.shelf.devices {
		same := func(u use) bool {
			return slices.ContainsFunc(d.shelf.devices[j].uses, func(o use) bool { return o.counter == u.counter })
		}
		d.spoilt[j] = d.spoilt[j] || j == i || slices.ContainsFunc(d.shelf.devices[i].uses, same)
	}
}

func (d *dealer) try(s try) deal {
	of := d.partsOf(s)
	switch why := cmp.Or(of.why, d.failed[s]); {
	case why != "":
		return deal{why: why}
	case of.common == nil:
		return deal{on: s.DeviceTerms, rest: of.rest}
	}
	var avoid []model.Requirements
	if of.avoid != nil {
		avoid = []model.Requirements{of.avoid}
	}
	start, ok := joined(s.DeviceTerms, avoid)
	var open []model.DeviceClaim
	for i := range of.common {
		c := &of.common[i]
		on, known := d.shared[c.Shared]
		if c.Shared == "" || !known {
			open = append(open, *c)
			continue
		}
		var can bool
		start, can = joined(start, on)
		ok = ok && can
	}
	if !ok {
		return deal{why: claimNames(of.common) + " (with devices in places that no node is in together)"}
	}
	if len(open) == 0 {
		return deal{on: start, rest: of.rest}
	}
	out := d.settle(s.Shape, open, of.rest, start)
	if out.why != "" {
		d.failed[s] = out.why
	}
	return out
}

// option is devices that a pod can have, and where they are.
type option struct {
	on   []model.Requirements
	take []step
	by   []pick // what they are for
}

// settle takes devices for the claims, and says where they are. Of places where there
// are some, it takes the first where a node has room for the pod, or else the one with the
// cheapest offering for it. Where no node can take the pod, nothing is taken.
func (d *dealer) settle(s *model.Shape, claims, rest []model.DeviceClaim, start []model.Requirements) deal {
	set := &Set{}
	for i := range claims {
		set.claims = append(set.claims, compileClaim(&claims[i]))
	}
	options := d.options(set, start)
	if len(options) == 0 {
		return deal{why: d.whyNone(claims)}
	}
	best, least, node := 0, math.Inf(1), -1
	for i := range options {
		if cost, at := d.cost(s, rest, options[i].on); cost < least {
			best, least, node = i, cost, at
		}
	}
	o := options[best]
	if math.IsInf(least, 1) {
		return deal{on: o.on, rest: rest, lost: true}
	}
	if node >= 0 {
		d.taken[node] = d.taken[node].Plus(s.Requests)
	}
	for _, t := range o.take {
		d.shelf.take(t)
	}
	for i := range claims {
		if claims[i].Shared == "" {
			continue
		}
		var on []model.Requirements
		for _, p := range o.by {
			if p.claim == i {
				on, _ = joined(on, d.shelf.devices[p.device].On)
			}
		}
		d.shared[claims[i].Shared] = on
	}
	return deal{on: o.on, rest: rest}
}

// options returns the devices that a pod with the claims would get in one place or
// another: wherever, then on nodes there are, then in each place where some devices are.
func (d *dealer) options(set *Set, start []model.Requirements) []option {
	var out []option
	try := func(from []model.Requirements, blind []bool) {
		hidden := slices.Clone(d.spoilt)
		for i := range blind {
			hidden[i] = hidden[i] || blind[i]
		}
		mark := d.shelf.mark()
		how, search := d.findFrom(d.shelf, set, from, hidden)
		if how == found && blind != nil && d.abandons(mark, set, search.on) {
			how = failed
		}
		if how == found && !slices.ContainsFunc(out, func(o option) bool { return termsText(o.on) == termsText(search.on) }) {
			out = append(out, option{search.on, slices.Clone(d.shelf.done[mark:]), search.picked})
		}
		d.shelf.rollback(mark)
	}
	try(start, nil)
	if len(out) > 0 && termsText(out[0].on) == termsText(start) {
		return out // they keep it from nowhere
	}
	for _, blind := range d.views {
		try(start, blind)
	}
	for _, place := range d.places {
		if from, ok := joined(start, place); ok {
			try(from, nil)
		}
	}
	return out
}

// abandons reports whether the scheduler could abandon a pod with the claims on some node where
// the terms hold, one that sees more devices than those that were searched. What was taken
// since the mark stays taken, and does not count.
func (d *dealer) abandons(mark int, set *Set, on []model.Requirements) bool {
	taken := slices.Clone(d.shelf.done[mark:])
	d.shelf.rollback(mark)
	how, _ := d.findFrom(d.shelf, set, on, d.spoilt)
	d.shelf.rollback(mark)
	for _, t := range taken {
		d.shelf.take(t)
	}
	return how == failed
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
	key := dealt{s, termsText(on)}
	least, known := d.prices[key]
	if known {
		return least, -1
	}
	least = math.Inf(1)
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
	d.prices[key] = least
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
					if match++; !d.spoilt[k] && d.shelf.free(k) && d.shelf.enough(k) {
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
