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
	to := map[string]model.Requirement{}
	for i := range out.Groups {
		g := &out.Groups[i]
		switch values := valuesOn(s, g); {
		case len(values) == 0:
			g.On = nil // they say nothing
		case len(values) == 1:
			to[g.Name] = model.NewRequirement(g.TopologyKey, model.In, values...)
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

// pin returns the pending pods, those of some PodGroups with a demand more.
func pin(list []model.Pending, to map[string]model.Requirement) []model.Pending {
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
			demand, shape := to[group], *pending.Shape
			shape.GroupTerms = []model.Requirements{model.NewRequirements(demand)}
			shape.Key += "\x00" + demand.String()
			out = append(out, model.Pending{Shape: &shape, Peer: pending.Peer, Pods: byGroup[group]})
		}
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
