// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"slices"
	"strconv"

	"karpenter/model"
)

// Stock is the devices of one node, in the order in which the scheduler tries them.
// It does not change.
type Stock struct {
	id       int
	devices  []device
	counters []int64             // what is left of each
	names    []counterID         // of counters
	broken   []*model.DevicePool // that give nothing, and end a search for all devices
	pools    []*model.DevicePool
	plugins  map[string]bool // extended resources that device plugins have; nil = none
	start    *shelf          // with what claims have already
}

// plugin is the driver of pools that say that a device plugin has the resource that
// they are called after. They have no devices, and no driver has a name with a blank.
const plugin = "device plugin"

// plugs reports whether a device plugin has the resource where these pools are.
func plugs(pools []model.DevicePool, resource string) bool {
	return slices.ContainsFunc(pools, func(p model.DevicePool) bool { return p.Driver == plugin && p.Name == resource })
}

type device struct {
	*model.Device
	pool   int
	uses   []use
	values map[string]value // of attributes
}

// counterID names counters of all pools alike.
type counterID struct{ set, name string }

// use is so much of a counter.
type use struct {
	counter int
	value   int64
}

// value is the value of an attribute, as far as constraints compare it.
type value struct{ kind, text string }

// unknown is the type of values that are only known to be equal.
const unknown = "unknown"

func newStock(pools []model.DevicePool) *Stock {
	s := &Stock{}
	for i := range pools {
		if pools[i].Broken != "" {
			s.broken = append(s.broken, &pools[i])
			continue
		}
		s.pools = append(s.pools, &pools[i])
	}
	slices.SortStableFunc(s.pools, func(a, b *model.DevicePool) int {
		return cmp.Or(boolOrder(isLate(a), isLate(b)), cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
	})
	for i, p := range s.pools {
		if s.add(p, i); p.Driver == plugin {
			if s.plugins == nil {
				s.plugins = map[string]bool{}
			}
			s.plugins[p.Name] = true
		}
	}
	s.start = newShelf(s)
	for i, p := range s.pools {
		s.start.occupy(p, i)
	}
	return s
}

// isLate reports whether the scheduler tries the pool after others.
func isLate(p *model.DevicePool) bool {
	return slices.ContainsFunc(p.Devices, func(d model.Device) bool { return d.Late })
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// add adds the devices and counters of a pool.
func (s *Stock) add(p *model.DevicePool, at int) {
	counters := map[[2]string]int{}
	for _, c := range p.Counters {
		counters[[2]string{c.Set, c.Name}] = len(s.counters)
		s.counters, s.names = append(s.counters, c.Value), append(s.names, counterID{c.Set, c.Name})
	}
	for i := range p.Devices {
		d := device{Device: &p.Devices[i], pool: at, values: map[string]value{}}
		for _, u := range d.Uses {
			if c, ok := counters[[2]string{u.Set, u.Name}]; ok {
				d.uses = append(d.uses, use{c, u.Value})
			}
		}
		for _, a := range d.Kind.Attributes {
			if a.Type != model.AttributeList {
				d.values[a.Name] = value{a.Type, a.Text}
			}
		}
		for j, same := range p.Alike {
			if _, known := d.values[same.Attribute]; !known && slices.Contains(same.Devices, d.Name) {
				d.values[same.Attribute] = value{unknown, strconv.Itoa(at) + " " + strconv.Itoa(j)}
			}
		}
		s.devices = append(s.devices, d)
	}
}

// shelf is the devices of a stock with what is taken of them. What is taken can be
// given back in reverse order, so a search, or the search for several pods, is rolled
// back to any mark.
type shelf struct {
	*Stock
	taken  []bool    // by device: all of it
	shares []int     // by device: how many claims have a part of it
	used   [][]int64 // by device: of each capacity; nil = none
	left   []int64   // by counter
	done   []step
	shared map[string]bool // ResourceClaims that pods share and that have devices here; it does not change
}

// step is one device that was taken.
type step struct {
	device int
	takes  []int64 // of each capacity, of one that is shared
	shared bool
	admin  bool
	again  bool // someone has it already: just its counters are charged once more
}

func newShelf(s *Stock) *shelf {
	return &shelf{Stock: s, taken: make([]bool, len(s.devices)), shares: make([]int, len(s.devices)), used: make([][]int64, len(s.devices)), left: slices.Clone(s.counters)}
}

// clone returns a copy, of which nothing that was taken before can be given back.
func (h *shelf) clone() *shelf {
	out := &shelf{Stock: h.Stock, taken: slices.Clone(h.taken), shares: slices.Clone(h.shares), used: slices.Clone(h.used), left: slices.Clone(h.left), shared: h.shared}
	for i := range out.used {
		out.used[i] = slices.Clone(out.used[i])
	}
	return out
}

// occupy takes what claims have of a pool. A device that the pool does not have any
// more takes nothing.
func (h *shelf) occupy(p *model.DevicePool, at int) {
	for _, u := range p.InUse {
		i := slices.IndexFunc(h.devices, func(d device) bool { return d.pool == at && d.Name == u.Device })
		if i < 0 {
			continue
		}
		s := step{device: i}
		if u.Share && h.devices[i].Kind.Shared {
			s.shared, s.takes = true, amounts(h.devices[i].Kind, u.Takes)
		}
		h.take(s)
	}
	h.done = nil
}

// amounts returns the quantities by capacity of the kind.
func amounts(k *model.DeviceKind, takes []model.DeviceAmount) []int64 {
	out := make([]int64, len(k.Capacity))
	for i, c := range k.Capacity {
		for _, t := range takes {
			if t.Name == c.Name {
				out[i] = t.Value
			}
		}
	}
	return out
}

// mark returns what takes the shelf back to where it is now.
func (h *shelf) mark() int { return len(h.done) }

// rollback gives back what was taken since the mark.
func (h *shelf) rollback(mark int) {
	for len(h.done) > mark {
		s := h.done[len(h.done)-1]
		h.done = h.done[:len(h.done)-1]
		h.put(s, -1)
	}
}

// take takes a device, or a part of it.
func (h *shelf) take(s step) {
	h.put(s, 1)
	h.done = append(h.done, s)
}

func (h *shelf) put(s step, sign int64) {
	d := &h.devices[s.device]
	charged := true
	if s.shared {
		if sign < 0 {
			h.shares[s.device]--
		}
		charged = h.shares[s.device] == 0 // counters are charged once, with the first share
		if sign > 0 {
			h.shares[s.device]++
		}
		if h.used[s.device] == nil {
			h.used[s.device] = make([]int64, len(d.Kind.Capacity))
		}
		for i, v := range s.takes {
			h.used[s.device][i] += sign * v
		}
	} else if !s.again {
		h.taken[s.device] = sign > 0
	}
	if charged {
		for _, u := range d.uses {
			h.left[u.counter] -= sign * u.value
		}
	}
}

// free reports whether nothing has the device, or another share of it can be had.
func (h *shelf) free(i int) bool {
	return !h.taken[i] && (h.devices[i].Kind.Shared || h.shares[i] == 0)
}

// enough reports whether the counters are enough for the device.
func (h *shelf) enough(i int) bool {
	if h.shares[i] > 0 {
		return true
	}
	return !slices.ContainsFunc(h.devices[i].uses, func(u use) bool { return h.left[u.counter] < u.value })
}

// holds reports whether there is so much left of each capacity of the device.
func (h *shelf) holds(i int, takes []int64) bool {
	for c, v := range takes {
		used := int64(0)
		if h.used[i] != nil {
			used = h.used[i][c]
		}
		if v > h.devices[i].Kind.Capacity[c].Value-used {
			return false
		}
	}
	return true
}

// spare returns how much is left of a capacity of the device.
func (h *shelf) spare(i int, capacity string) int64 {
	for c := range h.devices[i].Kind.Capacity {
		if has := &h.devices[i].Kind.Capacity[c]; has.Name == capacity {
			if h.used[i] == nil {
				return has.Value
			}
			return has.Value - h.used[i][c]
		}
	}
	return 0
}

// asked returns what a claim that asks for these amounts takes of each capacity of a
// kind. It reports false if the kind cannot give that, however free it is.
func asked(k *model.DeviceKind, takes []model.DeviceAmount) ([]int64, bool) {
	for _, t := range takes {
		if !slices.ContainsFunc(k.Capacity, func(c model.DeviceCapacity) bool { return c.Name == t.Name }) {
			return nil, false
		}
	}
	out := make([]int64, len(k.Capacity))
	for i := range k.Capacity {
		c := &k.Capacity[i]
		v, ok := c.Value, true
		at := slices.IndexFunc(takes, func(t model.DeviceAmount) bool { return t.Name == c.Name })
		switch {
		case at >= 0:
			v, ok = raised(c, takes[at].Value)
		case c.Policy:
			v = c.Default
		}
		if !ok || v < 0 || v > c.Value {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

// raised returns what a request for so much takes, by the policy of the capacity.
func raised(c *model.DeviceCapacity, v int64) (int64, bool) {
	if !c.Policy {
		return v, true
	}
	if len(c.Values) > 0 {
		i, _ := slices.BinarySearch(c.Values, v)
		if i == len(c.Values) {
			return 0, false
		}
		return c.Values[i], true
	}
	switch {
	case v < c.Min:
		v = c.Min
	case c.Step > 0:
		steps := (v - c.Min) / c.Step
		if (v-c.Min)%c.Step > 0 {
			steps++
		}
		if steps > (1<<62-c.Min)/c.Step {
			return 0, false
		}
		v = c.Min + steps*c.Step
	}
	return v, c.Max == 0 || v <= c.Max
}
