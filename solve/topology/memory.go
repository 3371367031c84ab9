// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strconv"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
)

// Memory keeps what was compiled of the nodes of the last Snapshot, and of the pods
// on them. Of nodes that stay the same it is not compiled again. The zero value is
// empty. It is not safe for concurrent use.
type Memory struct {
	peers     map[string]int       // text → number
	terms     map[string]int       // of anti-affinity of pods on nodes: text → number
	selectors map[string]*selector // by text
	sites     []crowd
	index
	settings map[string]*setting // by topology keys
	filters  map[string][]int8   // by text: whether each site counts

	alternatives map[string][]model.Requirements // by text of a filter: what nodes are chosen by

	most    int  // size from which on it is emptied, to be rid of pods that are gone
	emptied bool // for the last Snapshot
}

// size is how many peers and terms are known.
func (m *Memory) size() int { return len(m.known) + len(m.antis) }

// keep makes room for twice what is known if it was emptied for the last Snapshot: all of it
// is there.
func (m *Memory) keep() {
	if m.emptied {
		m.most = max(fewKnown, 2*m.size())
	}
}

// crowd is what was compiled of a node of the Snapshot.
type crowd struct {
	labels     model.Requirements
	taints     []model.Taint
	residents  []model.Resident
	registered bool
	named      bool  // it has a hostname
	peers      []int // by resident
	anti       []int // numbers of terms, by resident and term
}

// setting is where the nodes are, as one list of topology keys tells it.
type setting struct {
	sites   []Place
	domains []domains
	alike   map[string]Place // by numbers of domains
}

// Bounds of what is kept.
const (
	fewKnown     = 20_000 // peers and terms that are kept in any case
	mostSettings = 16
	mostFilters  = 256
)

// see takes in the nodes of a Snapshot.
func (m *Memory) see(nodes []model.Node) {
	if m.emptied = m.peers == nil || m.size() > m.most; m.emptied {
		*m = Memory{peers: map[string]int{}, terms: map[string]int{}, selectors: map[string]*selector{}, settings: map[string]*setting{}, filters: map[string][]int8{}, alternatives: map[string][]model.Requirements{}, index: newIndex(), emptied: true}
		defer m.keep()
	}
	for i := range nodes {
		n := &nodes[i]
		if i == len(m.sites) {
			m.sites = append(m.sites, crowd{})
			m.label(i, n)
			m.populate(i, n)
			continue
		}
		c := &m.sites[i]
		if !fit.Same(c.labels, n.Labels) || !fit.Same(c.taints, n.Taints) || c.registered != n.Registered {
			m.forget(i)
			m.label(i, n)
		}
		if !fit.Same(c.residents, n.Residents) {
			m.populate(i, n)
		}
	}
	if len(nodes) < len(m.sites) {
		m.forget(len(nodes))
		for i := len(m.sites) - 1; i >= len(nodes); i-- {
			m.vacate(i)
		}
		m.sites = m.sites[:len(nodes)]
	}
}

// forget forgets where the nodes are from the site on. What was handed out stays
// as it is.
func (m *Memory) forget(site int) {
	for key, memo := range m.filters {
		m.filters[key] = memo[:min(len(memo), site):min(len(memo), site)]
	}
	clear(m.settings)
}

func (m *Memory) label(site int, n *model.Node) {
	c := &m.sites[site]
	c.labels, c.taints, c.registered = n.Labels, n.Taints, n.Registered
	_, c.named = n.Labels.Get(model.LabelHostname)
}

func (m *Memory) populate(site int, n *model.Node) {
	m.vacate(site)
	c := &m.sites[site]
	c.residents, c.peers, c.anti = n.Residents, make([]int, len(n.Residents)), nil
	for i := range n.Residents {
		c.peers[i] = m.peer(&n.Residents[i].Peer)
		m.peersAt.add(c.peers[i], home{site, i})
		for j := range n.Residents[i].Anti {
			term := m.term(&n.Residents[i].Anti[j])
			c.anti = append(c.anti, term)
			m.antisAt.add(term, home{site, i})
			m.antiKeys[m.antis[term].Key]++
		}
	}
}

// vacate forgets the pods on a site.
func (m *Memory) vacate(site int) {
	for _, p := range m.sites[site].peers {
		m.peersAt.remove(p, site)
	}
	for _, term := range m.sites[site].anti {
		m.antisAt.remove(term, site)
		m.antiKeys[m.antis[term].Key]--
	}
}

// resident returns the pods that are at home there.
func (m *Memory) resident(h home) *model.Resident { return &m.sites[h.site].residents[h.resident] }

// peer numbers a peer.
func (m *Memory) peer(p *model.Peer) int {
	text := peerText(p)
	i, ok := m.peers[text]
	if !ok {
		i = m.enter(p)
		m.peers[text] = i
	}
	return i
}

// term numbers a term of anti-affinity.
func (m *Memory) term(t *model.PodTerm) int {
	text := termText(t)
	i, ok := m.terms[text]
	if !ok {
		i = m.expect(anti{t, text})
		m.terms[text] = i
	}
	return i
}

// selector returns the one for equal selectors.
func (m *Memory) selector(s *model.PodSelector) *selector {
	text := selectorText(s)
	sel, ok := m.selectors[text]
	if !ok {
		sel = &selector{PodSelector: s}
		m.selectors[text] = sel
	}
	return sel
}

// setting returns where the nodes are by the keys. It must not be changed.
func (m *Memory) setting(keys []string) *setting {
	name := strings.Join(keys, "\x00")
	s, ok := m.settings[name]
	if !ok {
		if len(m.settings) == mostSettings {
			clear(m.settings)
		}
		s = &setting{domains: make([]domains, len(keys)), alike: map[string]Place{}}
		m.settings[name] = s
	}
	for site := len(s.sites); site < len(m.sites); site++ {
		s.sites = append(s.sites, s.place(keys, m.sites[site].labels))
	}
	return s
}

// place returns the place of a node with these labels.
func (s *setting) place(keys []string, labels model.Requirements) Place {
	var p Place
	var name []byte
	for k, key := range keys {
		r, ok := labels.Get(key)
		name = append(name, '/')
		if !ok || r.Complement {
			continue
		}
		for _, v := range r.Values {
			if p == nil {
				p = make(Place, len(keys))
			}
			d := s.domains[k].number(v)
			p[k] = append(p[k], d)
			name = append(strconv.AppendInt(name, int64(d), 10), ',')
		}
	}
	if p == nil {
		p = make(Place, len(keys))
	}
	if known, ok := s.alike[string(name)]; ok {
		return known
	}
	s.alike[string(name)] = p
	return p
}

// filtered returns which sites count for a filter, as far as it is known. What is
// found out is entered there.
func (m *Memory) filtered(text string) []int8 {
	memo, ok := m.filters[text]
	if !ok && len(m.filters) == mostFilters {
		clear(m.filters)
	}
	for len(memo) < len(m.sites) {
		memo = append(memo, unknown)
	}
	m.filters[text] = memo
	return memo
}

// same returns the alternatives of the first filter of that text, so that they can be
// told by their address.
func (m *Memory) same(text string, alternatives []model.Requirements) []model.Requirements {
	if known, ok := m.alternatives[text]; ok {
		return known
	}
	if len(m.alternatives) == mostFilters {
		clear(m.alternatives)
	}
	m.alternatives[text] = alternatives
	return alternatives
}
