// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/solve/topology"
)

// keepDomains has domains count whose only nodes are being deleted, if nodes can
// be launched there. The scheduler counts them as long as these nodes exist, which
// can be until the pods that it keeps from the other domains run.
func (x *draft) keepDomains(yes bool) {
	doomed := x.doomed()
	if len(doomed) == 0 {
		return
	}
	for _, d := range x.demands {
		keys := x.topology.Pinned(d.kind)
		if d.whole != nil || len(keys) == 0 || len(d.Shape.Spread) == 0 {
			continue
		}
		var kept []topology.Place
		if yes {
			kept = slices.DeleteFunc(x.atlas.nearby(d.kind, d.Shape), func(p topology.Place) bool {
				return !slices.ContainsFunc(doomed, func(q topology.Place) bool { return inside(q, p, keys) })
			})
		}
		x.topology.Buyable(d.kind, kept)
	}
}

// doomed returns the places of the nodes that are being deleted.
func (x *draft) doomed() []topology.Place {
	var out []topology.Place
	for site := range x.snapshot.Nodes {
		if x.snapshot.Nodes[site].Deleting {
			out = append(out, x.topology.At(site))
		}
	}
	return out
}
