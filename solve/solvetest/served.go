// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"slices"

	"karpenter/model"
)

// servedName is an extended resource that a DeviceClass serves.
const servedName = "example.com/gpu"

// serve has devices serve an extended resource: some types have it, some devices of its
// class, some both, and some pods request it without a claim. Of nodes that show that a
// device plugin has it, and of those that show it does not.
func (g *generator) serve(s *model.Snapshot) {
	at := len(s.Resources)
	s.Resources = append(slices.Clone(s.Resources), servedName)
	done := map[*model.InstanceType]bool{}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			if n := int64(1 + g.IntN(4)); !done[t] && g.maybe(60) {
				t.Capacity, t.Allocatable = t.Capacity.With(at, n), t.Allocatable.With(at, n)
			}
			done[t] = true
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; g.maybe(50) {
			n.Allocatable = n.Allocatable.With(at, int64(1+g.IntN(3)))
		}
	}
	for i := range s.Pending {
		if n := 1 + g.IntN(2); g.maybe(60) {
			shape := s.Pending[i].Shape
			shape.Requests = shape.Requests.With(at, int64(n))
			shape.Claims = append(shape.Claims, model.DeviceClaim{Name: servedName, Requests: []model.DeviceRequest{{
				Name: "container-0-request-0", Resource: servedName, Ways: []model.DeviceWay{{Class: "c", Selectors: []string{anyDevice}, Count: n}},
			}}})
		}
	}
}

// plenty is more of a resource than any pods request.
const plenty = 1 << 40

// byPlugin is the driver of a pool that says that a device plugin has the resource which
// the pool is called after.
const byPlugin = "plugin"

// asServed returns the Snapshot as a check reads it: nodes and types either have a pool
// of byPlugin, or plenty of the resource and just their devices.
func asServed(s *model.Snapshot) *model.Snapshot {
	at := slices.Index(s.Resources, servedName)
	asks := func(p model.Pending) bool {
		return slices.ContainsFunc(p.Shape.Claims, func(c model.DeviceClaim) bool { return c.Name == servedName })
	}
	if at < 0 || read(s, at) || !slices.ContainsFunc(s.Pending, asks) {
		return s
	}
	matches := func(pools []model.DevicePool) bool {
		return slices.ContainsFunc(pools, func(p model.DevicePool) bool {
			return p.Broken == "" && slices.ContainsFunc(p.Devices, func(d model.Device) bool {
				return slices.ContainsFunc(s.Selectors, func(o model.DeviceSelector) bool {
					return o.Text == anyDevice && slices.Contains(o.Matches, d.Kind.Key)
				})
			})
		})
	}
	shows := func(pool string, what func(*model.Node) bool) bool {
		return slices.ContainsFunc(s.Nodes, func(n model.Node) bool { return n.Pool == pool && n.Initialized && !n.Deleting && what(&n) })
	}
	plugin := func(pool string, have model.Resources, pools []model.DevicePool) bool {
		shown := shows(pool, func(n *model.Node) bool { return n.Allocatable.At(at) > 0 }) &&
			!shows(pool, func(n *model.Node) bool { return n.Allocatable.At(at) == 0 && matches(n.Devices) })
		return have.At(at) > 0 && (shown || !matches(pools))
	}
	with := func(has bool, have model.Resources, pools []model.DevicePool) (model.Resources, []model.DevicePool) {
		if has {
			return have, append(slices.Clip(pools), model.DevicePool{Driver: byPlugin, Name: servedName})
		}
		return have.With(at, plenty), pools
	}
	out := *s
	out.Nodes, out.Pools = slices.Clone(s.Nodes), slices.Clone(s.Pools)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		has := n.Allocatable.At(at) > 0
		if !n.Initialized {
			has = plugin(n.Pool, n.Allocatable, n.Devices)
		}
		n.Allocatable, n.Devices = with(has, slices.Clone(n.Allocatable), n.Devices)
	}
	for i := range out.Pools {
		p := &out.Pools[i]
		p.Types = slices.Clone(p.Types)
		for j, t := range p.Types {
			kind := *t
			kind.Allocatable, kind.Devices = with(plugin(p.Name, t.Allocatable, t.Devices), slices.Clone(t.Allocatable), t.Devices)
			p.Types[j] = &kind
		}
	}
	return &out
}

// read reports whether the Snapshot is as asServed returns it.
func read(s *model.Snapshot, at int) bool {
	is := func(have model.Resources, pools []model.DevicePool) bool {
		return have.At(at) >= plenty || slices.ContainsFunc(pools, func(p model.DevicePool) bool { return p.Driver == byPlugin })
	}
	return slices.ContainsFunc(s.Nodes, func(n model.Node) bool { return is(n.Allocatable, n.Devices) }) ||
		slices.ContainsFunc(s.Pools, func(p model.Pool) bool {
			return slices.ContainsFunc(p.Types, func(t *model.InstanceType) bool { return is(t.Allocatable, t.Devices) })
		})
}

// plugs reports whether a device plugin has the resource where these pools are.
func plugs(pools []*model.DevicePool, resource string) bool {
	return slices.ContainsFunc(pools, func(p *model.DevicePool) bool { return p.Driver == byPlugin && p.Name == resource })
}

// requested fails where a launch requests what devices serve, or not what a plugin has.
func (c *checker) requested(i int, l *model.Launch, kind *model.InstanceType) {
	at, want := slices.Index(c.s.Resources, servedName), int64(0)
	for _, p := range l.Pods {
		of := func(claim model.DeviceClaim) bool { return claim.Name == servedName }
		if s := c.shapes[p.Key()]; slices.ContainsFunc(s.Claims, of) {
			want += s.Requests.At(at)
		}
	}
	if want == 0 {
		return
	}
	if !slices.ContainsFunc(kind.Devices, func(p model.DevicePool) bool { return p.Driver == byPlugin }) {
		want = 0
	}
	if got := l.Requests.At(at); got != want {
		c.fail("launch %d as %s requests %d of %s, which should be %d", i, kind.Name, got, servedName, want)
	}
}
