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
	start    *shelf // with what claims have already
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

// stock returns the compiled pools.
func (b *Book) stock(pools []model.DevicePool) *Stock {
	var key *model.DevicePool
	if len(pools) > 0 {
		key = &pools[0]
	}
	s := b.stocks[key]
	if s == nil {
		s = newStock(pools)
		s.id = len(b.stocks)
		b.stocks[key] = s
	}
	return s
}

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
		return cmp.Or(boolOrder(a.Late, b.Late), cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Name, b.Name))
	})
	for i, p := range s.pools {
		s.add(p, i)
	}
	s.start = newShelf(s)
	for i, p := range s.pools {
		s.start.occupy(p, i)
	}
	return s
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
