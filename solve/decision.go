// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"maps"
	"reflect"
	"slices"

	"karpenter/model"
	"karpenter/solve/drain"
	"karpenter/solve/fit"
)

// decision is a Plan, and what it was made of. The zero value is none.
type decision struct {
	snapshot model.Snapshot
	policy   model.Policy
	plan     *model.Plan
}

// holds reports whether the decision about the Snapshot is the same.
func (d *decision) holds(s *model.Snapshot, p model.Policy) bool {
	return d.plan != nil && d.policy == p && alike(&d.snapshot, s) && drain.SameTime(&d.snapshot, s)
}

// again returns the Plan, with lists of its own.
func (d *decision) again() *model.Plan {
	p := *d.plan
	p.Placements, p.Launches, p.Verdicts = slices.Clone(p.Placements), slices.Clone(p.Launches), slices.Clone(p.Verdicts)
	p.Commands, p.Stays = slices.Clone(p.Commands), slices.Clone(p.Stays)
	p.Crowds, p.Untried = slices.Clone(p.Crowds), slices.Clone(p.Untried)
	return &p
}

// alike reports whether the Snapshots differ in nothing but the time. Lists that are
// equal but not the same are taken to differ.
func alike(a, b *model.Snapshot) bool {
	return fit.Same(a.Nodes, b.Nodes) && fit.Same(a.Pending, b.Pending) && fit.Same(a.Daemons, b.Daemons) && fit.Same(a.Groups, b.Groups) &&
		fit.Same(a.Devices, b.Devices) && fit.Same(a.Selectors, b.Selectors) && slices.Equal(a.Resources, b.Resources) &&
		reflect.DeepEqual(a.Intents, b.Intents) && maps.Equal(a.WellKnown, b.WellKnown) &&
		slices.EqualFunc(a.Pools, b.Pools, func(a, b model.Pool) bool {
			types := fit.Same(a.Types, b.Types)
			a.Types, b.Types = nil, nil
			return types && reflect.DeepEqual(a, b)
		})
}
