// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"slices"

	"karpenter/model"
)

// vacated returns the Snapshot as it will be within moments, once the pods have
// gone that are ending: a pod that takes the place of one of them waits for less
// time than a new node takes to come. Pods that need not move are not moved to such
// room (package drain is given the Snapshot as it is).
func vacated(s *model.Snapshot) *model.Snapshot {
	leaving := func(n model.Node) bool { return !n.Leaving.IsZero() }
	if len(s.Pending) == 0 || !slices.ContainsFunc(s.Nodes, leaving) {
		return s
	}
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		if n := &out.Nodes[i]; leaving(*n) {
			n.Requested, n.Leaving = n.Requested.Minus(n.Leaving).Max(nil), nil
		}
	}
	return &out
}
