// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
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
				t := l.tally(l.s.Pending[kind].Shape, c)
				return t.pods[l.domain(c.Key, site)]-t.fewest > c.MaxSkew
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
	s       *model.Snapshot
	sites   []site
	at      map[string]int // sites of planned pods
	pods    []group
	byLabel map[model.Label][]group // pods with the label

	counts  map[asked]map[string]int // of pods by domain
	tallies map[*model.Spread]tally
	grounds map[string]*ground // by what spread constraints ask of nodes
	offers  *fit.Catalogue     // nil until a spread constraint needs it
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
	taints []model.Taint
	node   *model.Node // nil = it is to be launched
}

// group is equal pods on a site.
type group struct {
	peer        *model.Peer
	site, count int
}

// ground is the nodes that a spread constraint looks at.
type ground struct {
	counts  []bool          // by site
	domains map[string]bool // of the nodes that pods have to spread over, and where such nodes can be launched
}

// tally is the pods that a spread constraint counts.
type tally struct {
	pods   map[string]int // by domain
	fewest int            // in the domain with fewest; 0 if there are less than MinDomains
}

func newLayout(s *model.Snapshot, plan *model.Plan) *layout {
	l := &layout{
		s: s, at: map[string]int{}, byLabel: map[model.Label][]group{},
		counts: map[asked]map[string]int{}, tallies: map[*model.Spread]tally{}, grounds: map[string]*ground{},
	}
	peers, nodes := map[string]*model.Peer{}, map[string]int{}
	for i := range s.Pending {
		for _, p := range s.Pending[i].Pods {
			peers[p.Key()] = &s.Pending[i].Peer
		}
	}
	put := func(at int, pods ...model.Pod) {
		for _, p := range pods {
			if peer, ok := peers[p.Key()]; ok {
				l.at[p.Key()] = at
				l.add(group{peer, at, 1})
			}
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		nodes[n.Name] = i
		l.sites = append(l.sites, site{n.Labels, n.Taints, n})
		for j := range n.Residents {
			if r := &n.Residents[j]; !r.Terminating {
				l.add(group{&r.Peer, i, r.Count})
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
		launched := site{labels: labelsOf(s, n)}
		if p := poolOf(s, n.Pool); p != nil {
			launched.taints = p.Taints
		}
		l.sites = append(l.sites, launched)
		put(len(l.sites)-1, n.Pods...)
	}
	return l
}

func (l *layout) add(g group) {
	l.pods = append(l.pods, g)
	for _, label := range g.peer.Labels {
		l.byLabel[label] = append(l.byLabel[label], g)
	}
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
		return strconv.Itoa(at)
	}
	value, _ := l.sites[at].labels.Value(key)
	return value
}

// selected returns how many pods that the selector picks are in the domain of a
// site.
func (l *layout) selected(sel *model.PodSelector, key string, at int) int {
	domain := l.domain(key, at)
	if domain == "" {
		return 0
	}
	question := asked{sel, key}
	counts, ok := l.counts[question]
	if !ok {
		counts = map[string]int{}
		for g := range l.picked(sel) {
			counts[l.domain(key, g.site)] += g.count
		}
		l.counts[question] = counts
	}
	return counts[domain]
}

func (l *layout) anywhere(sel *model.PodSelector) int {
	n := 0
	for g := range l.picked(sel) {
		n += g.count
	}
	return n
}

// picked yields the pods that the selector picks. If it asks for a label, it looks only at
// pods with that label: most selectors pick few of all pods.
func (l *layout) picked(sel *model.PodSelector) iter.Seq[group] {
	from := l.pods
	if label, ok := sel.Label(); ok {
		from = l.byLabel[label]
	}
	return func(yield func(group) bool) {
		for _, g := range from {
			if sel.Selects(g.peer) && !yield(g) {
				return
			}
		}
	}
}

// tally returns what a spread constraint of the shape counts.
func (l *layout) tally(s *model.Shape, c *model.Spread) tally {
	t, ok := l.tallies[c]
	if !ok {
		t = l.count(l.ground(s, c), c)
		l.tallies[c] = t
	}
	return t
}

func (l *layout) count(on *ground, c *model.Spread) tally {
	t := tally{pods: map[string]int{}}
	if len(c.Select.Labels) == 0 { // kube-scheduler counts no pods for a selector that demands nothing
		return t
	}
	for g := range l.picked(&c.Select) {
		if on.counts[g.site] {
			t.pods[l.domain(c.Key, g.site)] += g.count
		}
	}
	least, with := math.MaxInt, 0
	for domain, n := range t.pods {
		if on.domains[domain] {
			least, with = min(least, n), with+1
		}
	}
	if with == len(on.domains) && with >= max(c.MinDomains, 1) { // otherwise a domain has no pods, or is missing
		t.fewest = least
	}
	return t
}

// ground returns the nodes that a spread constraint of the shape looks at. Constraints that
// ask the same of nodes share it, so that the nodes and offerings are not compared with each.
func (l *layout) ground(s *model.Shape, c *model.Spread) *ground {
	chosen := s.Chosen()
	name := fmt.Sprint(c.Key, c.AnyNode, c.HonorTaints, chosen)
	if c.HonorTaints {
		name += fmt.Sprint(s.Tolerations)
	}
	g, ok := l.grounds[name]
	if !ok {
		g = &ground{counts: make([]bool, len(l.sites)), domains: map[string]bool{}}
		l.grounds[name] = g
		l.survey(g, s, c, chosen)
	}
	return g
}

// survey finds the nodes of a ground. Chosen is what the shape asks of nodes. Pods need not
// spread over nodes that are gone soon.
func (l *layout) survey(g *ground, s *model.Shape, c *model.Spread, chosen []model.Requirements) {
	for i := range l.sites {
		at, domain := &l.sites[i], l.domain(c.Key, i)
		undefined := l.s.WellKnown
		if at.node != nil { // a label that it lacks now is not added later
			undefined = nil
		}
		g.counts[i] = domain != "" && (!c.HonorTaints || !repels(at.taints, s)) &&
			(c.AnyNode || slices.ContainsFunc(chosen, func(r model.Requirements) bool {
				_, ok := at.labels.Compatible(r, undefined)
				return ok
			}))
		if g.counts[i] && (at.node == nil || !at.node.Deleting || at.node.Stuck) {
			g.domains[domain] = true
		}
	}
	if c.Key == model.LabelHostname {
		return
	}
	if l.offers == nil {
		l.offers = fit.NewCatalogue(l.s)
	}
	offers := fit.NewBits(len(l.offers.Offers))
	for i := range l.offers.Pools {
		if p := &l.offers.Pools[i]; !c.HonorTaints || !repels(p.Taints, s) {
			p.Usable.AddTo(offers)
		}
	}
	if !c.AnyNode {
		offers.Keep(l.offers.Any(chosen))
	}
	labels := l.offers.Spelling(c.Key)
	for o := range offers.Less(labels.Absent).Less(labels.Open).All() {
		g.domains[labels.Labels[labels.Of[o]].Values[0]] = true
	}
}

// repels reports whether the taints keep pods of the shape away for good.
func repels(taints []model.Taint, s *model.Shape) bool {
	_, bad := model.Untolerated(model.Firm(taints), s.Tolerations)
	return bad
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
