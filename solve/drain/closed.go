// SPDX-License-Identifier: Apache-2.0

package drain

import "karpenter/model"

// open closes the nodes that may not take pods of nodes that are removed for
// the reason, and opens the others.
func (may *permits) open(reason model.Reason) {
	may.close(func(n *model.Node) bool {
		switch {
		case may.leaves(n):
			return true
		case !n.Disruption.Drifted.IsZero() && (reason == model.Drifted || may.soonGone(n)):
			return true // the pods would have to move again
		}
		return reason == model.Underutilized && n.Disruption.Settling
	})
}

// soonGone reports whether drift will take the drifted node: nothing but its
// turn is known to stand in the way.
func (may *permits) soonGone(n *model.Node) bool {
	i, ok := may.pools[n.Pool]
	if !ok {
		return false
	}
	stay, asked := may.refused[n.Name]
	switch {
	case asked && stay.Reason == model.Drifted && stay.Cause != model.ByBudget:
		return false
	case !asked && may.keptFromDrift(n): // commands are confirmed before drift is looked at
		return false
	}
	d := &may.given.Pools[i].Disruption
	return d.Halted == "" && d.Allowed[model.Drifted] > 0
}

// keptFromDrift reports whether the drifted node, its pool, or what is planned on it keeps it
// from being replaced.
func (may *permits) keptFromDrift(n *model.Node) bool {
	p := &may.given.Pools[may.pools[n.Pool]]
	if p.Static == nil {
		_, why, _ := may.objection(n, model.Drifted)
		return why != ""
	}
	got, receives := may.receiving[n.Name]
	d := &n.Disruption
	return d.Blocked != "" || d.Held != "" && !d.Deadline || receives && got.buffer == "" || turnovers(p).why != ""
}

// leaves reports whether pods that are placed on the node would have to move again in any
// case: it may not stay, or a command that is being confirmed removes it.
func (may *permits) leaves(n *model.Node) bool { return infirm(n) || may.intended[n.Claim] }

// infirm reports whether the node may not stay: it is not initialized, or to be repaired.
func infirm(n *model.Node) bool { return uninitialized(n) || n.Disruption.Unhealthy != "" }

func uninitialized(n *model.Node) bool {
	return n.Claim != "" && !n.Initialized || n.Claim == "" && n.Pool != ""
}

// close closes the nodes that are given as closed, and those besides.
func (sc *scene) close(besides func(*model.Node) bool) {
	for i := range sc.s.Nodes {
		n := &sc.s.Nodes[i]
		n.Closed = i < len(sc.given.Nodes) && sc.given.Nodes[i].Closed || besides(n)
	}
}
