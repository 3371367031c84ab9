// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// site is where pods run: a node there is, or a launch.
type site struct {
	name     string
	outcomes []model.Requirements // the labels of every instance it may become, also of those that cannot be had now
	taints   []model.Taint
	gone     bool // a node going away: its pods count, itself is no domain
	blank    bool // some host that no one runs on, and nothing else
	bound    []guest
}

// guest is pods on a site, as others see them.
type guest struct {
	peer        *model.Peer
	anti        []model.PodTerm
	terminating bool
	count       int
}

// absent stands for a node without the label, or with one no one can foretell.
const absent = "(none)"

// domains returns the values the label may turn out to have, sorted.
func (s *site) domains(key string) []string {
	if key == model.LabelHostname {
		return []string{s.name}
	}
	var out []string
	for _, o := range s.outcomes {
		if r, ok := o.Get(key); ok && !r.Complement && len(r.Values) > 0 {
			out = append(out, r.Values...)
		} else {
			out = append(out, absent)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// settled returns the value of a label that is certain.
func (s *site) settled(key string) (string, bool) {
	d := s.domains(key)
	if len(d) == 0 {
		return "", false
	}
	return d[0], len(d) == 1 && d[0] != absent
}

// nodeSite is a node of a Snapshot with the pods bound to it.
func nodeSite(n *model.Node) *site {
	s := &site{name: n.Name, outcomes: eachValue(n.Labels), taints: n.Taints, gone: n.Deleting && !n.Stuck}
	for i := range n.Residents {
		r := &n.Residents[i]
		s.bound = append(s.bound, guest{&r.Peer, r.Anti, r.Terminating, r.Count})
	}
	return s
}

// eachValue returns what labels with several values may turn out to be.
func eachValue(labels model.Requirements) []model.Requirements {
	out := []model.Requirements{labels}
	for _, r := range labels {
		if r.Complement || len(r.Values) < 2 {
			continue
		}
		var more []model.Requirements
		for _, l := range out {
			for _, v := range r.Values {
				more = append(more, l.And(model.NewRequirement(r.Key, model.In, v)))
			}
		}
		out = more
	}
	return out
}

// numbered settles the labels that a claim demands without naming values: they get
// a number.
func numbered(s *model.Snapshot, labels model.Requirements) model.Requirements {
	for _, r := range labels {
		if n, ok := r.Number(); ok && !r.AllowsAbsence() && !s.WellKnown.Has(r.Key) {
			labels = labels.Without(r.Key).And(model.NewRequirement(r.Key, model.In, n))
		}
	}
	return labels
}

// bind adds a pod to the site.
func (s *site) bind(p *model.Pending) {
	s.bound = append(s.bound, guest{peer: &p.Peer, anti: required(p.Shape, true), count: 1})
}

// required returns the pod affinity, or anti-affinity, that must hold.
func required(shape *model.Shape, anti bool) []model.PodTerm {
	var out []model.PodTerm
	for _, t := range shape.PodTerms {
		if t.Weight == 0 && t.Anti == anti {
			out = append(out, t)
		}
	}
	return out
}

// refusal says why kube-scheduler would not bind a pod of p to the site now,
// as far as other pods are concerned; "" = it would. Where labels are not
// settled, every outcome must do.
func refusal(sites []*site, p *model.Pending, at *site) string {
	for i := range p.Shape.Spread {
		if why := spreadRefusal(sites, p, &p.Shape.Spread[i], at); why != "" {
			return why
		}
	}
	if why := affinityRefusal(sites, p, at); why != "" {
		return why
	}
	for _, s := range sites {
		for _, g := range s.bound {
			for _, t := range required(p.Shape, true) {
				if t.Select.Selects(g.peer) && meet(at, s, t.Key) {
					return fmt.Sprintf("anti-affinity on %s to a pod on %s", t.Key, s.name)
				}
			}
			for _, t := range g.anti {
				if t.Select.Selects(&p.Peer) && meet(at, s, t.Key) {
					return fmt.Sprintf("the anti-affinity on %s of a pod on %s", t.Key, s.name)
				}
			}
		}
	}
	return ""
}

// meet reports whether two sites may end up in one domain.
func meet(a, b *site, key string) bool {
	return slices.ContainsFunc(a.domains(key), func(d string) bool { return d != absent && slices.Contains(b.domains(key), d) })
}

// affinityRefusal is the rule of pod affinity: in the domain of every term
// runs a pod that all terms select, unless there is none anywhere and the pod
// is such a pod itself.
func affinityRefusal(sites []*site, p *model.Pending, at *site) string {
	terms := required(p.Shape, false)
	if len(terms) == 0 {
		return ""
	}
	selected := func(peer *model.Peer) bool {
		return !slices.ContainsFunc(terms, func(t model.PodTerm) bool { return !t.Select.Selects(peer) })
	}
	anywhere, missing := false, ""
	for _, t := range terms {
		own, ok := at.settled(t.Key)
		if !ok {
			return fmt.Sprintf("affinity on %s, which is not settled", t.Key)
		}
		here := false
		for _, s := range sites {
			if slices.ContainsFunc(s.bound, func(g guest) bool { return !g.terminating && selected(g.peer) }) {
				there, sure := s.settled(t.Key)
				anywhere = anywhere || sure || len(s.domains(t.Key)) > 1
				here = here || sure && there == own
			}
		}
		if !here {
			missing = fmt.Sprintf("affinity on %s: no such pod in %s", t.Key, own)
		}
	}
	if missing == "" || !anywhere && selected(&p.Peer) {
		return ""
	}
	return missing
}

// spreadRefusal is the rule of a topology spread constraint.
func spreadRefusal(sites []*site, p *model.Pending, c *model.Spread, at *site) string {
	if c.Soft {
		return ""
	}
	own, ok := at.settled(c.Key)
	if !ok {
		return fmt.Sprintf("spread over %s, which is not settled", c.Key)
	}
	if len(c.Select.Labels) == 0 && !c.Select.Nothing {
		return "" // the scheduler counts no pods for an empty selector
	}
	tallies := map[string]*tally{}
	for _, s := range sites {
		for _, d := range s.domains(c.Key) {
			certainly, possibly := counts(p.Shape, c, s, d)
			if possibly {
				if tallies[d] == nil {
					tallies[d] = &tally{}
				}
				tallies[d].add(s.living(&c.Select), certainly, s.gone)
			}
		}
	}
	fewest, known := fewestOf(tallies)
	if known < max(c.MinDomains, 1) {
		fewest = 0
	}
	n := 0
	if t := tallies[own]; t != nil {
		n = t.most
	}
	self := 0
	if c.Select.Selects(&p.Peer) {
		self = 1
	}
	if n+self-fewest > c.MaxSkew {
		return fmt.Sprintf("spread over %s: %d in %s, %d elsewhere, skew %d", c.Key, n, own, fewest, c.MaxSkew)
	}
	return ""
}

// tally is how many selected pods a domain has, where some sites may turn out
// not to be in it, or not to count.
type tally struct {
	most    int
	certain int // pods of the sites that are in it for sure
	sure    bool
	perhaps int // least pods of a site that may be in it
	maybe   bool
}

func (t *tally) add(n int, certainly, gone bool) {
	t.most += n
	switch {
	case gone: // its pods are there as yet, and it is no domain
		if certainly {
			t.certain += n
		}
	case certainly:
		t.certain += n
		t.sure = true
	case !t.maybe || n < t.perhaps:
		t.perhaps, t.maybe = n, true
	}
}

// fewestOf returns the least count a domain may have and how many domains
// there are for sure.
func fewestOf(tallies map[string]*tally) (fewest, known int) {
	fewest = -1
	for _, t := range tallies {
		n := t.certain
		switch {
		case t.sure:
			known++
		case t.maybe:
			n += t.perhaps
		default:
			continue
		}
		if fewest < 0 || n < fewest {
			fewest = n
		}
	}
	return max(fewest, 0), known
}

// living counts the pods the selector picks that are there to stay.
func (s *site) living(sel *model.PodSelector) int {
	n := 0
	for _, g := range s.bound {
		if !g.terminating && sel.Selects(g.peer) {
			n += g.count
		}
	}
	return n
}

// counts reports whether a spread constraint of the shape looks at the site as
// part of the domain: it is there, has every label that the shape spreads
// over, and the policies allow it.
func counts(shape *model.Shape, c *model.Spread, s *site, domain string) (certainly, possibly bool) {
	if s.blank {
		return c.Key == model.LabelHostname, c.Key == model.LabelHostname
	}
	if _, bad := model.Untolerated(firm(s.taints), shape.Tolerations); c.HonorTaints && bad || domain == absent {
		return false, false
	}
	certainly = true
	for _, labels := range s.outcomes {
		one := site{name: s.name, outcomes: []model.Requirements{labels}}
		in := slices.Contains(one.domains(c.Key), domain) && one.labelled(shape) && (c.AnyNode || chosen(shape, labels))
		_, sure := one.settled(c.Key)
		possibly, certainly = possibly || in, certainly && in && sure
	}
	return certainly, possibly
}

// labelled reports whether the site has every label that the shape spreads
// over.
func (s *site) labelled(shape *model.Shape) bool {
	return !slices.ContainsFunc(shape.Spread, func(c model.Spread) bool { return !c.Soft && slices.Contains(s.domains(c.Key), absent) })
}

// chosen reports whether the pod's own selector and affinity allow the labels.
func chosen(shape *model.Shape, labels model.Requirements) bool {
	return slices.ContainsFunc(shape.Chosen(), func(alt model.Requirements) bool { _, ok := labels.Satisfies(alt); return ok })
}
