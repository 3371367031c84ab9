package pack

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
)

// floor is the least number of values of a label that the types of one launch
// must span: the minValues of a pool.
type floor struct {
	key   string
	least int
}

// floorsOf returns the floors of a pool.
func floorsOf(p *model.Pool) []floor {
	var out []floor
	for _, r := range p.Requirements {
		if r.MinValues > 0 {
			out = append(out, floor{r.Key, r.MinValues})
		}
	}
	return out
}

// strict reports whether launches of the pool must span values.
func (k *Packer) strict(pool int) bool { return len(k.floors[pool]) > 0 && !k.relaxing }

// demanding reports whether some pool of the range has minValues.
func (k *Packer) demanding(pools fit.Range) bool {
	return slices.ContainsFunc(k.floors[pools.From:pools.To], func(f []floor) bool { return len(f) > 0 })
}

// variety is what launches of one pool for pods with certain demands could
// list, and which values that spans.
type variety struct {
	*menu
	floors []floor
	values [][]value  // by choice: what it stands for
	names  [][]string // by floor: the values that occur
	most   int        // types a launch lists at most

	seen  []int // by value: the count it was last seen in
	first []int // by floor: where its values start in seen
	count int
	spans []int // by floor, of the last count
}

// value is one of the values of a floor's label.
type value struct{ floor, name int }

// varietyOf returns what launches as one of the offers, of one pool, may list.
// The demands are those of the pods.
func (k *Packer) varietyOf(pool int, offers fit.Bits, demands model.Requirements) *variety {
	allowed := make([]model.Requirement, len(k.floors[pool]))
	key := offers.Key()
	for i, f := range k.floors[pool] {
		allowed[i], _ = k.catalogue.Pools[pool].Requirements.And(demands...).Get(f.key)
		key += exact(allowed[i])
	}
	if v, ok := k.varieties[key]; ok {
		return v
	}
	v := &variety{floors: k.floors[pool], most: k.policy.MaxTypes, menu: k.menu(k.catalogue.Pools[pool].Offers.From, offers)}
	v.names, v.spans = make([][]string, len(v.floors)), make([]int, len(v.floors))
	for _, c := range v.choices {
		v.values = append(v.values, k.valuesOf(v, c, allowed))
	}
	for _, names := range v.names {
		v.first = append(v.first, len(v.seen))
		v.seen = append(v.seen, make([]int, len(names))...)
	}
	k.varieties[key] = v
	return v
}

// valuesOf returns the values a choice stands for. Of capacity types those
// count that can be had, as a launch lists no others.
func (k *Packer) valuesOf(v *variety, c choice, allowed []model.Requirement) []value {
	var out []value
	for i, f := range v.floors {
		var names []string
		if f.key == model.LabelCapacityType {
			for j, name := range v.types {
				if c.types&(1<<j) != 0 {
					names = append(names, name)
				}
			}
		} else if r, ok := k.catalogue.Types[c.row].Requirements.Get(f.key); ok && !r.Complement {
			names = r.Values
		}
		for _, name := range names {
			if !allowed[i].Has(name) {
				continue
			}
			at := slices.Index(v.names[i], name)
			if at < 0 {
				at, v.names[i] = len(v.names[i]), append(v.names[i], name)
			}
			out = append(out, value{i, at})
		}
	}
	return out
}

// exact is equal for equal requirements.
func exact(r model.Requirement) string { return r.String() + "\x00" + strings.Join(r.Values, "\x00") }

// reset starts a new count.
func (v *variety) reset() {
	v.count++
	clear(v.spans)
}

// gain returns how many values the choice adds to floors that lack some.
func (v *variety) gain(choice int) int {
	n := 0
	for _, x := range v.values[choice] {
		if v.seen[v.first[x.floor]+x.name] != v.count && v.spans[x.floor] < v.floors[x.floor].least {
			n++
		}
	}
	return n
}

// add counts the values of the choice.
func (v *variety) add(choice int) {
	for _, x := range v.values[choice] {
		if seen := &v.seen[v.first[x.floor]+x.name]; *seen != v.count {
			*seen = v.count
			v.spans[x.floor]++
		}
	}
}

// met reports whether what was counted is enough.
func (v *variety) met() bool {
	for i, f := range v.floors {
		if v.spans[i] < f.least {
			return false
		}
	}
	return true
}

// enough reports whether a launch that may list these choices, cheapest first,
// can span what it must.
func (v *variety) enough(among []int) bool {
	need := 0
	for _, f := range v.floors {
		need += f.least
	}
	if need > v.most {
		v.pick(among)
		return v.met()
	}
	v.reset()
	for _, c := range among {
		v.add(c)
		if v.met() {
			return true
		}
	}
	return false
}

// pick returns as few of the choices as it can so that a launch which lists
// them spans what it must, or as much of it as possible: the first of them,
// then whatever adds most, as many as a launch may list.
func (v *variety) pick(among []int) []int {
	v.reset()
	var out []int
	for len(among) > 0 && len(out) < v.most && !v.met() {
		best, most := among[0], 0
		if len(out) > 0 {
			for _, c := range among {
				if n := v.gain(c); n > most {
					best, most = c, n
				}
			}
			if most == 0 {
				break
			}
		}
		v.add(best)
		out = append(out, best)
	}
	return out
}

// fitting returns the choices of v with room for the requests and, as far as
// the pool has limits, no more than this capacity; nil = any.
func (k *Packer) fitting(v *variety, requests, capacity model.Resources) []int {
	var out []int
	for i, c := range v.choices {
		row := &k.catalogue.Types[c.row]
		if requests.Fits(row.Free) && (capacity == nil || k.limits.covers(row.Pool, capacity, row.Capacity)) {
			out = append(out, i)
		}
	}
	return out
}

// spanning returns d without what is too little for a launch with one pod of
// it to span what its pool demands.
func (k *Packer) spanning(d *fit.Demand) *fit.Demand {
	if k.policy.RelaxMinValues || !k.demanding(fit.Range{To: len(k.floors)}) {
		return d
	}
	return k.catalogue.Narrow(d, func(demands model.Requirements, offers fit.Bits) fit.Bits {
		for pool, floors := range k.floors {
			if len(floors) == 0 {
				continue
			}
			for _, sort := range k.sorts(offers.And(k.catalogue.Pools[pool].Usable)) {
				v := k.varietyOf(pool, sort, demands)
				if !v.enough(k.fitting(v, d.Shape.Requests, nil)) {
					offers = offers.Less(sort)
				}
			}
		}
		return offers
	})
}

// carries returns how many pods of the request, at most limit, a node bought
// from the offer takes beside what is taken, if pods may use these offers.
func (k *Packer) carries(offer int, offers fit.Bits, taken, request model.Resources, limit int) int {
	row := &k.catalogue.Types[k.catalogue.Offers[offer].Type]
	n := fit.Room(row.Free.Minus(taken), request, limit)
	if n == 0 || !k.strict(row.Pool) {
		return n
	}
	v := k.varietyOf(row.Pool, k.alike(offer, offers.And(k.catalogue.Pools[row.Pool].Usable)), nil)
	for n > 0 && !v.enough(k.fitting(v, taken.Plus(request.Times(int64(n))), nil)) {
		n--
	}
	return n
}

// spoils reports whether a pod of d would keep the bin, which spans what its
// pool demands, from doing so when it is bought as the offer.
func (k *Packer) spoils(b bin, d *demand, offer int) bool {
	if len(k.floors[k.poolOf(b.offer)]) == 0 {
		return false
	}
	fuller := b
	fuller.offer, fuller.take = offer, append(slices.Clone(b.take), portion{demand: d.index, pods: 1})
	return k.spans(b) && !k.spans(fuller)
}

// spans reports whether the types that nodes of the bin can be bought as span
// what its pool demands.
func (k *Packer) spans(b bin) bool {
	pool := k.poolOf(b.offer)
	if len(k.floors[pool]) == 0 {
		return true
	}
	v := k.varietyOf(pool, k.offersOf(b), k.demandsOf(b))
	return v.enough(k.fitting(v, k.podRequests(b), b.capacity))
}

// settledFor returns whether a pod of d can be bought a node from an offer once
// the node is settled for the cell: whether what is left then spans what the
// pool demands.
func (k *Packer) settledFor(d *demand, c *cell) func(offer int) bool {
	if k.relaxing || k.policy.RelaxMinValues || !k.demanding(fit.Range{To: len(k.floors)}) {
		return func(int) bool { return true }
	}
	pinned := k.catalogue.MatchAll(c.pins)
	type choices struct {
		pool   int
		offers *uint64 // of the alternative
	}
	known := map[choices]bool{}
	return func(offer int) bool {
		pool := k.poolOf(offer)
		if len(k.floors[pool]) == 0 {
			return true
		}
		at := d.OffersAt(offer)
		spans, ok := known[choices{pool, &at[0]}]
		if !ok {
			v := k.varietyOf(pool, k.alike(offer, at.And(pinned).And(k.catalogue.Pools[pool].Usable)), d.At(offer).And(c.pins...))
			spans = v.enough(k.fitting(v, d.Shape.Requests, nil))
			known[choices{pool, &at[0]}] = spans
		}
		return spans
	}
}

// listed returns the choices the launch of a bin lists: the types that
// minValues need, then the cheapest, as far as limits allow. It says where
// that spans fewer values than the pool demands.
func (k *Packer) listed(b bin, v *variety, requests model.Resources) ([]choice, []model.Relaxed) {
	pool := k.poolOf(b.offer)
	chosen := v.pick(k.fitting(v, requests, b.capacity))
	reserved := b.capacity
	for _, i := range k.fitting(v, requests, nil) {
		if len(chosen) >= k.policy.MaxTypes {
			break
		}
		capacity := k.catalogue.Types[v.choices[i].row].Capacity
		if slices.Contains(chosen, i) || !k.limits.raise(pool, reserved, capacity) {
			continue
		}
		chosen, reserved = append(chosen, i), reserved.Max(capacity)
	}
	slices.Sort(chosen)
	v.reset()
	out := make([]choice, 0, len(chosen))
	for _, i := range chosen {
		v.add(i)
		out = append(out, v.choices[i])
	}
	var relaxed []model.Relaxed
	for i, f := range v.floors {
		if v.spans[i] < f.least {
			relaxed = append(relaxed, model.Relaxed{Key: f.key, Spans: v.spans[i]})
		}
	}
	return out, relaxed
}

// relaxed counts the launches that span fewer values than their pool demands.
func relaxed(p *model.Plan) int {
	n := 0
	for i := range p.Launches {
		if len(p.Launches[i].MinValues) > 0 {
			n++
		}
	}
	return n
}

// hollow returns the steps for a pool whose own requirements leave too few
// types for its minValues, whatever the pod.
func (k *Packer) hollow(pool int) ([]model.Step, bool) {
	p := &k.catalogue.Pools[pool]
	if len(k.floors[pool]) == 0 || k.policy.RelaxMinValues || p.Allowed.Empty() {
		return nil, false
	}
	v := k.varietyOf(pool, p.Allowed, nil)
	all := k.fitting(v, nil, nil)
	if v.enough(all) {
		return nil, false
	}
	f, left := v.short(all)
	return []model.Step{
		{Constraint: "offerings", Left: p.Offers.To - p.Offers.From},
		{Constraint: model.PoolRequirements, Hint: fmt.Sprintf("minValues of %s: %d wanted, %d left; %s", f.key, f.least, left, f.lower(left))},
	}, true
}

// lower says what would do when only so many values are left.
func (f floor) lower(left int) string {
	if left == 0 {
		return "drop it, or let the NodePool use instance types that have the label"
	}
	return fmt.Sprintf("lower it to %d, or let the NodePool use more instance types", left)
}

// short returns a floor that the choices do not reach, and what they span of it.
func (v *variety) short(among []int) (floor, int) {
	v.pick(among)
	for i, f := range v.floors {
		if v.spans[i] < f.least {
			return f, v.spans[i]
		}
	}
	return floor{}, 0
}

// floorStep names the minValues that the types left for a pod of d, and allowed
// by the limits, do not reach.
func (k *Packer) floorStep(pool int, d *demand) (model.Step, bool) {
	if len(k.floors[pool]) == 0 || k.policy.RelaxMinValues {
		return model.Step{}, false
	}
	p := &k.catalogue.Pools[pool]
	fresh := k.catalogue.NewDemand(model.Pending{Shape: d.Shape})
	var step model.Step
	for demands, offers := range fresh.Alternatives() {
		v := k.varietyOf(pool, offers.And(p.Usable).Less(k.reserved), demands)
		fits := k.fitting(v, d.Shape.Requests, nil)
		allowed := slices.DeleteFunc(slices.Clone(fits), func(i int) bool {
			return k.limits.allow(pool, k.catalogue.Types[v.choices[i].row].Capacity, 1) == 0
		})
		if len(allowed) == 0 || v.enough(allowed) {
			continue
		}
		f, left := v.short(allowed)
		step.Constraint = fmt.Sprintf("minValues of %s: %d wanted, %d left", f.key, f.least, left)
		step.Hint = f.lower(left) + " this pod fits on"
		if v.enough(fits) {
			step.Hint = f.lower(left) + ", or raise its spec.limits"
		}
		return step, true
	}
	for _, key := range k.topology.Pinned(d.kind) {
		for _, f := range k.floors[pool] {
			if f.key == k.topology.Keys[key] && f.least > 1 {
				step.Constraint = fmt.Sprintf("minValues of %s: %d wanted, and a node for this pod is settled for one", f.key, f.least)
				step.Hint = "drop minValues of " + f.key + " from the NodePool, or what the pod asks of other pods there"
				return step, true
			}
		}
	}
	return step, false
}
