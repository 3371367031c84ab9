// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"
	"strconv"

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
}

// view is the nodes that the spread constraints of a shape look at together.
type view struct {
	shape   *model.Shape
	keys    []int  // the node has a label for each, ascending
	name    string // of the keys
	named   bool   // the node has a hostname
	filters map[policies]*filter
}

// policies is what two spread constraints of a shape may differ in, as to which nodes they
// look at.
type policies struct{ anyNode, honorTaints bool }

func rulesOf(s *model.Spread) policies { return policies{s.AnyNode, s.HonorTaints} }

func newView(s *model.Shape, keys []int) view {
	v := view{shape: s, keys: slices.Compact(slices.Sorted(slices.Values(keys))), filters: map[policies]*filter{}}
	v.named = slices.ContainsFunc(s.Spread, func(other model.Spread) bool { return !other.Soft && other.Key == model.LabelHostname })
	name := make([]byte, 0, 4*len(v.keys))
	for _, k := range v.keys {
		name = append(strconv.AppendInt(name, int64(k), 10), ' ')
	}
	v.name = string(name)
	return v
}

func newFilter(in *view, spread *model.Spread) *filter {
	f := &filter{tolerations: in.shape.Tolerations, honorTaints: spread.HonorTaints, keys: in.keys, named: in.named}
	demandsNothing := func(alt model.Requirements) bool { return len(alt) == 0 }
	if alternatives := in.shape.Chosen(); !spread.AnyNode && !slices.ContainsFunc(alternatives, demandsNothing) {
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
	_, bad := model.Untolerated(model.Firm(n.Taints), f.tolerations)
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
