// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"

	"karpenter/model"
)

// New compiles the rules between the pending pods of s and those on its nodes,
// with wishes by kind.
func New(s *model.Snapshot, wishes map[int]Wishes) *State { return NewWith(s, wishes, nil, nil) }

// Wishes are preferences of a kind that are to be rules.
type Wishes struct {
	Spread   []model.Spread
	PodTerms []model.PodTerm
}

// NewWith is as New, with more nodes. They are the sites from len(s.Nodes) on;
// the outlook knows their labels.
func NewWith(s *model.Snapshot, wishes map[int]Wishes, more []model.Node, outlook Outlook) *State {
	c := &compiler{
		wishes: wishes,
		State: &State{
			nodes: append(s.Nodes[:len(s.Nodes):len(s.Nodes)], more...), own: len(s.Nodes), outlook: outlook,
			kinds: make([]rules, len(s.Pending)),
		},
		snapshot: s, peers: map[string]int{}, selectors: map[string]*selector{}, shared: map[string]*tally{},
	}
	for i := range s.Pending {
		c.pending = append(c.pending, c.peer(&s.Pending[i].Peer))
	}
	c.namedKeys()
	c.sites = make([]Place, 0, len(c.nodes))
	for i := range c.nodes {
		c.sites = append(c.sites, c.placeOf(i))
	}
	for i := range s.Pending {
		c.compile(i)
	}
	c.seed()
	c.link()
	return c.State
}

type compiler struct {
	*State
	snapshot  *model.Snapshot
	peers     map[string]int       // text → number
	known     []*model.Peer        // by number
	pending   []int                // numbers of the peers of the pending pods
	selectors map[string]*selector // by text
	shared    map[string]*tally    // anti-affinity, by what it counts
	counted   []counted
	wishes    map[int]Wishes
}

// counted is a tally with what picks the pods in it: every one of selectors.
type counted struct {
	*tally
	selectors []*selector
}

// selector is a PodSelector with what it said of each peer.
type selector struct {
	*model.PodSelector
	picks []int8 // by number of the peer: 0 unknown, 1 no, 2 yes
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
	for i := range c.snapshot.Nodes {
		for j := range c.snapshot.Nodes[i].Residents {
			terms(c.snapshot.Nodes[i].Residents[j].Anti)
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
		if k := c.key(shape.Spread[j].Key); k != Hostname && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	for j := range shape.Spread {
		if !shape.Spread[j].Soft {
			c.spread(i, &shape.Spread[j], keys)
		}
	}
	var near []model.PodTerm
	for j := range shape.PodTerms {
		switch term := &shape.PodTerms[j]; {
		case term.Weight > 0:
		case term.Anti:
			c.apart(i, term)
			c.kinds[i].adds = append(c.kinds[i].adds, c.holders(term))
		default:
			near = append(near, *term)
		}
	}
	if len(near) > 0 {
		c.near(i, near)
	}
	c.wish(i, keys)
}

// wish compiles what a kind wishes. Of pods that do not share the wish nothing
// is demanded for it.
func (c *compiler) wish(i int, keys []int) {
	w := c.wishes[i]
	for j := range w.Spread {
		more := slices.Clone(keys)
		if k := c.key(w.Spread[j].Key); k != Hostname && !slices.Contains(more, k) {
			more = append(more, k)
		}
		c.spread(i, &w.Spread[j], more)
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
	for j := range terms {
		together = append(together, c.selector(&terms[j].Select))
	}
	for j := range terms {
		t := &tally{key: c.key(terms[j].Key), settled: true, living: true}
		a.tallies = append(a.tallies, t)
		c.counted = append(c.counted, counted{t, together})
		c.kinds[i].pin(t.key)
	}
	a.self = c.all(together, c.pending[i])
	c.kinds[i].affinity = append(c.kinds[i].affinity, a)
}

// spread compiles a spread constraint that looks at nodes with a label for each
// of keys.
func (c *compiler) spread(i int, s *model.Spread, keys []int) {
	k := &c.kinds[i]
	t := &tally{key: c.key(s.Key), living: true, filter: newFilter(c.snapshot.Pending[i].Shape, s, keys)}
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
	c.findDomains(t)
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

// holders is the tally of the pods that have a term of anti-affinity. It is a
// rule for the kinds that the term selects.
func (c *compiler) holders(term *model.PodTerm) *tally {
	name := "holders " + termText(term)
	t, ok := c.shared[name]
	if !ok {
		t = &tally{key: c.key(term.Key), term: term, holders: true}
		c.shared[name] = t
		sel := c.selector(&term.Select)
		for j, p := range c.pending {
			if len(c.snapshot.Pending[j].Shape.Refused) == 0 && c.picks(sel, p) {
				c.kinds[j].empties = append(c.kinds[j].empties, t)
				c.kinds[j].pin(t.key)
			}
		}
	}
	return t
}

// link adds each kind to the tallies that select it. Where others spread over
// a key counting the kind, its nodes must be settled for it, too.
func (c *compiler) link() {
	for _, t := range c.counted {
		for j, p := range c.pending {
			if len(c.snapshot.Pending[j].Shape.Refused) == 0 && c.all(t.selectors, p) {
				c.kinds[j].adds = append(c.kinds[j].adds, t.tally)
				if t.filter != nil {
					c.kinds[j].pin(t.key)
				}
			}
		}
	}
}

// seed counts the pods that are on nodes.
func (c *compiler) seed() {
	for site := range c.nodes {
		residents := c.nodes[site].Residents
		for i := range residents {
			for j := range residents[i].Anti {
				t := c.holders(&residents[i].Anti[j])
				c.count(t, c.sites[site], site, residents[i].Count)
			}
		}
	}
	adds := map[int][]*tally{}
	for site := range c.nodes {
		residents := c.nodes[site].Residents
		for i := range residents {
			p := c.peer(&residents[i].Peer)
			into, ok := adds[p]
			if !ok {
				for _, t := range c.counted {
					if c.all(t.selectors, p) {
						into = append(into, t.tally)
					}
				}
				adds[p] = into
			}
			for _, t := range into {
				if !residents[i].Terminating || !t.living {
					c.count(t, c.sites[site], site, residents[i].Count)
				}
			}
		}
	}
}

// peer numbers a peer.
func (c *compiler) peer(p *model.Peer) int {
	text := peerText(p)
	i, ok := c.peers[text]
	if !ok {
		i = len(c.known)
		c.peers[text], c.known = i, append(c.known, p)
	}
	return i
}

// selector returns the one for equal selectors.
func (c *compiler) selector(s *model.PodSelector) *selector {
	text := selectorText(s)
	sel, ok := c.selectors[text]
	if !ok {
		sel = &selector{PodSelector: s}
		c.selectors[text] = sel
	}
	return sel
}

// picks reports whether the selector picks a peer.
func (c *compiler) picks(s *selector, peer int) bool {
	for len(s.picks) <= peer {
		s.picks = append(s.picks, 0)
	}
	if s.picks[peer] == 0 {
		s.picks[peer] = 1
		if s.Selects(c.known[peer]) {
			s.picks[peer] = 2
		}
	}
	return s.picks[peer] == 2
}

func (c *compiler) all(selectors []*selector, peer int) bool {
	return !slices.ContainsFunc(selectors, func(s *selector) bool { return !c.picks(s, peer) })
}
