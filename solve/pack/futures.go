// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// futures is what was worked out of new nodes of any draft of a problem: pods are
// counted again and again with nearly the same nodes.
type futures struct {
	byNode  map[string]*future
	equal   map[string]*future
	ways    int // offers that all of them list
	matches map[*model.Requirements]*matching
	lists   map[string][]string // of values, by themselves
	values  []string            // memory to list values in
}

// Bounds of what is kept.
const (
	mostFutures = 2048
	mostWays    = 1 << 23 // offers that all of them list
)

func newFutures() *futures {
	return &futures{byNode: map[string]*future{}, equal: map[string]*future{}, matches: map[*model.Requirements]*matching{}, lists: map[string][]string{}}
}

// list returns the values, sorted, which may be in memory that is used again. Equal lists are one.
func (f *futures) list(values []string) []string {
	slices.Sort(values)
	values = slices.Compact(values)
	var name []byte
	for _, v := range values {
		name = append(binary.AppendUvarint(name, uint64(len(v))), v...)
	}
	known, ok := f.lists[string(name)]
	if !ok {
		known = slices.Clone(values)
		f.lists[string(name)] = known
	}
	return known
}

// matching is the offers that could meet the requirements of an alternative.
type matching struct {
	each []fit.Bits // by requirement
	all  fit.Bits
}

// future is what may become of the nodes of some bins.
type future struct {
	pool    int
	demands model.Requirements
	ways    fit.OfferSet
	labels  map[string][]model.Requirement // by key
	values  map[question][]string
	meets   map[*model.Requirements][2]bool
}

// question is one to a future: the values of a label under alternatives, told
// by their address.
type question struct {
	alternatives *model.Requirements
	key          string
}
