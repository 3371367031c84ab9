// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
)

// region is an area however domains are numbered.
type region struct {
	names   []string // by key: the value of the label; "" where it is not settled
	settled []bool   // by key
	open    []bool   // by key: nodes have some value that is not settled
	pins    model.Requirements
	offers  fit.OfferSet
	rank    int // by the values
}

// id is equal for equal regions of the same keys.
func (r *region) id() string {
	b := make([]byte, 0, 32*len(r.names))
	for i, name := range r.names {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
		b = append(b, flag(r.settled[i])|flag(r.open[i])<<1)
	}
	return string(b)
}

func flag(yes bool) byte {
	if yes {
		return 1
	}
	return 0
}

// pinned returns what settles a node for the region. Its nodes have no label for
// keys that are not settled, but for those that are open.
func (r *region) pinned(labels []string) model.Requirements {
	out := make(model.Requirements, 0, len(labels))
	for i, name := range labels {
		switch {
		case r.settled[i]:
			out = append(out, model.Requirement{Key: name, Values: r.names[i : i+1 : i+1]})
		case !r.open[i]:
			out = append(out, model.NewRequirement(name, model.DoesNotExist))
		}
	}
	slices.SortFunc(out, func(a, b model.Requirement) int { return strings.Compare(a.Key, b.Key) })
	return out
}
