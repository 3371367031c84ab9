// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"maps"
	"slices"
	"strings"

	"karpenter/model"
)

// groups holds the plan against the PodGroups: of each, enough pods have a place
// for MinCount to run, or none has.
func (c *checker) groups(plan *model.Plan) {
	found := found(plan)
	for _, g := range c.s.Groups {
		switch n, need := found[g.Name], Lacking(c.s, g); {
		case g.Refused != "" && n > 0:
			c.fail("%d pods of PodGroup %s have a place although %s", n, g.Name, g.Refused)
		case 0 < n && n < need:
			c.fail("%d pods of PodGroup %s have a place, and it needs %d or none", n, g.Name, need)
		case g.Waits != "" && need > 0 && c.starting(plan, g.Name):
			c.fail("pods of PodGroup %s have places on nodes that are not initialized although %s", g.Name, g.Waits)
		case n > 0 && c.gathers(g):
			c.inOneDomain(plan, g)
		}
	}
}

// gathers reports whether the pods of the PodGroup must be in one domain: not if enough of
// them run for it to have started, and no one knows where.
func (c *checker) gathers(g model.PodGroup) bool {
	return g.TopologyKey != "" && (Lacking(c.s, g) > 0 || len(c.running(g)) > 0)
}

// starting reports whether the plan puts a pod of the group on a node that is not initialized.
func (c *checker) starting(plan *model.Plan, group string) bool {
	for _, l := range plan.Launches {
		if slices.ContainsFunc(l.Pods, func(p model.Pod) bool { return p.Group == group }) {
			return true
		}
	}
	return slices.ContainsFunc(plan.Placements, func(p model.Placement) bool {
		n := c.node(p.Node)
		return p.Pod.Group == group && n != nil && !n.Initialized
	})
}

// inOneDomain holds the plan against the topology key of the PodGroup: all nodes of its
// pods, and of those that run, have one value.
func (c *checker) inOneDomain(plan *model.Plan, g model.PodGroup) {
	if values := c.domains(plan, g); len(values) > 1 || values[""] {
		c.fail("pods of PodGroup %s are in the domains %q of %s", g.Name, slices.Sorted(maps.Keys(values)), g.TopologyKey)
	}
}

// confined returns the pods, in the domain that the others of the pod's PodGroup are in,
// if they must be in one.
func (c *checker) confined(plan *model.Plan, p *model.Pending, pod model.Pod) *model.Pending {
	i := slices.IndexFunc(c.s.Groups, func(g model.PodGroup) bool { return g.Name == pod.Group && g.TopologyKey != "" })
	if i < 0 || !c.gathers(c.s.Groups[i]) {
		return p
	}
	g := c.s.Groups[i]
	out, shape := *p, *p.Shape
	shape.GroupTerms = []model.Requirements{model.NewRequirements(model.NewRequirement(g.TopologyKey, model.In, slices.Sorted(maps.Keys(c.domains(plan, g)))...))}
	out.Shape = &shape
	return &out
}

// running returns the values of its topology key that the nodes of running pods of the
// PodGroup have.
func (c *checker) running(g model.PodGroup) map[string]bool {
	values := map[string]bool{}
	for i := range c.s.Nodes {
		if value, ok := c.s.Nodes[i].Labels.Value(g.TopologyKey); ok && slices.Contains(g.On, c.s.Nodes[i].Name) {
			values[value] = true
		}
	}
	return values
}

// domains returns the values that the nodes of its pods have, of those that run and of
// those that the plan has a place for; "" is one that is not known.
func (c *checker) domains(plan *model.Plan, g model.PodGroup) map[string]bool {
	values := c.running(g)
	for _, p := range plan.Placements {
		if p.Pod.Group == g.Name {
			i := slices.IndexFunc(c.s.Nodes, func(n model.Node) bool { return n.Name == p.Node })
			value, _ := c.s.Nodes[i].Labels.Value(g.TopologyKey)
			values[value] = true
		}
	}
	for _, l := range plan.Launches {
		if slices.ContainsFunc(l.Pods, func(p model.Pod) bool { return p.Group == g.Name }) {
			value, _ := l.Requirements.Value(g.TopologyKey)
			values[value] = true
		}
	}
	return values
}

// Lacking returns how many pending pods of the PodGroup must find a place for
// MinCount to run.
func Lacking(s *model.Snapshot, g model.PodGroup) int {
	lacking := g.MinCount - g.Running
	for _, pending := range s.Pending {
		for _, p := range pending.Pods {
			if p.Group == g.Name && p.From != "" {
				lacking++
			}
		}
	}
	return lacking
}

// found counts the pods of each PodGroup that the plan has a place for.
func found(plan *model.Plan) map[string]int {
	out := map[string]int{}
	for _, p := range plan.Placements {
		out[p.Pod.Group]++
	}
	for _, l := range plan.Launches {
		for _, p := range l.Pods {
			out[p.Group]++
		}
	}
	return out
}

// held reports whether the pods of the verdict stay pending whatever capacity there
// is for one of them alone: their PodGroup lacks other pods, or it does not run yet and the
// verdict says that these wait until it does.
func (c *checker) held(plan *model.Plan, v *model.Verdict) bool {
	for _, g := range c.s.Groups {
		if lacking := Lacking(c.s, g); g.Name == v.Pods[0].Group {
			return g.Refused != "" || found(plan)[g.Name] < lacking || lacking > 0 && strings.HasPrefix(v.Reason, "PodGroup ")
		}
	}
	return false
}
