// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"encoding/binary"
	"slices"

	"karpenter/model"
)

// Load is the devices of a node with what the pods take that were put there, in order.
// It does not change: With returns another. A nil Load is of a node of which no one
// asked for devices.
type Load struct {
	book  *Book
	shelf *shelf
}

// Load returns the devices of a node with nothing put there but what claims have
// already; nil from a nil Book.
func (b *Book) Load(pools []model.DevicePool) *Load {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return &Load{b, b.stock(pools).start}
}

// Room returns for how many pods with the claims there are devices, at most limit.
func (l *Load) Room(claims []model.DeviceClaim, limit int) int {
	_, n := l.with(claims, limit)
	return n
}

// With returns the load with so many pods with the claims more, as far as there are
// devices for them.
func (l *Load) With(claims []model.DeviceClaim, pods int) *Load {
	out, _ := l.with(claims, pods)
	return out
}

func (l *Load) with(claims []model.DeviceClaim, pods int) (*Load, int) {
	if l == nil || len(claims) == 0 {
		return l, 0
	}
	l.book.mu.Lock()
	defer l.book.mu.Unlock()
	set := l.book.set(claims)
	out, n := &Load{l.book, l.shelf.clone()}, 0
	for n < pods {
		if how, _ := l.book.find(out.shelf, set); how != found {
			break
		}
		n++
	}
	return out, n
}

// Pools returns the pools of the node with all that is taken in use.
func (l *Load) Pools() []model.DevicePool {
	out := make([]model.DevicePool, 0, len(l.shelf.pools))
	for at, p := range l.shelf.pools {
		pool := *p
		pool.InUse = nil
		for i := range l.shelf.devices {
			if l.shelf.devices[i].pool == at {
				pool.InUse = append(pool.InUse, l.shelf.inUse(i)...)
			}
		}
		out = append(out, pool)
	}
	for _, p := range l.shelf.broken {
		out = append(out, *p)
	}
	return out
}

// inUse returns what is taken of a device: all shares of it as one.
func (h *shelf) inUse(i int) []model.DeviceUse {
	d := &h.devices[i]
	switch {
	case h.taken[i]:
		return []model.DeviceUse{{Device: d.Name}}
	case h.shares[i] > 0:
		u := model.DeviceUse{Device: d.Name, Share: true}
		for c, v := range h.used[i] {
			u.Takes = append(u.Takes, model.DeviceAmount{Name: d.Kind.Capacity[c].Name, Value: v})
		}
		return []model.DeviceUse{u}
	}
	return nil
}

// Portion is a number of pods with the same claims.
type Portion struct {
	Claims []model.DeviceClaim
	Pods   int
}

// Holds reports whether a node with only these devices has what all the pods need,
// one after the other, in the order given. It remembers the answers.
func (b *Book) Holds(pools []model.DevicePool, portions []Portion) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stock(pools)
	key := binary.AppendUvarint(nil, uint64(s.id))
	sets := make([]*Set, len(portions))
	for i, p := range portions {
		sets[i] = b.set(p.Claims)
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(sets[i].id)), uint64(p.Pods))
	}
	ok, known := b.fits[string(key)]
	if !known {
		ok = b.hold(s, sets, portions)
		b.fits[string(key)] = ok
	}
	return ok
}

func (b *Book) hold(s *Stock, sets []*Set, portions []Portion) bool {
	shelf := s.start.clone()
	for i, set := range sets {
		for range portions[i].Pods {
			if how, _ := b.find(shelf, set); how != found {
				return false
			}
		}
	}
	return true
}

// Drivers returns the drivers of devices of the pools that some way to meet a request
// of the pods is content with, sorted.
func (b *Book) Drivers(pools []model.DevicePool, portions []Portion) []string {
	var out []string
	for i := range pools {
		wanted := func(w model.DeviceWay) bool {
			return slices.ContainsFunc(pools[i].Devices, func(d model.Device) bool {
				v, _ := b.judge(&w, d.Kind)
				return v == yes
			})
		}
		if slices.ContainsFunc(portions, func(p Portion) bool {
			return slices.ContainsFunc(p.Claims, func(c model.DeviceClaim) bool {
				return slices.ContainsFunc(c.Requests, func(r model.DeviceRequest) bool {
					return !plugs(pools, r.Resource) && slices.ContainsFunc(r.Ways, wanted)
				})
			})
		}) {
			out = append(out, pools[i].Driver)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Steps is how much work it is to see whether a node with these devices has what so
// many pods need. It does not depend on what was seen before.
func Steps(pools []model.DevicePool, pods int) int {
	n := 1
	for i := range pools {
		n += len(pools[i].Devices)
	}
	return stepsPerDevice * n * pods
}

// stepsPerDevice is about what it takes to look at a device.
const stepsPerDevice = 16

// mostCopies is how many pods of one set are counted at most: more than a node takes.
const mostCopies = 256

// copies is how many pods of the set the stock has devices for, others not there.
func (b *Book) copies(s *Stock, set *Set) int64 {
	shelf, n := s.start.clone(), int64(0)
	for n < mostCopies {
		if how, _ := b.find(shelf, set); how != found {
			break
		}
		n++
	}
	return n
}
