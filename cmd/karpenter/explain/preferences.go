// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"karpenter/model"
)

// Preference is a preference of pods that a plan does not honor for all of
// them.
type Preference struct {
	Prefers string `json:"prefers"`   // "pod anti-affinity on kubernetes.io/hostname (weight 100)"
	Pods    int    `json:"pods"`      // alike that are planned
	Without int    `json:"without"`   // of them, that do not get it
	Pod     bool   `json:"podItself"` // whether the pod that was asked about is one of those

	// What honoring it for all of Pods would cost more, in dollars per hour.
	// Impossible means that no plan does.
	CostPerHour float64 `json:"costPerHour"`
	Impossible  bool    `json:"impossible,omitempty"`
}

// Forgone has the preferences of equal pods that a plan does not honor.
type Forgone struct {
	Alike       []string     `json:"pods"` // namespace/name
	Preferences []Preference `json:"preferences"`
}

// AllForgone returns all preferences that the plan does not honor, without what
// honoring them would cost.
func AllForgone(s *model.Snapshot, plan *model.Plan) []Forgone {
	l := newLayout(s, plan)
	var out []Forgone
	for kind := range s.Pending {
		if f := l.forgone(kind, ""); len(f.Preferences) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// Weigh adds whether the pod's workload crowds a spot pool, what the pod prefers and the plan does not give it, or pods alike, and
// what honoring each of these preferences would cost by the plans that place makes.
func (a *Answer) Weigh(s *model.Snapshot, plan *model.Plan, place func(*model.Snapshot) *model.Plan) {
	kind := slices.IndexFunc(s.Pending, func(p model.Pending) bool {
		return slices.ContainsFunc(p.Pods, func(o model.Pod) bool { return o.Key() == a.Pod })
	})
	if kind < 0 || a.Outcome == Pending {
		return
	}
	at := slices.IndexFunc(s.Pending[kind].Pods, func(o model.Pod) bool { return o.Key() == a.Pod })
	a.Crowd = crowdOf(plan, &s.Pending[kind].Pods[at])
	a.Preferences = newLayout(s, plan).forgone(kind, a.Pod).Preferences
	if len(a.Preferences) == 0 {
		return
	}
	wanted, base := wantsOf(s.Pending[kind].Shape), place(s)
	for i := range a.Preferences {
		p := &a.Preferences[i]
		at := slices.IndexFunc(wanted, func(w want) bool { return w.text == p.Prefers })
		honoring := place(demanding(s, kind, wanted[at].demand))
		if left(honoring) > left(base) {
			p.Impossible = true
			continue
		}
		p.CostPerHour = max(honoring.Cost-base.Cost, 0).Dollars()
	}
}

func left(p *model.Plan) int {
	n := 0
	for i := range p.Verdicts {
		n += len(p.Verdicts[i].Pods)
	}
	return n
}

// demanding returns the situation in which pods of the kind demand what they
// prefer.
func demanding(s *model.Snapshot, kind int, demand func(*model.Shape)) *model.Snapshot {
	out := *s
	out.Pending = slices.Clone(s.Pending)
	shape := *out.Pending[kind].Shape
	shape.Key += " demanding"
	demand(&shape)
	out.Pending[kind].Shape = &shape
	return &out
}

// want is one preference of a shape.
type want struct {
	text   string
	unmet  func(l *layout, kind, site int) bool
	demand func(*model.Shape) // turns it into a requirement
}

// wantsOf returns the preferences of pods of the shape.
func wantsOf(s *model.Shape) []want {
	var out []want
	for i, p := range s.Preferences {
		out = append(out, want{
			fmt.Sprintf("node affinity to %s (weight %d)", p.Term, p.Weight),
			func(l *layout, _, site int) bool {
				_, ok := l.sites[site].labels.Satisfies(p.Term)
				return !ok
			},
			func(s *model.Shape) {
				s.VolumeTerms = (&model.Shape{Terms: []model.Requirements{p.Term}, VolumeTerms: s.VolumeTerms}).Alternatives()
				s.Preferences = slices.Delete(slices.Clone(s.Preferences), i, i+1)
			},
		})
	}
	for i := range s.PodTerms {
		t := &s.PodTerms[i]
		if t.Weight == 0 {
			continue
		}
		what := "pod affinity"
		if t.Anti {
			what = "pod anti-affinity"
		}
		out = append(out, want{
			fmt.Sprintf("%s on %s (weight %d)", what, t.Key, t.Weight),
			func(l *layout, kind, site int) bool {
				others := l.selected(&t.Select, t.Key, site)
				if t.Select.Selects(&l.s.Pending[kind].Peer) {
					others--
				}
				return t.Anti == (others > 0) && (t.Anti || l.anywhere(&t.Select) > 1)
			},
			func(s *model.Shape) {
				s.PodTerms = slices.Clone(s.PodTerms)
				s.PodTerms[i].Weight = 0
			},
		})
	}
	for i := range s.Spread {
		c := &s.Spread[i]
		if !c.Soft {
			continue
		}
		out = append(out, want{
			fmt.Sprintf("topology spread on %s (maxSkew %d)", c.Key, c.MaxSkew),
			func(l *layout, kind, site int) bool {
				return l.selected(&c.Select, c.Key, site)-l.fewest(kind, c) > c.MaxSkew
			},
			func(s *model.Shape) {
				s.Spread = slices.Clone(s.Spread)
				s.Spread[i].Soft = false
			},
		})
	}
	return out
}

// layout is where pods run once a plan is carried out.
type layout struct {
	s     *model.Snapshot
	sites []site
	at    map[string]int // by pod

	counts  map[asked]map[string]int // of pods by domain
	least   map[*model.Spread]int
	domains map[string][]string
}

// asked identifies a count in a layout: the pods that match a selector, in each
// domain of a key.
type asked struct {
	selector *model.PodSelector
	key      string
}

// site is a node there is or a node of the plan.
type site struct {
	labels model.Requirements
	kinds  map[int]int // planned pods by entry of Snapshot.Pending
	node   *model.Node // nil = it is to be launched
}

func newLayout(s *model.Snapshot, plan *model.Plan) *layout {
	l := &layout{s: s, at: map[string]int{}, counts: map[asked]map[string]int{}, least: map[*model.Spread]int{}, domains: map[string][]string{}}
	kinds, nodes := map[string]int{}, map[string]int{}
	for i := range s.Pending {
		for _, p := range s.Pending[i].Pods {
			kinds[p.Key()] = i
		}
	}
	for i := range s.Nodes {
		nodes[s.Nodes[i].Name] = i
		l.sites = append(l.sites, site{labels: s.Nodes[i].Labels, kinds: map[int]int{}, node: &s.Nodes[i]})
	}
	put := func(at int, pods ...model.Pod) {
		for _, p := range pods {
			if kind, ok := kinds[p.Key()]; ok {
				l.sites[at].kinds[kind]++
				l.at[p.Key()] = at
			}
		}
	}
	for _, p := range plan.Placements {
		if at, ok := nodes[p.Node]; ok {
			put(at, p.Pod)
		}
	}
	for i := range plan.Launches {
		n := &plan.Launches[i]
		l.sites = append(l.sites, site{labels: labelsOf(s, n), kinds: map[int]int{}})
		put(len(l.sites)-1, n.Pods...)
	}
	return l
}

// labelsOf returns the labels that the node of a launch has if it becomes what the
// plan counts on.
func labelsOf(s *model.Snapshot, l *model.Launch) model.Requirements {
	out := l.Requirements
	p := poolOf(s, l.Pool)
	if p == nil {
		return out
	}
	i := slices.IndexFunc(p.Types, func(t *model.InstanceType) bool { return t.Name == l.Type })
	if i < 0 {
		return out
	}
	out = out.And(p.Types[i].Requirements...)
	for _, o := range p.Types[i].Offerings {
		if o.Zone == l.Zone && o.CapacityType == l.CapacityType {
			return out.And(o.Requirements...)
		}
	}
	return out
}

// forgone returns the preferences of pods of the kind that not all of them get.
func (l *layout) forgone(kind int, key string) Forgone {
	var out Forgone
	pending := &l.s.Pending[kind]
	for _, p := range pending.Pods {
		if _, ok := l.at[p.Key()]; ok {
			out.Alike = append(out.Alike, p.Key())
		}
	}
	for _, w := range wantsOf(pending.Shape) {
		p := Preference{Prefers: w.text, Pods: len(out.Alike)}
		unmet := map[int]bool{}
		for _, pod := range out.Alike {
			at := l.at[pod]
			without, known := unmet[at]
			if !known {
				without = w.unmet(l, kind, at)
				unmet[at] = without
			}
			if without {
				p.Without++
				p.Pod = p.Pod || pod == key
			}
		}
		if p.Without > 0 {
			out.Preferences = append(out.Preferences, p)
		}
	}
	return out
}

// domain returns the domain of a site; every site is one of its own by hostname.
func (l *layout) domain(key string, at int) string {
	if key == model.LabelHostname {
		return fmt.Sprint(at)
	}
	value, _ := l.sites[at].labels.Value(key)
	return value
}

// selected returns how many pods that the selector picks are in the domain of a
// site.
func (l *layout) selected(sel *model.PodSelector, key string, at int) int {
	if key == model.LabelHostname {
		return l.on(sel, at)
	}
	domain := l.domain(key, at)
	if domain == "" {
		return 0
	}
	question := asked{sel, key}
	counts, ok := l.counts[question]
	if !ok {
		counts = map[string]int{}
		for i := range l.sites {
			counts[l.domain(key, i)] += l.on(sel, i)
		}
		l.counts[question] = counts
	}
	return counts[domain]
}

func (l *layout) anywhere(sel *model.PodSelector) int {
	n := 0
	for i := range l.sites {
		n += l.on(sel, i)
	}
	return n
}

// on returns how many pods that the selector picks are on a site.
func (l *layout) on(sel *model.PodSelector, at int) int {
	n := 0
	for kind, pods := range l.sites[at].kinds {
		if sel.Selects(&l.s.Pending[kind].Peer) {
			n += pods
		}
	}
	if node := l.sites[at].node; node != nil {
		for i := range node.Residents {
			if r := &node.Residents[i]; !r.Terminating && sel.Selects(&r.Peer) {
				n += r.Count
			}
		}
	}
	return n
}

// fewest returns the minimum number of selected pods over the domains of nodes,
// and the domains in which a node for pods of the kind can be launched.
func (l *layout) fewest(kind int, c *model.Spread) int {
	least, ok := l.least[c]
	if !ok {
		least = l.countFewest(kind, c)
		l.least[c] = least
	}
	return least
}

func (l *layout) countFewest(kind int, c *model.Spread) int {
	counts := map[string]int{}
	for i := range l.sites {
		if n := l.sites[i].node; n != nil && (n.Deleting || n.Closed) {
			continue
		}
		if domain := l.domain(c.Key, i); domain != "" && l.eligible(kind, c, l.sites[i].labels) {
			counts[domain] += l.on(&c.Select, i)
		}
	}
	for _, value := range l.buyable(kind, c) {
		counts[value] += 0
	}
	if len(counts) < c.MinDomains || len(counts) == 0 {
		return 0
	}
	return slices.Min(slices.Collect(maps.Values(counts)))
}

// buyable returns the domains in which nodes for pods of the kind can be launched.
func (l *layout) buyable(kind int, c *model.Spread) []string {
	if c.Key == model.LabelHostname {
		return nil
	}
	name := fmt.Sprint(c.Key, c.AnyNode, l.s.Pending[kind].Shape.Chosen())
	if known, ok := l.domains[name]; ok {
		return known
	}
	found := map[string]bool{}
	for i := range l.s.Pools {
		p := &l.s.Pools[i]
		for _, t := range p.Types {
			for _, o := range t.Offerings {
				if p.Unavailable != "" || !o.Available {
					continue
				}
				labels := p.Requirements.And(t.Requirements...).And(o.Requirements...)
				if value, ok := labels.Value(c.Key); ok && !found[value] && l.eligible(kind, c, labels) {
					found[value] = true
				}
			}
		}
	}
	l.domains[name] = slices.Collect(maps.Keys(found))
	return l.domains[name]
}

// eligible reports whether nodes with the labels count for the spread of the kind.
func (l *layout) eligible(kind int, c *model.Spread, labels model.Requirements) bool {
	if c.AnyNode {
		return true
	}
	return slices.ContainsFunc(l.s.Pending[kind].Shape.Chosen(), func(r model.Requirements) bool {
		_, ok := labels.Compatible(r, l.s.WellKnown)
		return ok
	})
}

// preferencesText writes the preferences, one on a line.
func preferencesText(b *strings.Builder, all []Preference) {
	for i, p := range all {
		name := ""
		if i == 0 {
			name = "drops"
		}
		fmt.Fprintf(b, "  %-10s %s\n", name, p.Text())
	}
}

// Text says what is not honored, for whom, and what it would cost.
func (p Preference) Text() string {
	who := fmt.Sprintf("%d of %d pods", p.Without, p.Pods)
	switch {
	case p.Pods == 1:
		who = "this pod"
	case p.Pod && p.Without < p.Pods:
		who += " alike, this one included"
	case p.Without == p.Pods:
		who = fmt.Sprintf("all %d pods alike", p.Pods)
	default:
		who += " alike, not this one"
	}
	cost := fmt.Sprintf("to honor it would cost %s more", dollars(p.CostPerHour))
	switch {
	case p.Impossible:
		cost = "no nodes that the NodePools allow can honor it"
	case p.CostPerHour == 0:
		cost = "to honor it would cost nothing more, but other preferences are in the way"
	}
	return fmt.Sprintf("preferred %s, for %s: %s", p.Prefers, who, cost)
}
