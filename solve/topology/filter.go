// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"

	"karpenter/model"
)

// filter says which sites a spread constraint looks at.
type filter struct {
	chosen      []model.Requirements // one of them must hold; nil = any node
	tolerations []model.Toleration
	honorTaints bool
	keys        []int  // the node has a label for each
	named       bool   // and a hostname
	own         []int8 // whether each of the Snapshot's sites counts
	more        []int8 // whether each of the others does
	bySite      string // what countsBySite returned
}

func newFilter(s *model.Shape, spread *model.Spread, keys []int) *filter {
	f := &filter{tolerations: s.Tolerations, honorTaints: spread.HonorTaints, keys: keys}
	f.named = slices.ContainsFunc(s.Spread, func(other model.Spread) bool { return !other.Soft && other.Key == model.LabelHostname })
	demandsNothing := func(alt model.Requirements) bool { return len(alt) == 0 }
	if alternatives := s.Chosen(); !spread.AnyNode && !slices.ContainsFunc(alternatives, demandsNothing) {
		f.chosen = alternatives
	}
	return f
}

// settled reports whether the place has one domain for every key the filter
// asks about.
func (f *filter) settled(p Place) bool {
	return !slices.ContainsFunc(f.keys, func(k int) bool { return len(p[k]) != 1 })
}

// labelled reports whether the place has some domain for every key the filter
// asks about.
func (f *filter) labelled(p Place) bool {
	return !slices.ContainsFunc(f.keys, func(k int) bool { return len(p[k]) == 0 })
}

// tolerates reports whether the taints of a node let it count.
func (f *filter) tolerates(n *model.Node) bool {
	if !f.honorTaints || len(n.Taints) == 0 {
		return true
	}
	_, bad := model.Untolerated(firm(n.Taints), f.tolerations)
	return !bad
}

// allows reports whether a node with these labels counts, whatever those turn
// out to be.
func (f *filter) allows(labels model.Requirements) bool {
	return f.chosen == nil || slices.ContainsFunc(f.chosen, func(alt model.Requirements) bool {
		_, ok := labels.Satisfies(alt)
		return ok
	})
}

// mayAllow reports whether labels that are not all settled may turn out such
// that the node counts.
func (f *filter) mayAllow(labels model.Requirements) bool {
	return f.chosen == nil || slices.ContainsFunc(f.chosen, func(alt model.Requirements) bool {
		_, ok := labels.Compatible(alt, nil)
		return ok
	})
}

// Whether a site counts for a filter.
const (
	unknown = iota
	never
	perhaps
	surely
)

// firm returns the taints that keep pods away for good.
func firm(taints []model.Taint) []model.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
}
