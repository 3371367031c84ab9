// SPDX-License-Identifier: Apache-2.0

package pack

import "karpenter/model"

// region is an area however domains are numbered.
type region struct {
	names   []string // by key: the value of the label; "" where it is not settled
	settled []bool   // by key
	open    []bool   // by key: nodes have some value that is not settled
	pins    model.Requirements
	offers  []int
	rank    int // by the values
}

// pinned returns what settles a node for the region. Its nodes have no label for
// keys that are not settled, but for those that are open.
func (r *region) pinned(labels []string) model.Requirements {
	var out model.Requirements
	for i, name := range labels {
		switch {
		case r.settled[i]:
			out = out.And(model.NewRequirement(name, model.In, r.names[i]))
		case !r.open[i]:
			out = out.And(model.NewRequirement(name, model.DoesNotExist))
		}
	}
	return out
}
