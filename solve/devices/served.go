// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"slices"

	"karpenter/model"
)

// served is an extended resource that a DeviceClass serves to pods without
// a ResourceClaim. Where a node has some of it to allocate, a device plugin has it, and
// pods request it as ever. On other nodes pods get devices of the class, and the node
// has as many of the resource as it has devices.
//
// A node that has not started may be expected to have both, the resource and devices of
// the class. Then what initialized nodes of its NodePool show decides; where they show
// nothing, or not all the same, devices serve it.
type served struct {
	name string
	at   int // position on the axis
	way  model.DeviceWay
}

// servedOf returns the extended resources that the pods request, by name.
func servedOf(shapes []*model.Shape, names []string) []served {
	var out []served
	for _, s := range shapes {
		for i := range s.Claims {
			for _, r := range s.Claims[i].Requests {
				at := slices.Index(names, r.Resource)
				if r.Resource == "" || at < 0 || len(r.Ways) == 0 || slices.ContainsFunc(out, func(o served) bool { return o.at == at }) {
					continue
				}
				way := r.Ways[0]
				way.Count = 1
				out = append(out, served{r.Resource, at, way})
			}
		}
	}
	slices.SortFunc(out, func(a, b served) int { return cmp.Compare(a.name, b.name) })
	return out
}

// shown returns by pool of which served resources its initialized nodes show that
// device plugins have them. A pool without any is not there.
func (b *Book) shown(s *model.Snapshot, list []served) map[string][]bool {
	if len(list) == 0 {
		return nil
	}
	type pair struct{ plugin, devices []bool }
	seen := map[string]pair{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool == "" || !n.Initialized || n.Deleting {
			continue
		}
		of, known := seen[n.Pool]
		if !known {
			of = pair{make([]bool, len(list)), make([]bool, len(list))}
			seen[n.Pool] = of
		}
		for j := range list {
			switch r := &list[j]; {
			case n.Allocatable.At(r.at) > 0:
				of.plugin[j] = true
			case !of.devices[j]:
				of.devices[j] = b.serves(n.Devices, r)
			}
		}
	}
	out := map[string][]bool{}
	for pool, of := range seen {
		for j := range of.plugin {
			of.plugin[j] = of.plugin[j] && !of.devices[j]
		}
		if slices.Contains(of.plugin, true) {
			out[pool] = of.plugin
		}
	}
	return out
}

// serves reports whether some device of the pools is of the class that serves the
// resource.
func (b *Book) serves(pools []model.DevicePool, r *served) bool {
	return slices.ContainsFunc(pools, func(p model.DevicePool) bool {
		return p.Broken == "" && slices.ContainsFunc(p.Devices, func(d model.Device) bool {
			v, _ := b.judge(&r.way, d.Kind)
			return v == yes
		})
	})
}

// ofPlugins says of each served resource whether a device plugin of the node has it.
func (b *Book) ofPlugins(n *model.Node, list []served, shown []bool) []bool {
	if !n.Initialized {
		return b.plugged(n.Allocatable, n.Devices, list, shown)
	}
	out := make([]bool, len(list))
	for i := range out {
		out[i] = n.Allocatable.At(list[i].at) > 0
	}
	return out
}

// plugged is ofPlugins for a node that has not started, by what its type has and what
// nodes of its pool show.
func (b *Book) plugged(have model.Resources, pools []model.DevicePool, list []served, shown []bool) []bool {
	out := make([]bool, len(list))
	for i := range out {
		r := &list[i]
		out[i] = have.At(r.at) > 0 && (len(shown) > 0 && shown[i] || !b.serves(pools, r))
	}
	return out
}

// pluginsText tells such lists apart.
func pluginsText(plugins []bool) string {
	out := make([]byte, len(plugins))
	for i, has := range plugins {
		if has {
			out[i] = 1
		}
	}
	return string(out)
}

// most returns how many pods that request one of the resource find devices at most.
func (b *Book) most(s *Stock, r *served) int64 {
	n := int64(0)
	for i := range s.devices {
		d := &s.devices[i]
		if v, _ := b.judge(&r.way, d.Kind); v != yes || !s.start.free(i) || tainted(d.Taints, nil) {
			continue
		}
		if !d.Kind.Shared {
			n++
			continue
		}
		takes, ok := asked(d.Kind, nil)
		if !ok {
			continue
		}
		shares := int64(mostCopies)
		for j, v := range takes {
			if v > 0 {
				shares = min(shares, s.start.spare(i, d.Kind.Capacity[j].Name)/v)
			}
		}
		n += max(shares, 0)
	}
	return n
}

// release takes what devices serve out of what launches request.
func release(launches []model.Launch, pools []model.Pool, list []served) {
	for i := range launches {
		l := &launches[i]
		at := slices.IndexFunc(pools, func(p model.Pool) bool { return p.Name == l.Pool })
		if at < 0 || len(l.Types) == 0 {
			continue
		}
		t := slices.IndexFunc(pools[at].Types, func(t *model.InstanceType) bool { return t.Name == l.Types[0] })
		for _, r := range list {
			if t >= 0 && l.Requests.At(r.at) > 0 && !plugs(pools[at].Types[t].Devices, r.name) {
				l.Requests = slices.Clone(l.Requests)
				l.Requests[r.at] = 0
			}
		}
	}
}

// Alike reports whether a node with one of these lists of pools has from device plugins
// what one with the other has.
func Alike(a, b []model.DevicePool) bool {
	has := func(a, b []model.DevicePool) bool {
		return !slices.ContainsFunc(a, func(p model.DevicePool) bool { return p.Driver == plugin && !plugs(b, p.Name) })
	}
	return has(a, b) && has(b, a)
}
