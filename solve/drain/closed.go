// SPDX-License-Identifier: Apache-2.0

package drain

import "karpenter/model"

// open closes the nodes that may not take pods of nodes that are taken away for
// the reason, and opens the others.
func (r *round) open(reason model.Reason) {
	r.close(func(n *model.Node) bool {
		switch {
		case uninitialized(n), r.intended[n.Claim]:
			return true
		case !n.Disruption.Drifted.IsZero() && (reason == model.Drifted || r.soonGone(n)):
			return true // the pods would have to move again
		}
		return reason == model.Underutilized && n.Disruption.Settling
	})
}

// soonGone reports whether drift will take the drifted node: nothing but its
// turn is known to stand in the way.
func (r *round) soonGone(n *model.Node) bool {
	stay := r.refused[n.Name]
	if stay.Reason == model.Drifted && stay.Cause != model.ByBudget {
		return false
	}
	i, ok := r.pools[n.Pool]
	if !ok {
		return false
	}
	d := &r.given.Pools[i].Disruption
	return d.Halted == "" && d.Allowed[model.Drifted] > 0
}

func uninitialized(n *model.Node) bool {
	return n.Claim != "" && !n.Initialized || n.Claim == "" && n.Pool != ""
}

func (r *round) close(which func(*model.Node) bool) {
	for i := range r.s.Nodes {
		n := &r.s.Nodes[i]
		n.Closed = which(n)
	}
}
