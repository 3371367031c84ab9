// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// Selectors of claims that are drawn, by the kinds they match.
const (
	anyDevice = "any"
	oneModel  = "model x"
	parts     = "shared"
)

// kinds are a few kinds of devices: two models, one of them in two groups, and one
// that can be shared.
func kinds() []*model.DeviceKind {
	kind := func(key, of, group string) *model.DeviceKind {
		return &model.DeviceKind{Key: key, Driver: "d", Attributes: []model.DeviceAttribute{
			{Name: "d/group", Type: model.AttributeString, Text: group}, {Name: "d/model", Type: model.AttributeString, Text: of}}}
	}
	shared := kind("shared", "z", "a")
	shared.Shared = true
	shared.Capacity = []model.DeviceCapacity{{Name: "d/memory", Value: 8, Policy: true, Default: 3, Min: 2, Step: 2}}
	return []*model.DeviceKind{kind("xa", "x", "a"), kind("xb", "x", "b"), kind("ya", "y", "a"), shared}
}

// equip gives nodes of some types devices, some of which are in use, and has pods
// that wait ask for some.
func (g *generator) equip(s *model.Snapshot) {
	s.Selectors = []model.DeviceSelector{
		{Text: anyDevice, Matches: []string{"xa", "xb", "ya"}}, {Text: oneModel, Matches: []string{"xa", "xb"}}, {Text: parts, Matches: []string{"shared"}},
	}
	all, done := kinds(), map[*model.InstanceType]bool{}
	byName := map[string]*model.InstanceType{}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			if !done[t] && g.maybe(70) {
				t.Devices = []model.DevicePool{g.devices(all)}
			}
			done[t], byName[t.Name] = true, t
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		name, _ := n.Labels.Value(model.LabelInstanceType)
		if t := byName[name]; t != nil {
			n.Devices = slices.Clone(t.Devices)
		}
		for j := range n.Devices {
			var left int64
			for _, c := range n.Devices[j].Counters {
				left += c.Value
			}
			for _, d := range n.Devices[j].Devices {
				for _, u := range d.Uses {
					left -= u.Value
				}
				if left >= 0 && g.maybe(25) {
					u := model.DeviceUse{Device: d.Name, Claim: "default/before", Share: d.Kind.Shared}
					if u.Share {
						u.Takes = []model.DeviceAmount{{Name: "d/memory", Value: 4}}
					}
					n.Devices[j].InUse = append(n.Devices[j].InUse, u)
				}
			}
		}
	}
	for i := range s.Pending {
		g.claim(s.Pending[i].Shape)
	}
}

// devices draws a pool of devices. Of some, two consume what one of the others does.
func (g *generator) devices(all []*model.DeviceKind) model.DevicePool {
	p := model.DevicePool{Driver: "d", Name: "pool"}
	counted := g.maybe(30)
	if counted {
		p.Counters = []model.DeviceCount{{Set: "chip", Name: "slices", Value: int64(2 + g.IntN(3))}}
	}
	for i := range 1 + g.IntN(4) {
		d := model.Device{Name: fmt.Sprintf("dev-%d", i), Kind: pick(g, all...)}
		if g.maybe(10) {
			d.Taints = []model.Taint{{Key: "broken", Effect: model.NoSchedule}}
		}
		if counted {
			d.Uses = []model.DeviceCount{{Set: "chip", Name: "slices", Value: int64(1 + g.IntN(2))}}
		}
		p.Devices = append(p.Devices, d)
	}
	if g.maybe(10) {
		p.Broken = "1 of 2 slices are published"
	}
	return p
}

// claim has some shapes ask for devices.
func (g *generator) claim(s *model.Shape) {
	if !g.maybe(60) {
		return
	}
	way := func() model.DeviceWay {
		w := model.DeviceWay{Class: "c", Selectors: []string{pick(g, anyDevice, anyDevice, oneModel, parts)}, Count: 1 + g.IntN(2)}
		if g.maybe(20) {
			w.Tolerations = []model.Toleration{{Key: "broken", Exists: true}}
		}
		if w.Selectors[0] == parts && g.maybe(50) {
			w.Takes = []model.DeviceAmount{{Name: "d/memory", Value: int64(1 + g.IntN(6))}}
		}
		if g.maybe(12) {
			w.All, w.Count = true, 0
		}
		if g.maybe(8) {
			w.Admin = true
		}
		return w
	}
	c := model.DeviceClaim{Name: "claim"}
	for i := range 1 + g.IntN(2) {
		r := model.DeviceRequest{Name: fmt.Sprintf("r%d", i), Ways: []model.DeviceWay{way()}}
		if g.maybe(25) {
			r.Ways = append(r.Ways, way())
			for j := range r.Ways {
				r.Ways[j].Name, r.Ways[j].Admin = fmt.Sprintf("w%d", j), false
			}
		}
		c.Requests = append(c.Requests, r)
	}
	switch g.IntN(6) {
	case 0:
		c.Constraints = []model.DeviceConstraint{{Match: "d/group"}}
	case 1:
		c.Constraints = []model.DeviceConstraint{{Distinct: "d/group", Requests: []string{"r0"}}}
	}
	if g.maybe(15) {
		c.Shared = "default/" + s.Key
	}
	s.Claims = []model.DeviceClaim{c}
}
