// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"cmp"
	"fmt"
	"slices"

	"karpenter/model"
)

// hardware is the devices of a node and what was given to pods, for a check that
// trusts nothing: after every device it adds everything up from the start.
type hardware struct {
	s     *model.Snapshot
	pools []*model.DevicePool // in the order in which devices are tried
	given []gift              // to pods before, for good
	over  bool                // the scheduler abandons the pod
	done  map[string]bool     // claims that pods share and that have devices

	labels model.Requirements // of the node: of devices that are of no single node, it can use some
	common *[]gift            // of those devices to pods before, on any node
}

// gift is a device that a pod gets.
type gift struct {
	pool   *model.DevicePool
	device *model.Device
	way    *model.DeviceWay
	claim  *model.DeviceClaim
	names  []string // of the request: alone, and with the way
	pod    string
}

func newHardware(s *model.Snapshot, pools []model.DevicePool) *hardware {
	return newHardwareAt(s, station{pools: pools}, nil, &[]gift{})
}

// newHardwareAt is newHardware of a node that can use these pools as well.
func newHardwareAt(s *model.Snapshot, at station, more []model.DevicePool, common *[]gift) *hardware {
	h := &hardware{s: s, done: map[string]bool{}, labels: at.labels, common: common}
	for i := range at.pools {
		h.pools = append(h.pools, &at.pools[i])
	}
	for i := range more {
		if slices.ContainsFunc(more[i].Devices, h.sees) {
			h.pools = append(h.pools, &more[i])
		}
	}
	slices.SortStableFunc(h.pools, func(a, b *model.DevicePool) int {
		late := map[bool]int{true: 1}
		return cmp.Or(late[h.late(a)]-late[h.late(b)], cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
	})
	return h
}

// sees reports whether the node can use the device.
func (h *hardware) sees(d model.Device) bool {
	return d.On == nil || slices.ContainsFunc(d.On, func(r model.Requirements) bool { _, ok := h.labels.Satisfies(r); return ok })
}

// late reports whether the node sees a device of the pool with binding conditions.
func (h *hardware) late(p *model.DevicePool) bool {
	return slices.ContainsFunc(p.Devices, func(d model.Device) bool { return d.Late && h.sees(d) })
}

// gifts returns all that was given to pods before.
func (h *hardware) gifts() []gift { return slices.Concat(h.given, *h.common) }

// give gives devices to a pod as the scheduler would, and reports whether it found
// any. Devices for admin access are not kept.
func (h *hardware) give(pod string, claims []model.DeviceClaim) bool {
	h.over = false
	claims = slices.DeleteFunc(slices.Clone(claims), func(c model.DeviceClaim) bool { return h.done[c.Shared] })
	gifts, ok := h.claims(pod, claims, nil)
	for _, g := range gifts {
		if !ok || g.way.Admin {
			continue
		}
		if slices.ContainsFunc(h.s.Devices, func(p model.DevicePool) bool { return p.Driver == g.pool.Driver && p.Name == g.pool.Name }) {
			*h.common = append(*h.common, g)
		} else {
			h.given = append(h.given, g)
		}
	}
	for _, c := range claims {
		if ok && c.Shared != "" {
			h.done[c.Shared] = true
		}
	}
	return ok
}

// claims finds devices for the claims, besides those found for claims before.
func (h *hardware) claims(pod string, claims []model.DeviceClaim, found []gift) ([]gift, bool) {
	if len(claims) == 0 {
		return found, true
	}
	c := &claims[0]
	return h.requests(pod, c, c.Requests, found, func(found []gift) ([]gift, bool) { return h.claims(pod, claims[1:], found) })
}

type rest func(found []gift) ([]gift, bool)

func (h *hardware) requests(pod string, c *model.DeviceClaim, requests []model.DeviceRequest, found []gift, then rest) ([]gift, bool) {
	if len(requests) == 0 {
		return then(found)
	}
	r := &requests[0]
	if plugs(h.pools, r.Resource) {
		return h.requests(pod, c, requests[1:], found, then)
	}
	for i := range r.Ways {
		w := &r.Ways[i]
		next := func(found []gift) ([]gift, bool) { return h.requests(pod, c, requests[1:], found, then) }
		g := gift{way: w, claim: c, names: []string{r.Name, r.Name + "/" + w.Name}, pod: pod}
		var all []gift
		ok := true
		if w.All {
			all, ok = h.everything(g)
		}
		if !ok {
			continue
		}
		count := w.Count
		if w.All {
			count = len(all)
		}
		if out, ok := h.devices(g, all, count, 0, found, next); ok || h.over {
			return out, ok
		}
	}
	return nil, false
}

// everything returns all devices that a way which wants all must have.
func (h *hardware) everything(g gift) ([]gift, bool) {
	var out []gift
	for _, p := range h.pools {
		if p.Broken != "" {
			return nil, false
		}
		for i := range p.Devices {
			g.pool, g.device = p, &p.Devices[i]
			_, can := takesOf(g.device.Kind, g.way)
			if h.selects(g.way, g.device.Kind) && can && h.sees(*g.device) {
				out = append(out, g)
			}
		}
	}
	return out, len(out) > 0
}

// devices finds as many devices, all of a list if there is one, and what follows.
func (h *hardware) devices(g gift, all []gift, count, from int, found []gift, then rest) ([]gift, bool) {
	if count == 0 {
		return then(found)
	}
	if all != nil {
		more := append(slices.Clone(found), all[len(all)-count])
		if !h.holds(more) {
			h.over = h.over || h.usable(more, false) && !constrained(g.claim, more)
			return nil, false
		}
		return h.devices(g, all, count-1, 0, more, then)
	}
	at := 0
	for _, p := range h.pools {
		for i := range p.Devices {
			if at++; p.Broken != "" || at <= from || !h.selects(g.way, p.Devices[i].Kind) || !h.sees(p.Devices[i]) {
				continue
			}
			g.pool, g.device = p, &p.Devices[i]
			more := append(slices.Clone(found), g)
			if !h.holds(more) {
				continue
			}
			if out, ok := h.devices(g, nil, count-1, at, more, then); ok || h.over {
				return out, ok
			}
		}
	}
	return nil, false
}

// selects reports whether all selectors of the way hold for the kind.
func (h *hardware) selects(w *model.DeviceWay, k *model.DeviceKind) bool {
	for _, text := range w.Selectors {
		if !slices.ContainsFunc(h.s.Selectors, func(s model.DeviceSelector) bool { return s.Text == text && slices.Contains(s.Matches, k.Key) }) {
			return false
		}
	}
	return true
}

// holds reports whether the pod may have what was found for it beside everything that
// others have.
func (h *hardware) holds(found []gift) bool {
	return h.usable(found, true) && !slices.ContainsFunc(found, func(g gift) bool { return !constrained(g.claim, found) })
}

// usable is holds, constraints not asked and capacities only if wanted.
func (h *hardware) usable(found []gift, capacities bool) bool {
	perClaim := map[*model.DeviceClaim]int{}
	for _, g := range found {
		if perClaim[g.claim]++; perClaim[g.claim] > 32 {
			return false
		}
		if slices.ContainsFunc(g.device.Taints, func(t model.Taint) bool {
			return !slices.ContainsFunc(g.way.Tolerations, func(o model.Toleration) bool { return o.Tolerates(t) })
		}) {
			return false
		}
	}
	if !h.apart(found) {
		return false
	}
	return !slices.ContainsFunc(found, func(g gift) bool { return !h.balance(g.pool, found, capacities) })
}

// apart reports whether no device is had by two that may not share it.
func (h *hardware) apart(found []gift) bool {
	for i, g := range found {
		used := slices.ContainsFunc(g.pool.InUse, func(u model.DeviceUse) bool {
			return u.Device == g.device.Name && !(u.Share && g.device.Kind.Shared)
		}) || slices.ContainsFunc(h.gifts(), func(o gift) bool { return o.device == g.device && !g.device.Kind.Shared })
		if used && !g.way.Admin {
			return false
		}
		for _, o := range found[:i] {
			if o.device == g.device && !g.device.Kind.Shared && (!g.way.Admin || o.claim == g.claim) {
				return false
			}
		}
	}
	return true
}

// balance reports whether capacities and counters of a pool are not overdrawn.
func (h *hardware) balance(p *model.DevicePool, found []gift, capacities bool) bool {
	counters := map[[2]string]int64{}
	for _, c := range p.Counters {
		counters[[2]string{c.Set, c.Name}] = c.Value
	}
	all := append(h.gifts(), found...)
	for i := range p.Devices {
		d := &p.Devices[i]
		capacity, users := map[string]int64{}, 0
		for _, u := range p.InUse {
			if u.Device == d.Name {
				users++
				for _, t := range u.Takes {
					capacity[t.Name] += t.Value
				}
			}
		}
		for _, g := range all {
			if g.device != d {
				continue
			}
			takes, can := takesOf(d.Kind, g.way)
			if !can && capacities {
				return false
			}
			users++
			for name, v := range takes {
				capacity[name] += v
			}
		}
		if users == 0 {
			continue
		}
		for _, c := range d.Kind.Capacity {
			if capacities && d.Kind.Shared && capacity[c.Name] > c.Value {
				return false
			}
		}
		for _, u := range d.Uses {
			counters[[2]string{u.Set, u.Name}] -= u.Value
		}
	}
	for _, left := range counters {
		if left < 0 {
			return false
		}
	}
	return true
}

// takesOf returns what the way takes of each capacity of the kind, and whether any
// device of the kind can give that.
func takesOf(k *model.DeviceKind, w *model.DeviceWay) (map[string]int64, bool) {
	out := map[string]int64{}
	for _, t := range w.Takes {
		out[t.Name] = -1
	}
	for _, c := range k.Capacity {
		v := c.Value
		if c.Policy {
			v = c.Default
		}
		for _, t := range w.Takes {
			if t.Name != c.Name {
				continue
			}
			v = t.Value
			if c.Policy && len(c.Values) > 0 {
				v = c.Value + 1
				for _, next := range slices.Backward(c.Values) {
					if next >= t.Value {
						v = next
					}
				}
			} else if c.Policy {
				for v = max(v, c.Min); c.Step > 0 && (v-c.Min)%c.Step != 0; v++ {
				}
				if c.Max > 0 && v > c.Max {
					return nil, false
				}
			}
		}
		if v > c.Value {
			return nil, false
		}
		out[c.Name] = v
	}
	for _, v := range out {
		if v < 0 {
			return nil, false
		}
	}
	return out, true
}

// constrained reports whether what was found for a claim meets its constraints.
func constrained(c *model.DeviceClaim, found []gift) bool {
	for _, k := range c.Constraints {
		seen := map[string]bool{}
		n := 0
		for _, g := range found {
			about := len(k.Requests) == 0 || slices.ContainsFunc(g.names, func(name string) bool { return slices.Contains(k.Requests, name) })
			if g.claim != c || !about {
				continue
			}
			v, ok := attributeOf(g, k.Match+k.Distinct, k.Distinct == "")
			if !ok {
				return false
			}
			seen[v] = true
			n++
		}
		if k.Match != "" && len(seen) > 1 || k.Distinct != "" && len(seen) < n {
			return false
		}
	}
	return true
}

// attributeOf returns the value of an attribute of a device, or what stands for one
// that is shared and not known.
func attributeOf(g gift, name string, unknown bool) (string, bool) {
	for _, a := range g.device.Kind.Attributes {
		if a.Name == name {
			return a.Type + " " + a.Text, a.Type != model.AttributeList
		}
	}
	for i, same := range g.pool.Alike {
		if unknown && same.Attribute == name && slices.Contains(same.Devices, g.device.Name) {
			return fmt.Sprintf("unknown %s %d", g.pool.Name, i), true
		}
	}
	return "", false
}

// sharing fails where pods that share a claim are planned on several nodes, and its
// devices are on one, or where only some of them are planned.
func (c *checker) sharing(plan *model.Plan) {
	at, left := map[string]string{}, map[string]int{}
	for _, p := range c.s.Pending {
		for _, claim := range p.Shape.Claims {
			if claim.Shared != "" && len(p.Shape.Refused) == 0 {
				left[claim.Shared] += len(p.Pods)
			}
		}
	}
	see := func(p model.Pod, place string) {
		for _, claim := range c.shapes[p.Key()].Claims {
			if !c.ofNodes(&claim) {
				continue
			}
			left[claim.Shared]--
			if known := at[claim.Shared]; claim.Shared != "" && known != "" && known != place {
				c.fail("pods that share claim %s are planned on %s and %s", claim.Shared, known, place)
			}
			at[claim.Shared] = place
		}
	}
	for _, p := range plan.Placements {
		see(p.Pod, "node "+p.Node)
	}
	for i := range plan.Launches {
		for _, p := range plan.Launches[i].Pods {
			see(p, fmt.Sprintf("launch %d", i))
		}
	}
	for claim := range at {
		if claim != "" && left[claim] > 0 {
			c.fail("%d pods that share claim %s are left, and others are planned", left[claim], claim)
		}
	}
}

// ofNodes reports whether some device of a node, or of a type, meets a request of the
// claim.
func (c *checker) ofNodes(claim *model.DeviceClaim) bool {
	h := newHardware(c.s, nil)
	meets := func(pools []model.DevicePool) bool {
		return slices.ContainsFunc(pools, func(p model.DevicePool) bool {
			return slices.ContainsFunc(p.Devices, func(d model.Device) bool {
				return slices.ContainsFunc(claim.Requests, func(r model.DeviceRequest) bool {
					return slices.ContainsFunc(r.Ways, func(w model.DeviceWay) bool { return h.selects(&w, d.Kind) })
				})
			})
		})
	}
	return slices.ContainsFunc(c.s.Nodes, func(n model.Node) bool { return meets(n.Devices) }) || slices.ContainsFunc(c.s.Pools, func(p model.Pool) bool {
		return slices.ContainsFunc(p.Types, func(t *model.InstanceType) bool { return meets(t.Devices) })
	})
}

// station is a node, or what a launch becomes, with the pods that are planned on it.
type station struct {
	pools  []model.DevicePool
	labels model.Requirements
	pods   []model.Pod
	taints []model.Taint // of a launch, to which daemons come first
	isNew  bool
}

// stationsOf returns the nodes of the plan that get pods by name, and the launches as they
// are planned by their position.
func (c *checker) stationsOf(plan *model.Plan) map[string]station {
	out := map[string]station{}
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		at := station{pools: n.Devices, labels: n.Labels}
		for _, p := range plan.Placements {
			if p.Node == n.Name {
				at.pods = append(at.pods, p.Pod)
			}
		}
		out[n.Name] = at
	}
	for i := range plan.Launches {
		l := &plan.Launches[i]
		for j := range c.s.Pools {
			if c.s.Pools[j].Name != l.Pool {
				continue
			}
			for _, o := range outcomes(&c.s.Pools[j], l) {
				if o.kind.Name == l.Type && o.offer.Zone == l.Zone && o.offer.CapacityType == l.CapacityType {
					out[launchKey(i)] = newStation(&c.s.Pools[j], l, o)
				}
			}
		}
	}
	return out
}

// newStation is the launch as one of its outcomes.
func newStation(p *model.Pool, l *model.Launch, o outcome) station {
	return station{pools: o.kind.Devices, labels: o.labels, pods: l.Pods, taints: p.Taints, isNew: true}
}

func launchKey(i int) string { return fmt.Sprint("launch ", i) }

// lacking returns the pods of a site that find no devices when they come in the
// scheduler's order, by priority, then by age, and those of the other sites among them.
func (c *checker) lacking(key string, at station, others map[string]station) []string {
	type arrival struct {
		model.Pod
		to string
	}
	sites := map[string]station{key: at}
	if len(c.s.Devices) > 0 {
		for name, other := range others {
			if name != key {
				sites[name] = other
			}
		}
	}
	var pods []arrival
	common := &[]gift{}
	nodes, done := map[string]*hardware{}, map[string]bool{}
	for name, on := range sites {
		nodes[name] = newHardwareAt(c.s, on, c.s.Devices, common)
		nodes[name].done = done
		for _, d := range c.s.Daemons {
			if on.isNew && accepts(on.labels, on.taints, d.Shape) {
				nodes[name].give(d.Name, d.Shape.Claims)
			}
		}
		for _, p := range on.pods {
			if len(c.shapes[p.Key()].Claims) > 0 {
				pods = append(pods, arrival{p, name})
			}
		}
	}
	slices.SortFunc(pods, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(c.shapes[b.Key()].Priority, c.shapes[a.Key()].Priority), a.Created.Compare(b.Created), cmp.Compare(a.Key(), b.Key()))
	})
	var out []string
	for _, p := range pods {
		if !nodes[p.to].give(p.Key(), c.shapes[p.Key()].Claims) && p.to == key {
			out = append(out, p.Key())
		}
	}
	return out
}

// supplies reports whether a node with these pools has devices for the pod that is
// pending beside others.
func (a *adder) supplies(pools []model.DevicePool, others []model.Pod) bool {
	return len(a.pod.Shape.Claims) == 0 || len(a.lacking("", station{pools: pools, pods: append(slices.Clip(others), a.one)}, nil)) == 0
}

// follows reports whether the pod that is pending shares a claim with others that are: it
// must be where they are, and is not planned without them.
func (a *adder) follows() bool {
	n := 0
	for i := range a.s.Pending {
		if slices.ContainsFunc(a.s.Pending[i].Shape.Claims, func(c model.DeviceClaim) bool {
			return c.Shared != "" && slices.ContainsFunc(a.pod.Shape.Claims, func(o model.DeviceClaim) bool { return o.Shared == c.Shared })
		}) {
			n += len(a.s.Pending[i].Pods)
		}
	}
	return n > 1
}

// supply has a pod use devices of the node from now on.
func supply(s *model.Snapshot, n *model.Node, pod model.Pod, shape *model.Shape) bool {
	if len(shape.Claims) == 0 {
		return true
	}
	h := newHardware(s, n.Devices)
	if !h.give(pod.Key(), shape.Claims) {
		return false
	}
	n.Devices = slices.Clone(n.Devices)
	for i := range n.Devices {
		p := &n.Devices[i]
		for _, g := range h.given {
			if g.pool.Driver != p.Driver || g.pool.Name != p.Name {
				continue
			}
			u := model.DeviceUse{Device: g.device.Name, Share: g.device.Kind.Shared, Claim: pod.Key()}
			if takes, _ := takesOf(g.device.Kind, g.way); u.Share {
				for _, c := range g.device.Kind.Capacity {
					u.Takes = append(u.Takes, model.DeviceAmount{Name: c.Name, Value: takes[c.Name]})
				}
			}
			p.InUse = append(slices.Clip(p.InUse), u)
		}
	}
	return true
}
