// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/devices"
)

// Memory keeps what was compiled of the last Snapshot. As long as pools, types
// and daemons stay the same, the catalogue is not compiled again, nor are nodes
// that stay the same. The zero value is empty.
type Memory struct {
	last *Catalogue

	rows    []NodeRow // of the last Snapshot, by name
	spare   []NodeRow // the array of the rows before those, to be used again
	daemons []model.Daemon
	taints  map[string]*taints // of rows, by what they are
	labels  *Labels

	book      *devices.Book
	selectors []model.DeviceSelector // that it is about
}

// mostAnswers is how many answers about requirements a catalogue keeps before
// it is compiled again, to be rid of those that no one asks for any more.
const mostAnswers = 20_000

// Catalogue returns the catalogue of s. It is good until the next call.
func (m *Memory) Catalogue(s *model.Snapshot) *Catalogue {
	if m.last == nil || !m.last.holds(s) || len(m.last.matches)+m.last.alternatives+len(m.last.alike)+len(m.last.spellings)+len(m.last.words) > mostAnswers {
		m.last = NewCatalogue(s)
	}
	for i, p := range launching(s) {
		m.last.Pools[i].Pool = p
	}
	return m.last
}

// holds reports whether s would be compiled to the same catalogue but for
// limits and what is used of them.
func (c *Catalogue) holds(s *model.Snapshot) bool {
	return slices.EqualFunc(c.Pools, launching(s), func(a Pool, b *model.Pool) bool {
		return a.Name == b.Name && a.Weight == b.Weight && Same(a.Pool.Requirements, b.Requirements) &&
			Same(a.Taints, b.Taints) && Same(a.Pool.Types, b.Types)
	}) && Same(c.daemons, s.Daemons) && maps.Equal(c.wellKnown, s.WellKnown)
}

// Same reports whether two slices are one. What a Snapshot refers to does not
// change, so they hold the same then.
func Same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// Book returns what finds devices for claims in s; nil if no pod of it needs any.
func (m *Memory) Book(s *model.Snapshot) *devices.Book {
	if s.Selectors == nil && !slices.ContainsFunc(s.Pending, func(p model.Pending) bool { return len(p.Shape.Claims) > 0 }) {
		return nil
	}
	if m.book == nil || !Same(m.selectors, s.Selectors) || m.book.Large() {
		m.book, m.selectors = devices.NewBook(s.Selectors), s.Selectors
	}
	return m.book
}

// Nodes returns the nodes of s that can take pods: initialized ones first,
// then by name.
func (m *Memory) Nodes(s *model.Snapshot) []NodeRow {
	old := m.rows
	if !Same(m.daemons, s.Daemons) {
		old = nil
	}
	book := m.Book(s)
	rows := slices.Grow(m.spare[:0], len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for len(old) > 0 && old[0].Name < n.Name {
			old = old[1:]
		}
		switch {
		case n.Deleting, n.Closed:
		case len(old) > 0 && unchanged(old[0].Node, n):
			row := old[0]
			if row.Node, row.Site = n, i; book != nil || row.Load() != nil {
				row.Hold(row.Ports(), book.Load(n.Devices))
			}
			rows = append(rows, row)
		default:
			row := NewNodeRow(n, i, s.Daemons, book)
			m.share(&row)
			rows = append(rows, row)
		}
	}
	m.rows, m.spare, m.daemons = rows, m.rows, s.Daemons
	out := make([]NodeRow, 0, len(rows))
	for _, first := range []bool{true, false} {
		for i := range rows {
			if rows[i].Initialized == first {
				out = append(out, rows[i])
			}
		}
	}
	return out
}

// Forget has the node of that name compiled again, as it has been changed in
// place.
func (m *Memory) Forget(name string) {
	i, ok := slices.BinarySearchFunc(m.rows, name, func(r NodeRow, name string) int { return cmp.Compare(r.Name, name) })
	if ok {
		m.rows = slices.Delete(m.rows, i, i+1)
	}
}

// unchanged reports whether a row made of a is good for b.
func unchanged(a, b *model.Node) bool {
	return a.Name == b.Name && a.Claim == b.Claim && Same(a.Labels, b.Labels) && Same(a.Taints, b.Taints) &&
		Same(a.Allocatable, b.Allocatable) && Same(a.Requested, b.Requested) &&
		Same(a.DaemonRequested, b.DaemonRequested) && Same(a.HostPorts, b.HostPorts)
}

// share has rows of nodes with equal taints know of each other.
func (m *Memory) share(n *NodeRow) {
	if len(n.Taints) <= fewTaints {
		return
	}
	var b strings.Builder
	for _, t := range n.Taints {
		fmt.Fprintf(&b, "%q %q %q;", t.Key, t.Value, t.Effect)
	}
	known := m.taints[b.String()]
	if known == nil {
		if m.taints == nil || len(m.taints) >= mostTaints {
			m.taints = map[string]*taints{}
		}
		known = newTaints(n.Taints)
		m.taints[b.String()] = known
	}
	n.taints = known
}

// Labels returns what tells the nodes of s apart by their labels. It is kept as long
// as the labels stay the same.
func (m *Memory) Labels(s *model.Snapshot) *Labels {
	if m.labels == nil || !m.labels.are(s.Nodes) {
		m.labels = newLabels(s.Nodes)
	}
	return m.labels
}

// are reports whether these are the labels of the nodes.
func (l *Labels) are(nodes []model.Node) bool {
	for i := range l.of {
		if i == len(nodes) || !Same(l.of[i], nodes[i].Labels) {
			return false
		}
	}
	return len(l.of) == len(nodes)
}
