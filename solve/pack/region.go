// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// region is an area however domains are numbered.
type region struct {
	names   []string // by key: the value of the label; "" where it is not settled
	settled []bool   // by key
	open    []bool   // by key: nodes have some value that is not settled
	pins    model.Requirements
	offers  []int
	rank    int // by the values
}

// id is equal for equal regions of the same keys.
func (r *region) id() string {
	var b []byte
	for i, name := range r.names {
		b = strconv.AppendBool(strconv.AppendBool(strconv.AppendQuote(b, name), r.settled[i]), r.open[i])
	}
	return string(b)
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
