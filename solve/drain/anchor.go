// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"

	"karpenter/model"
)

// hold notes what the pods that the command moves hold on to.
func (sc *scene) hold(c *model.Command, kinds map[string]*model.Pending) {
	for i := range c.Moves {
		if site, known := sc.sites[c.Moves[i].Node]; known {
			sc.holdOn(kinds[keyOf(&c.Moves[i].Pod)].Shape, sc.s.Nodes[site].Labels)
		}
	}
	for i := range c.Launches {
		l := &c.Launches[i]
		to := l.Requirements.And(model.NewRequirement(model.LabelZone, model.In, l.Zone))
		for j := range l.Pods {
			sc.holdOn(kinds[keyOf(&l.Pods[j])].Shape, to)
		}
	}
}

// holdOn notes what a pod of the shape holds on to on a node with the labels. Beside pods
// of the node itself it needs no note: they keep the node.
func (sc *scene) holdOn(shape *model.Shape, labels model.Requirements) {
	for i := range shape.Spread {
		if s := &shape.Spread[i]; !s.Soft && s.Key != model.LabelHostname && !slices.Contains(sc.anchors.spread, s.Key) {
			sc.anchors.spread = append(sc.anchors.spread, s.Key)
		}
	}
	for i := range shape.PodTerms {
		term := &shape.PodTerms[i]
		domain, ok := labels.Value(term.Key)
		h := held{term, domain}
		if !ok || term.Anti || term.Weight != 0 || term.Key == model.LabelHostname || sc.anchors.known[h] {
			continue
		}
		if sc.anchors.known == nil {
			sc.anchors.known = map[held]bool{}
		}
		sc.anchors.known[h] = true
		if sites := sc.selected(term, domain); len(sites) > 0 {
			sc.anchors.lists = append(sc.anchors.lists, sites)
		}
	}
}

// selected returns the sites in the domain with pods that the term selects and that run
// there now.
func (sc *scene) selected(term *model.PodTerm, domain string) []int {
	var out []int
	for _, i := range sc.memory.Selected(sc.s.Nodes, &term.Select) {
		if i >= len(sc.given.Nodes) || sc.s.Nodes[i].Deleting {
			continue
		}
		if in, ok := sc.s.Nodes[i].Labels.Value(term.Key); !ok || in != domain {
			continue
		}
		// Not counting those that are being moved there.
		if slices.ContainsFunc(sc.given.Nodes[i].Residents, func(r model.Resident) bool { return !r.Terminating && term.Select.Selects(&r.Peer) }) {
			out = append(out, i)
		}
	}
	return out
}

// anchored returns why the nodes of the sites cannot all go, "" if they can.
func (sc *scene) anchored(sites ...int) string {
	for _, list := range sc.anchors.lists {
		stays := func(i int) bool { return !sc.s.Nodes[i].Deleting && !slices.Contains(sites, i) }
		if slices.ContainsFunc(sites, func(i int) bool { return slices.Contains(list, i) }) && !slices.ContainsFunc(list, stays) {
			return "pods of other nodes are being moved near its pods"
		}
	}
	return ""
}

// unsettles returns why the nodes cannot be launched, "" if they can.
func (sc *scene) unsettles(launches []model.Launch) string {
	if len(sc.anchors.spread) == 0 {
		return ""
	}
	for i := range launches {
		labels := sc.labelled(&launches[i])
		for _, key := range sc.anchors.spread {
			domain, ok := labels.Value(key)
			if ok && !slices.ContainsFunc(sc.s.Nodes, func(n model.Node) bool { in, has := n.Labels.Value(key); return has && in == domain && !n.Deleting }) {
				return "pods that must be spread are being moved, and its replacement would be the only node in a topology domain"
			}
		}
	}
	return ""
}
