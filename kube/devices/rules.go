// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"karpenter/cloud"
	"karpenter/model"
)

// mostRuled is how many lists of pools a Store remembers with their taints.
const mostRuled = 20_000

// ruled holds devices that are not published yet, with the taints of
// DeviceTaintRules. It is a cache: equal pools in successive Snapshots are the
// same slice.
type ruled struct {
	types map[*model.InstanceType]*model.InstanceType
	lists map[**model.InstanceType][]*model.InstanceType // by the first of a list
	pools map[*model.DevicePool][]model.DevicePool       // the same way
}

func newRuled() ruled {
	return ruled{map[*model.InstanceType]*model.InstanceType{}, map[**model.InstanceType][]*model.InstanceType{}, map[*model.DevicePool][]model.DevicePool{}}
}

// Answered returns the Snapshot with the answers of its selectors for its devices.
// Devices of nodes that have not started have the taints of the DeviceTaintRules
// that are about their driver as a whole: no one knows what their pools will be
// called.
func (s *Store) Answered(of *model.Snapshot) *model.Snapshot { return s.judge.Fill(s.tainted(of)) }

func (s *Store) tainted(of *model.Snapshot) *model.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := s.wide()
	if len(rules) == 0 {
		return of
	}
	out := *of
	out.Pools, out.Nodes = slices.Clone(of.Pools), slices.Clone(of.Nodes)
	if len(s.ruled.types)+len(s.ruled.pools) > mostRuled {
		s.ruled = newRuled()
	}
	for i := range out.Pools {
		out.Pools[i].Types = s.ruled.list(out.Pools[i].Types, rules)
	}
	for i := range out.Nodes {
		if n := &out.Nodes[i]; !n.Initialized {
			n.Devices = s.ruled.taint(n.Devices, rules)
		}
	}
	return &out
}

// wide returns the rules that name no pool and no device, by name.
func (s *Store) wide() []*resourcev1.DeviceTaintRule {
	var out []*resourcev1.DeviceTaintRule
	for _, name := range slices.Sorted(maps.Keys(s.rules)) {
		if by := s.rules[name].Spec.DeviceSelector; by != nil && by.Pool == nil && by.Device == nil {
			out = append(out, s.rules[name])
		}
	}
	return out
}

func (r *ruled) list(types []*model.InstanceType, rules []*resourcev1.DeviceTaintRule) []*model.InstanceType {
	if len(types) == 0 {
		return types
	}
	if known := r.lists[&types[0]]; len(known) == len(types) {
		return known
	}
	out := make([]*model.InstanceType, len(types))
	for i, t := range types {
		if r.types[t] == nil {
			with := *t
			with.Devices = r.taint(t.Devices, rules)
			r.types[t] = &with
		}
		out[i] = r.types[t]
	}
	r.lists[&types[0]] = out
	return out
}

// taint returns the pools with the taints of the rules on their devices.
func (r *ruled) taint(pools []model.DevicePool, rules []*resourcev1.DeviceTaintRule) []model.DevicePool {
	if len(pools) == 0 {
		return pools
	}
	if known := r.pools[&pools[0]]; len(known) == len(pools) {
		return known
	}
	out := slices.Clone(pools)
	for i := range out {
		p := &out[i]
		for _, rule := range rules {
			if ptr.Deref(rule.Spec.DeviceSelector.Driver, p.Driver) != p.Driver {
				continue
			}
			p.Devices = slices.Clone(p.Devices)
			for j := range p.Devices {
				p.Devices[j].Taints = append(slices.Clip(p.Devices[j].Taints), cloud.DeviceTaint(&rule.Spec.Taint)...)
			}
		}
	}
	r.pools[&pools[0]] = out
	return out
}
