// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"cmp"
	"slices"
	"strconv"

	"karpenter/model"
)

// New compiles the rules between the pending pods of s and those on its nodes,
// with wishes by kind.
func New(s *model.Snapshot, wishes map[int]Wishes, m *Memory) *State {
	return NewWith(s, wishes, nil, nil, m)
}

// Wishes are preferences of a kind that are to be rules.
type Wishes struct {
	Spread   []model.Spread
	PodTerms []model.PodTerm
}

// NewWith is as New, with more nodes. They are the sites from len(s.Nodes) on;
// the outlook knows their labels.
func NewWith(s *model.Snapshot, wishes map[int]Wishes, more []model.Node, outlook Outlook, m *Memory) *State {
	m.see(s.Nodes)
	c := &compiler{
		wishes:   wishes,
		State:    &State{numbers: map[string]int{}, own: s.Nodes, expected: expected{more, outlook}, memory: m, wellKnown: s.WellKnown, sights: sights{lookouts: map[lookout]*tally{}}, kinds: make([]rules, len(s.Pending))},
		Memory:   m,
		snapshot: s, kindsOf: map[int][]int{}, shared: map[string]*tally{}, looks: map[string]*filter{},
	}
	defer m.keep()
	for i := range s.Pending {
		p := c.peer(&s.Pending[i].Peer)
		c.pending = append(c.pending, p)
		if len(s.Pending[i].Shape.Refused) == 0 {
			c.kindsOf[p] = append(c.kindsOf[p], i)
		}
	}
	c.namedKeys()
	c.locate()
	for i := range s.Pending {
		c.compile(i)
	}
	c.seed()
	c.link()
	c.order()
	return c.State
}

type compiler struct {
	*State
	*Memory
	snapshot *model.Snapshot
	pending  []int             // numbers of the peers of the pending pods
	kindsOf  map[int][]int     // by number of a peer: the pending pods, but those that no node takes
	shared   map[string]*tally // of affinity and anti-affinity, by what it counts
	counted  []counted
	wishes   map[int]Wishes
	looks    map[string]*filter // by text and keys
}

// counted is a tally with what picks the pods in it: every one of selectors.
type counted struct {
	*tally
	selectors []*selector
}

// namedKeys numbers the topology keys that pending pods, or the anti-affinity
// of pods on nodes, name, in order of name.
func (c *compiler) namedKeys() {
	var names []string
	spread := func(some []model.Spread) {
		for i := range some {
			if !some[i].Soft {
				names = append(names, some[i].Key)
			}
		}
	}
	terms := func(some []model.PodTerm) {
		for i := range some {
			if some[i].Weight == 0 {
				names = append(names, some[i].Key)
			}
		}
	}
	for i := range c.snapshot.Pending {
		spread(c.snapshot.Pending[i].Shape.Spread)
		terms(c.snapshot.Pending[i].Shape.PodTerms)
		spread(c.wishes[i].Spread)
		terms(c.wishes[i].PodTerms)
	}
	for name, terms := range c.antiKeys {
		if terms > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		c.key(name)
	}
}

// compile turns the constraints of a kind, and what it wishes, into tallies and
// rules.
func (c *compiler) compile(i int) {
	shape := c.snapshot.Pending[i].Shape
	if len(shape.Refused) > 0 {
		return
	}
	var keys []int
	for j := range shape.Spread {
		if shape.Spread[j].Soft {
			continue
		}
		if k := c.key(shape.Spread[j].Key); k != Hostname {
			keys = append(keys, k)
		}
	}
	view := newView(shape, keys)
	for j := range shape.Spread {
		if !shape.Spread[j].Soft {
			c.spread(i, &shape.Spread[j], &view)
		}
	}
	var near []model.PodTerm
	for j := range shape.PodTerms {
		switch term := &shape.PodTerms[j]; {
		case term.Weight > 0:
		case term.Anti:
			c.apart(i, term)
			c.kinds[i].adds = append(c.kinds[i].adds, c.holders(term, termText(term)))
		default:
			near = append(near, *term)
		}
	}
	if len(near) > 0 {
		c.near(i, near)
	}
	c.wish(i, view.keys)
}

// wish compiles what a kind wishes. Of pods that do not share the wish nothing
// is demanded for it.
func (c *compiler) wish(i int, keys []int) {
	w := c.wishes[i]
	for j := range w.Spread {
		more := slices.Clone(keys)
		if k := c.key(w.Spread[j].Key); k != Hostname {
			more = append(more, k)
		}
		view := newView(c.snapshot.Pending[i].Shape, more)
		c.spread(i, &w.Spread[j], &view)
	}
	for j := range w.PodTerms {
		if w.PodTerms[j].Anti {
			c.apart(i, &w.PodTerms[j])
		} else {
			c.near(i, w.PodTerms[j:j+1])
		}
	}
}

// near compiles affinity to pods that every one of the terms selects.
func (c *compiler) near(i int, terms []model.PodTerm) {
	a := &affinity{terms: terms}
	var together []*selector
	name := "near"
	for j := range terms {
		together = append(together, c.selector(&terms[j].Select))
		name += " " + strconv.Quote(selectorText(&terms[j].Select))
	}
	for j := range terms {
		name := name + " " + terms[j].Key
		t, ok := c.shared[name]
		if !ok {
			t = &tally{key: c.key(terms[j].Key), settled: true, living: true}
			c.shared[name] = t
			c.counted = append(c.counted, counted{t, together})
		}
		a.tallies = append(a.tallies, t)
		c.kinds[i].pin(t.key)
	}
	a.self = c.all(together, c.pending[i])
	c.kinds[i].affinity = append(c.kinds[i].affinity, a)
}

// spread compiles a spread constraint that looks at the nodes in the view.
func (c *compiler) spread(i int, s *model.Spread, in *view) {
	k := &c.kinds[i]
	t := &tally{key: c.key(s.Key), living: true, filter: c.filter(in, s)}
	rule := spread{Spread: s, tally: t}
	if s.Select.Nothing || len(s.Select.Labels) > 0 { // the scheduler counts no pods for a selector that demands nothing
		sel := c.selector(&s.Select)
		c.counted = append(c.counted, counted{t, []*selector{sel}})
		if c.picks(sel, c.pending[i]) {
			rule.self = 1
		}
	}
	k.spreads = append(k.spreads, rule)
	k.pin(t.key)
	if t.key == Hostname {
		return
	}
	c.findDomains(t)
}

// filter returns the one for all constraints that look at the same sites.
func (c *compiler) filter(in *view, spread *model.Spread) *filter {
	if known := in.filters[rulesOf(spread)]; known != nil {
		return known
	}
	f := newFilter(in, spread)
	text := f.text()
	name := in.name + text
	if same, ok := c.looks[name]; ok {
		f = same
	} else {
		f.own, f.chosen = c.filtered(text), c.same(text, f.chosen)
		c.looks[name] = f
	}
	in.filters[rulesOf(spread)] = f
	return f
}

// apart compiles that the pods keep away from those a term of anti-affinity
// selects.
func (c *compiler) apart(i int, term *model.PodTerm) {
	selected := c.selectedBy(term)
	c.kinds[i].empties = append(c.kinds[i].empties, selected)
	c.kinds[i].pin(selected.key)
}

// selectedBy is the tally of the pods a term of anti-affinity selects.
func (c *compiler) selectedBy(term *model.PodTerm) *tally {
	name := "selected " + termText(term)
	t, ok := c.shared[name]
	if !ok {
		t = &tally{key: c.key(term.Key), term: term}
		c.shared[name] = t
		c.counted = append(c.counted, counted{t, []*selector{c.selector(&term.Select)}})
	}
	return t
}

// holders is the tally of the pods that have a term of anti-affinity, of that text.
// It is a rule for the kinds that the term selects.
func (c *compiler) holders(term *model.PodTerm, text string) *tally {
	name := "holders " + text
	t, ok := c.shared[name]
	if !ok {
		t = &tally{key: c.key(term.Key), term: term, holders: true}
		c.shared[name] = t
		sel := c.selector(&term.Select)
		for _, p := range c.picked(sel) {
			for _, j := range c.kindsOf[p] {
				c.kinds[j].empties = append(c.kinds[j].empties, t)
				c.kinds[j].pin(t.key)
				t.minded = true
			}
		}
	}
	return t
}

// link adds each kind to the tallies that select it. Where others spread over
// a key counting the kind, its nodes must be settled for it, too.
func (c *compiler) link() {
	counts := map[int][]int{} // by peer: index of the tallies that count it
	for _, g := range c.together() {
		for _, p := range c.picked(g.selectors[0]) {
			if len(c.kindsOf[p]) > 0 && c.all(g.selectors[1:], p) {
				counts[p] = append(counts[p], g.tallies...)
			}
		}
	}
	for p, some := range counts {
		slices.Sort(some)
		for _, j := range c.kindsOf[p] {
			k := &c.kinds[j]
			for _, i := range some {
				t := c.counted[i].tally
				k.adds = append(k.adds, t)
				if t.filter != nil {
					k.pin(t.key)
				}
			}
		}
	}
}

// alike is tallies that count the same pods, by their index.
type alike struct {
	selectors []*selector
	tallies   []int
}

// together returns the tallies, those with the same selector together.
func (c *compiler) together() []alike {
	var out []alike
	at := map[*selector]int{}
	for i, t := range c.counted {
		if len(t.selectors) == 1 {
			if known, ok := at[t.selectors[0]]; ok {
				out[known].tallies = append(out[known].tallies, i)
				continue
			}
			at[t.selectors[0]] = len(out)
		}
		out = append(out, alike{t.selectors, []int{i}})
	}
	return out
}

// order notes which pods are likely bound before others that have affinity to them:
// those that have none themselves. Pods that only follow each other begin with any.
func (c *compiler) order() {
	first := map[*tally][]int{} // kinds that have pods and no affinity, of tallies that affinity is about
	for i := range c.kinds {
		for _, a := range c.kinds[i].affinity {
			if a.self {
				first[a.tallies[0]] = nil
			}
		}
	}
	if len(first) == 0 {
		return
	}
	for j := range c.kinds {
		k := &c.kinds[j]
		if len(k.affinity) > 0 || len(c.snapshot.Pending[j].Pods) == 0 {
			continue
		}
		for _, t := range k.adds {
			if some, asked := first[t]; asked && (len(some) == 0 || some[len(some)-1] != j) {
				first[t] = append(some, j)
			}
		}
	}
	for i := range c.kinds {
		for _, a := range c.kinds[i].affinity {
			if a.self {
				a.before = slices.Clone(first[a.tallies[0]])
				a.waits = len(a.before) > 0
			}
		}
	}
}

// seed counts the pods that are on nodes.
func (c *compiler) seed() {
	at := c.State.sites
	for _, term := range c.minded() {
		t := c.holders(c.antis[term].PodTerm, c.antis[term].text)
		if !t.minded {
			continue
		}
		for _, h := range c.antisAt[term] {
			c.count(t, at[h.site], h.site, c.resident(h).Count)
		}
		c.Steps += stepsPerCount * len(c.antisAt[term])
	}
	for _, t := range c.counted {
		for _, p := range c.picked(t.selectors[0]) {
			some := value(c.peersAt, p)
			if len(some) == 0 || !c.all(t.selectors[1:], p) {
				continue
			}
			for _, h := range some {
				if r := c.resident(h); !r.Terminating || !t.living {
					c.count(t.tally, at[h.site], h.site, r.Count)
				}
			}
			c.Steps += stepsPerCount * len(some)
		}
	}
}

// minded returns the terms of anti-affinity of pods on nodes that select pods which are to
// be placed, those first that are on the first nodes: their numbers depend on what was seen
// before.
func (c *compiler) minded() []int {
	var out []int
	for _, p := range slices.Compact(slices.Sorted(slices.Values(c.pending))) {
		for _, term := range c.minding(p) {
			if len(value(c.antisAt, term)) > 0 { // others are remembered only
				c.Steps++
				out = append(out, term)
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	slices.SortFunc(out, func(a, b int) int {
		site, other := c.antisAt[a][0].site, c.antisAt[b][0].site
		if site != other {
			return cmp.Compare(site, other)
		}
		terms := c.Memory.sites[site].anti
		return cmp.Compare(slices.Index(terms, a), slices.Index(terms, b))
	})
	return out
}

func (c *compiler) all(selectors []*selector, peer int) bool {
	return !slices.ContainsFunc(selectors, func(s *selector) bool { return !c.picks(s, peer) })
}
