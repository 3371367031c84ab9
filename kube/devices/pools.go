// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"karpenter/cloud"
	"karpenter/model"
)

// pool is a pool, and the node that it belongs to; "" = no single node.
type pool struct {
	model.DevicePool
	node string
}

// standing is what a pool means for pods that have devices of it.
type standing int8

const (
	unknown standing = iota // it is not published, or not all of it
	ofNode                  // it is of one node
	common                  // it is of no single node
)

func (p *pool) standing() standing {
	switch {
	case p == nil || p.Broken != "":
		return unknown
	case p.node == "":
		return common
	}
	return ofNode
}

// Pools returns the pools of the node, or those of the cluster if it is "", by driver
// and name.
func (s *Store) Pools(node string) []model.DevicePool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []model.DevicePool
	for k := range s.byNode[node] {
		out = append(out, s.pools[k].DevicePool)
	}
	slices.SortFunc(out, func(a, b model.DevicePool) int {
		return cmp.Or(strings.Compare(a.Driver, b.Driver), strings.Compare(a.Name, b.Name))
	})
	return out
}

// build builds the pools again. It returns the nodes whose pools have changed, and the
// pods that have devices of pools whose meaning for them has changed.
func (s *Store) build(keys ...poolKey) Change {
	touched := sets.New[string]()
	var claims []string
	for _, k := range keys {
		old := s.pools[k]
		if old != nil {
			touched.Insert(old.node)
			if s.byNode[old.node].Delete(k); len(s.byNode[old.node]) == 0 {
				delete(s.byNode, old.node)
			}
			delete(s.pools, k)
		}
		if s.parts[k] != nil {
			p := s.poolOf(k)
			s.pools[k] = p
			if s.byNode[p.node] == nil {
				s.byNode[p.node] = sets.New[poolKey]()
			}
			s.byNode[p.node].Insert(k)
			touched.Insert(p.node)
		}
		if old.standing() != s.pools[k].standing() {
			claims = append(claims, sets.List(s.held[k])...)
		}
	}
	s.forgetKinds()
	return Change{Nodes: sets.List(touched), Pods: s.users(claims...)}
}

// forgetKinds drops kinds without devices when they can be half of all kinds. If
// devices have serial numbers, each device is a kind of its own.
func (s *Store) forgetKinds() {
	if len(s.kinds) < s.nextForget {
		return
	}
	s.kinds = cloud.Kinds{}
	for _, p := range s.pools {
		for i := range p.Devices {
			s.kinds[p.Devices[i].Kind.Key] = p.Devices[i].Kind
		}
	}
	s.nextForget = max(leastForget, 2*len(s.kinds))
}

const leastForget = 1000

// poolOf builds a pool from its latest slices.
func (s *Store) poolOf(k poolKey) *pool {
	latest := s.latest(k)
	out := &pool{DevicePool: model.DevicePool{Driver: k.driver, Name: k.name, InUse: s.inUse(k)}, node: ptr.Deref(latest[0].Spec.NodeName, "")}
	usable := 0
	for _, slice := range latest {
		if ptr.Deref(slice.Spec.NodeName, "") != out.node {
			out.node = ""
		}
		if !needsMore(slice) {
			usable++
		}
	}
	for _, slice := range latest {
		s.addSlice(out, slice)
	}
	if declared := latest[0].Spec.Pool.ResourceSliceCount; int64(usable) != declared {
		out.Broken = fmt.Sprintf("%d of %d slices are published", usable, declared)
		if usable < len(latest) {
			out.Broken += " that use no feature which is off"
		}
	} else {
		out.Broken = contradiction(latest)
	}
	return out
}

// latest returns the slices of the pool with the highest generation, by name.
func (s *Store) latest(k poolKey) []*resourcev1.ResourceSlice {
	var out []*resourcev1.ResourceSlice
	for _, name := range sets.List(s.parts[k]) {
		slice := s.slices[name]
		if len(out) > 0 && slice.Spec.Pool.Generation > out[0].Spec.Pool.Generation {
			out = nil
		}
		if len(out) == 0 || slice.Spec.Pool.Generation == out[0].Spec.Pool.Generation {
			out = append(out, slice)
		}
	}
	return out
}

// needsMore reports whether devices of the slice need features that are off by
// default and that plans do not support.
func needsMore(slice *resourcev1.ResourceSlice) bool {
	return slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool {
		return len(d.NodeAllocatableResources) > 0 ||
			slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool { return len(c.CompatibilityGroups) > 0 })
	})
}

// contradiction returns what is wrong with the slices of a pool, "" if nothing is.
func contradiction(all []*resourcev1.ResourceSlice) string {
	names, counters := sets.New[string](), map[string]map[string]resourcev1.Counter{}
	for _, slice := range all {
		for i := range slice.Spec.Devices {
			d := slice.Spec.Devices[i].Name
			if names.Has(d) {
				return "the device " + d + " is there twice"
			}
			names.Insert(d)
		}
		for _, c := range slice.Spec.SharedCounters {
			if counters[c.Name] != nil {
				return "the counter set " + c.Name + " is there twice"
			}
			counters[c.Name] = c.Counters
		}
	}
	for _, slice := range all {
		for i := range slice.Spec.Devices {
			for _, c := range slice.Spec.Devices[i].ConsumesCounters {
				of, known := counters[c.CounterSet]
				if !known {
					return fmt.Sprintf("the device %s uses the counter set %s, which is not there", slice.Spec.Devices[i].Name, c.CounterSet)
				}
				for _, name := range slices.Sorted(maps.Keys(c.Counters)) {
					if _, known := of[name]; !known {
						return fmt.Sprintf("the device %s uses the counter %s of %s, which is not there", slice.Spec.Devices[i].Name, name, c.CounterSet)
					}
				}
			}
		}
	}
	return ""
}

func (s *Store) addSlice(p *pool, slice *resourcev1.ResourceSlice) {
	spec := &slice.Spec
	for _, c := range spec.SharedCounters {
		p.Counters = append(p.Counters, cloud.Counts(c.Name, c.Counters)...)
	}
	for i := range spec.Devices {
		d := &spec.Devices[i]
		out := s.kinds.Device(p.Driver, d)
		for _, name := range slices.Sorted(maps.Keys(s.rules)) {
			if r := &s.rules[name].Spec; selects(r.DeviceSelector, p.Driver, p.Name, d.Name) {
				out.Taints = append(out.Taints, cloud.DeviceTaint(&r.Taint)...)
			}
		}
		switch {
		case p.node != "":
		case ptr.Deref(spec.PerDeviceNodeSelection, false):
			out.On = s.places(d.NodeName, d.AllNodes, d.NodeSelector)
		default:
			out.On = s.places(spec.NodeName, spec.AllNodes, spec.NodeSelector)
		}
		out.Late = len(d.BindingConditions) > 0
		p.Devices = append(p.Devices, out)
	}
}

// selects reports whether a rule is about the device. One that says nothing is about
// all devices.
func selects(by *resourcev1.DeviceTaintSelector, driver, pool, device string) bool {
	return by != nil && ptr.Deref(by.Driver, driver) == driver && ptr.Deref(by.Pool, pool) == pool && ptr.Deref(by.Device, device) == device
}

// places returns where a device is: nil = everywhere.
func (s *Store) places(node *string, all *bool, selector *corev1.NodeSelector) []model.Requirements {
	switch {
	case ptr.Deref(node, "") != "":
		return []model.Requirements{{model.NewRequirement(model.FieldName, model.In, *node)}}
	case ptr.Deref(all, false):
		return nil
	case selector != nil:
		return s.terms(selector)
	}
	return nowhere() // a newer form that this version does not know
}

// nowhere returns requirements that no node meets.
func nowhere() []model.Requirements {
	return []model.Requirements{{model.Requirement{Key: model.LabelHostname, Present: true}}}
}

// terms returns the terms of a selector, of which one must hold. A term that demands
// nothing matches nothing.
func (s *Store) terms(selector *corev1.NodeSelector) []model.Requirements {
	var out []model.Requirements
	for _, t := range selector.NodeSelectorTerms {
		var term model.Requirements
		for _, e := range t.MatchExpressions {
			values := make([]string, len(e.Values))
			for i, v := range e.Values {
				_, values[i] = s.labels.Canonical(e.Key, v)
			}
			term = term.And(model.NewRequirement(s.labels.CanonicalKey(e.Key), model.Operator(e.Operator), values...))
		}
		known := true
		for _, f := range t.MatchFields {
			known = known && f.Key == metav1.ObjectNameField
			term = term.And(model.NewRequirement(model.FieldName, model.Operator(f.Operator), f.Values...))
		}
		if known && len(term) > 0 {
			out = append(out, term)
		}
	}
	if len(out) == 0 {
		return nowhere()
	}
	return out
}

// inUse returns the devices of the pool that are allocated to claims, by device
// and claim.
func (s *Store) inUse(k poolKey) []model.DeviceUse {
	var out []model.DeviceUse
	for _, name := range sets.List(s.held[k]) {
		for _, r := range results(s.claims[name]) {
			if (poolKey{r.Driver, r.Pool}) != k || ptr.Deref(r.AdminAccess, false) {
				continue
			}
			use := model.DeviceUse{Device: r.Device, Share: r.ShareID != nil, Claim: name}
			for _, capacity := range slices.Sorted(maps.Keys(r.ConsumedCapacity)) {
				use.Takes = append(use.Takes, model.DeviceAmount{Name: string(capacity), Value: cloud.Thousandths(r.ConsumedCapacity[capacity])})
			}
			out = append(out, use)
		}
	}
	slices.SortStableFunc(out, func(a, b model.DeviceUse) int { return strings.Compare(a.Device, b.Device) })
	return out
}

// Published returns the drivers that have published a complete pool for the
// Node. A pool belongs to the Node if its slices name the Node, or have it as
// owner.
func (s *Store) Published(node *corev1.Node) sets.Set[string] {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := sets.New[string]()
	for k := range s.byNode[node.Name] {
		if s.pools[k].Broken == "" {
			out.Insert(k.driver)
		}
	}
	for k := range s.byNode[""] {
		owned := func(slice *resourcev1.ResourceSlice) bool {
			return slices.ContainsFunc(slice.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Node" && o.UID == node.UID })
		}
		if s.pools[k].Broken == "" && !slices.ContainsFunc(s.latest(k), func(slice *resourcev1.ResourceSlice) bool { return !owned(slice) }) {
			out.Insert(k.driver)
		}
	}
	return out
}

// Serves reports whether the Node has a device by which a DeviceClass serves the
// extended resource.
func (s *Store) Serves(node *corev1.Node, resource corev1.ResourceName) bool {
	kinds := map[string]*model.DeviceKind{}
	for _, p := range s.Pools(node.Name) {
		for _, d := range p.Devices {
			if p.Broken == "" {
				kinds[d.Kind.Key] = d.Kind
			}
		}
	}
	s.mu.RLock()
	class := s.serving[string(resource)]
	s.mu.RUnlock()
	if class == nil {
		return false
	}
	selectors, problem := selectorsOf(class.Spec.Selectors)
	for _, text := range selectors {
		of := s.judge.Selector(text, kinds)
		maps.DeleteFunc(kinds, func(key string, _ *model.DeviceKind) bool { return !slices.Contains(of.Matches, key) })
	}
	return problem == "" && len(kinds) > 0
}
