package fit

import (
	"maps"
	"slices"

	"karpenter/model"
)

// Memory keeps the catalogue of the last Snapshot. As long as pools, types and
// daemons stay the same, it is not compiled again. The zero value is empty.
type Memory struct{ last *Catalogue }

// mostAnswers is how many answers about requirements a catalogue keeps before
// it is compiled anew, to be rid of those that nobody asks for any more.
const mostAnswers = 20_000

// Catalogue returns the catalogue of s. It is good until the next call.
func (m *Memory) Catalogue(s *model.Snapshot) *Catalogue {
	if m.last == nil || !m.last.holds(s) || len(m.last.matches)+len(m.last.demands) > mostAnswers {
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
		return a.Name == b.Name && a.Weight == b.Weight && same(a.Pool.Requirements, b.Requirements) &&
			same(a.Taints, b.Taints) && same(a.Pool.Types, b.Types)
	}) && same(c.daemons, s.Daemons) && maps.Equal(c.wellKnown, s.WellKnown)
}

// same reports whether two slices are one. What a Snapshot refers to does not
// change, so they hold the same then.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
