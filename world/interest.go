// SPDX-License-Identifier: Apache-2.0

package world

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// interest is what the selectors of all known pods ask about other pods. With
// no selectors it is empty, and nothing is kept about any pod.
type interest struct {
	selectors map[string]*selector // by text
	named     map[string]*mentions // by namespaces that selectors list
	every     mentions             // of selectors that go by labels of namespaces
	ofSpaces  map[string]int       // labels of namespaces that are asked for
	nodeNames int                  // shapes that ask for nodes by name
}

func newInterest() interest {
	return interest{
		selectors: map[string]*selector{}, named: map[string]*mentions{}, every: newMentions(), ofSpaces: map[string]int{},
	}
}

// selector is a model.PodSelector that shapes have.
type selector struct {
	*model.PodSelector
	text  string // equal for those that select the same
	users int    // shapes
}

// mentions is what the selectors that may select pods of a namespace ask.
type mentions struct {
	selectors int
	asking    map[model.Label]map[*selector]bool // by their Label; the zero Label = they have none
	keys      map[string]int                     // of labels; by how many selectors
}

func newMentions() mentions {
	return mentions{asking: map[model.Label]map[*selector]bool{}, keys: map[string]int{}}
}

// selecting counts the selectors that select p.
func (m *mentions) selecting(p *model.Peer) int {
	n := 0
	count := func(l model.Label) {
		for s := range m.asking[l] {
			if s.Selects(p) {
				n++
			}
		}
	}
	count(model.Label{})
	for _, l := range p.Labels {
		count(l)
	}
	return n
}

// peers are those of a namespace.
type peers struct {
	byText map[string]*peer
	having map[model.Label]map[*peer]bool
}

func newPeers() peers {
	return peers{byText: map[string]*peer{}, having: map[model.Label]map[*peer]bool{}}
}

func (all *peers) add(p *peer) {
	all.byText[p.text] = p
	for _, l := range p.Labels {
		if all.having[l] == nil {
			all.having[l] = map[*peer]bool{}
		}
		all.having[l][p] = true
	}
}

func (all *peers) remove(p *peer) {
	delete(all.byText, p.text)
	for _, l := range p.Labels {
		if delete(all.having[l], p); len(all.having[l]) == 0 {
			delete(all.having, l)
		}
	}
}

// selected returns the peers that the selector selects.
func (all *peers) selected(s *selector) iter.Seq[*peer] {
	some := maps.Values(all.byText)
	if l, ok := s.Label(); ok {
		some = maps.Keys(all.having[l])
	}
	return func(yield func(*peer) bool) {
		for p := range some {
			if s.Selects(&p.Peer) && !yield(p) {
				return
			}
		}
	}
}

// peer is pods as selectors see them. The pods of a namespace that no selector
// tells apart have the same.
type peer struct {
	model.Peer
	text     string // unique in its namespace
	groups   int    // that have it
	selected int    // selectors that select it
	flipped  bool   // selected became zero, or ceased to be, since pods were last settled
}

func (p *peer) asked() bool { return p != nil && p.selected > 0 }

// enter has the selectors of a shape count.
func (w *World) enter(s *shape) {
	add := func(sel *model.PodSelector) {
		if !sel.Nothing {
			s.selectors = append(s.selectors, w.enterSelector(sel))
		}
	}
	for i := range s.Spread {
		add(&s.Spread[i].Select)
	}
	for i := range s.PodTerms {
		add(&s.PodTerms[i].Select)
	}
	if s.byName {
		w.countNodeNames(1)
	}
}

// leave undoes enter.
func (w *World) leave(s *shape) {
	for _, sel := range s.selectors {
		if sel.users--; sel.users == 0 {
			delete(w.interest.selectors, sel.text)
			w.register(sel, -1)
		}
	}
	s.selectors = nil
	if s.byName {
		w.countNodeNames(-1)
	}
}

// countNodeNames has Nodes known by name as long as anyone asks for one.
func (w *World) countNodeNames(n int) {
	was := w.interest.nodeNames
	if w.interest.nodeNames += n; was > 0 && w.interest.nodeNames > 0 {
		return
	}
	for _, m := range w.machines {
		w.touch(m)
	}
}

func (w *World) enterSelector(sel *model.PodSelector) *selector {
	text := selectorText(sel)
	s := w.interest.selectors[text]
	if s == nil {
		s = &selector{PodSelector: sel, text: text}
		w.interest.selectors[text] = s
		w.register(s, 1)
	}
	s.users++
	return s
}

// register enters a selector (by is 1) wherever it may select pods, or takes it
// out (by is -1).
func (w *World) register(s *selector, by int) {
	in := &w.interest
	if s.ByNamespace {
		fresh := count(in.ofSpaces, s.NamespaceLabels, by)
		if in.every.register(s, by) || fresh {
			for name := range w.spaces {
				w.remeet(name)
			}
		}
		for name := range w.spaces {
			w.weigh(s, name, by)
		}
		return
	}
	for _, name := range s.Namespaces {
		m := in.named[name]
		if m == nil {
			made := newMentions()
			m = &made
			in.named[name] = m
		}
		if m.register(s, by) {
			w.remeet(name)
		}
		if m.selectors == 0 {
			delete(in.named, name)
		}
		w.weigh(s, name, by)
	}
}

// register reports whether pods have to be looked at again: other labels count
// now, or the first or last selector has come or gone.
func (m *mentions) register(s *selector, by int) bool {
	l, _ := s.Label()
	if m.selectors += by; by > 0 {
		if m.asking[l] == nil {
			m.asking[l] = map[*selector]bool{}
		}
		m.asking[l][s] = true
	} else if delete(m.asking[l], s); len(m.asking[l]) == 0 {
		delete(m.asking, l)
	}
	return count(m.keys, s.Labels, by) || m.selectors == 0 || by > 0 && m.selectors == 1
}

// count counts the keys of demands and reports whether one is new or gone.
func count(keys map[string]int, demands model.Requirements, by int) bool {
	changed := false
	for _, r := range demands {
		changed = changed || keys[r.Key] == 0 || keys[r.Key]+by == 0
		if keys[r.Key] += by; keys[r.Key] == 0 {
			delete(keys, r.Key)
		}
	}
	return changed
}

// weigh tells the peers of a namespace that a selector has come or gone.
func (w *World) weigh(s *selector, namespace string, by int) {
	home := w.spaces[namespace]
	if home == nil {
		return
	}
	for p := range home.peers.selected(s) {
		was := p.asked()
		if p.selected += by; p.asked() != was {
			p.flipped = true
			w.unsettle(namespace)
		}
	}
}

// meet returns the peer of pods with the labels, nil when no selector is about
// pods of their namespace.
func (w *World) meet(namespace string, labels map[string]string) *peer {
	in := &w.interest
	named := in.named[namespace]
	if named == nil && in.every.selectors == 0 {
		return nil
	}
	now := model.Peer{Namespace: namespace, NamespaceLabels: asked(w.namespaces[namespace], in.ofSpaces)}
	if now.Labels = asked(labels, in.every.keys); named != nil {
		now.Labels = asked(labels, in.every.keys, named.keys)
	}
	text := peerText(&now)
	home := w.space(namespace)
	p := home.peers.byText[text]
	if p == nil {
		p = &peer{Peer: now, text: text, selected: in.every.selecting(&now)}
		if named != nil {
			p.selected += named.selecting(&now)
		}
		home.peers.add(p)
	}
	return p
}

// asked returns the labels whose keys are among those asked for, sorted.
func asked(labels map[string]string, keys ...map[string]int) []model.Label {
	var out []model.Label
	for key, value := range labels {
		if slices.ContainsFunc(keys, func(k map[string]int) bool { return k[key] > 0 }) {
			out = append(out, model.Label{Key: key, Value: value})
		}
	}
	slices.SortFunc(out, func(a, b model.Label) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// peerText tells peers of a namespace apart.
func peerText(p *model.Peer) string {
	var b strings.Builder
	for _, labels := range [][]model.Label{p.Labels, p.NamespaceLabels} {
		for _, l := range labels {
			b.WriteString(l.Key + "=" + l.Value + "\x00")
		}
		b.WriteByte('\x01')
	}
	return b.String()
}

// selectorText is equal for selectors that select the same for the same
// reasons.
func selectorText(s *model.PodSelector) string {
	var b strings.Builder
	b.WriteString(strings.Join(s.Namespaces, "\x00") + "\x01" + strconv.FormatBool(s.ByNamespace))
	for _, demands := range []model.Requirements{s.NamespaceLabels, s.Labels} {
		b.WriteByte('\x01')
		for _, r := range demands {
			b.WriteString(r.Key + "\x00" + strconv.FormatBool(r.Complement) + strconv.FormatBool(r.Present) + "\x00")
			b.WriteString(strings.Join(r.Values, "\x00") + "\x02")
		}
	}
	return b.String()
}

// SetNamespace takes in the labels of a namespace that is new or changed.
func (w *World) SetNamespace(name string, labels map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old, known := w.namespaces[name]; !known || !maps.Equal(old, labels) {
		w.namespaces[name] = labels
		w.unsettleLabels(name)
	}
}

// DeleteNamespace takes in that the namespace is gone.
func (w *World) DeleteNamespace(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.namespaces, name)
	w.unsettleLabels(name)
}

func (w *World) unsettleLabels(namespace string) {
	if len(w.interest.ofSpaces) > 0 {
		w.remeet(namespace)
	}
}

// remeet has other labels of the pods of a namespace count from now on.
func (w *World) remeet(namespace string) {
	if home := w.spaces[namespace]; home != nil {
		home.asked++
		w.unsettle(namespace)
	}
}

func (w *World) unsettle(namespace string) { w.unsettled[namespace] = true }

// settle has the pods of namespaces in which other things count now seen as
// selectors see them.
func (w *World) settle() {
	for name := range w.unsettled {
		home := w.spaces[name]
		if home == nil {
			continue
		}
		for _, p := range home.pods {
			if p.group != nil && (p.asked != home.asked || p.group.peer != nil && p.group.peer.flipped) {
				w.resettle(p)
			}
		}
		for _, p := range home.peers.byText {
			p.flipped = false
		}
	}
	clear(w.unsettled)
}

func (w *World) resettle(p *pod) {
	was, now := p.group.peer, p.group.peer
	if home := w.spaces[p.Namespace]; p.asked != home.asked {
		now, p.asked = w.meet(p.Namespace, p.Labels), home.asked
	}
	if was != now {
		w.part(p)
		w.join(p, now)
	} else if was == nil || !was.flipped {
		return
	}
	w.touchHost(p.Node)
}
