// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"slices"

	"karpenter/model"
)

// condemned returns the Snapshot with those nodes closed to pending pods that are
// repaired whatever is planned on them: nodes that are not initialized. Package drain
// is given the Snapshot as it is.
func condemned(s *model.Snapshot) *model.Snapshot {
	if len(s.Pending) == 0 || !slices.ContainsFunc(s.Nodes, goes) {
		return s
	}
	out := *s
	out.Nodes = slices.Clone(s.Nodes)
	for i := range out.Nodes {
		out.Nodes[i].Closed = out.Nodes[i].Closed || goes(out.Nodes[i])
	}
	return &out
}

// goes reports whether the node is to be replaced as unhealthy and no pod planned on it
// keeps it.
func goes(n model.Node) bool {
	return n.Disruption.Unhealthy != "" && !n.Disruption.Reboot && n.Registered && !n.Initialized
}
