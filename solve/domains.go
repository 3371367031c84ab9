// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"fmt"
	"maps"
	"slices"

	"karpenter/model"
)

// pinned returns s with the pods of PodGroups whose running pods fix a topology
// domain pinned to it.
func pinned(s *model.Snapshot) *model.Snapshot {
	if !slices.ContainsFunc(s.Groups, func(g model.PodGroup) bool { return len(g.On) > 0 }) {
		return s
	}
	out := *s
	out.Groups = slices.Clone(s.Groups)
	to := map[string][]model.Requirements{}
	for i := range out.Groups {
		g := &out.Groups[i]
		switch values := valuesOn(s, g); {
		case len(values) == 0:
			g.On = nil // they say nothing
		case len(values) == 1:
			to[g.Name] = []model.Requirements{model.NewRequirements(model.NewRequirement(g.TopologyKey, model.In, values...))}
		case g.Refused == "":
			g.Refused = fmt.Sprintf("its running pods are in several domains of %s, where it must be in one", g.TopologyKey)
		}
	}
	out.Pending = pin(s.Pending, to)
	return &out
}

// valuesOn returns the values of its topology key that nodes of running pods of the
// group have.
func valuesOn(s *model.Snapshot, g *model.PodGroup) []string {
	found := map[string]bool{}
	for i := range s.Nodes {
		if value, ok := s.Nodes[i].Labels.Value(g.TopologyKey); ok && slices.Contains(g.On, s.Nodes[i].Name) {
			found[value] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// pin returns the pending pods, those of some PodGroups with a demand more: one of the terms
// must hold.
func pin(list []model.Pending, to map[string][]model.Requirements) []model.Pending {
	if len(to) == 0 {
		return list
	}
	var out []model.Pending
	for _, pending := range list {
		var free []model.Pod
		byGroup := map[string][]model.Pod{}
		for _, p := range pending.Pods {
			if _, ok := to[p.Group]; ok {
				byGroup[p.Group] = append(byGroup[p.Group], p)
			} else {
				free = append(free, p)
			}
		}
		if len(free) > 0 {
			rest := pending
			rest.Pods = free
			out = append(out, rest)
		}
		for _, group := range slices.Sorted(maps.Keys(byGroup)) {
			shape := *pending.Shape
			shape.GroupTerms = both(shape.GroupTerms, to[group])
			for _, term := range to[group] {
				shape.Key += "\x00" + term.String()
			}
			out = append(out, model.Pending{Shape: &shape, Peer: pending.Peer, Pods: byGroup[group]})
		}
	}
	return out
}

// both returns the terms of which one holds if one of each list does; no terms demand nothing.
func both(a, b []model.Requirements) []model.Requirements {
	if len(a) == 0 {
		return b
	}
	var out []model.Requirements
	for _, x := range a {
		for _, y := range b {
			out = append(out, x.And(y...))
		}
	}
	return out
}

// mostAvoided is how many places one plan avoids: terms double with each.
const mostAvoided = 2

// avoiding returns the terms of which one holds for nodes in none of the first places, and for
// initialized nodes there.
func avoiding(s *model.Snapshot, places []model.Place) []model.Requirements {
	var out []model.Requirements
	var there []string
	for _, p := range places[:min(len(places), mostAvoided)] {
		out = both(out, []model.Requirements{
			model.NewRequirements(model.NewRequirement(model.LabelInstanceType, model.NotIn, p.Type)),
			model.NewRequirements(model.NewRequirement(model.LabelZone, model.NotIn, p.Zone)),
		})
		for i := range s.Nodes {
			kind, _ := s.Nodes[i].Labels.Value(model.LabelInstanceType)
			zone, _ := s.Nodes[i].Labels.Value(model.LabelZone)
			if name, ok := s.Nodes[i].Labels.Value(model.LabelHostname); ok && s.Nodes[i].Initialized && p == (model.Place{Type: kind, Zone: zone}) {
				there = append(there, name)
			}
		}
	}
	if len(there) > 0 {
		out = append(out, model.NewRequirements(model.NewRequirement(model.LabelHostname, model.In, there...)))
	}
	return out
}

// domainsOf returns the values of a label that nodes have, or that new nodes are known
// to have before they are launched.
func domainsOf(s *model.Snapshot, key string) []string {
	found := map[string]bool{}
	add := func(rs model.Requirements) {
		if r, ok := rs.Get(key); ok && !r.Complement {
			for _, v := range r.Values {
				found[v] = true
			}
		}
	}
	for i := range s.Nodes {
		add(s.Nodes[i].Labels)
	}
	for i := range s.Pools {
		add(s.Pools[i].Requirements)
		for _, t := range s.Pools[i].Types {
			add(t.Requirements)
			for j := range t.Offerings {
				add(t.Offerings[j].Requirements)
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
