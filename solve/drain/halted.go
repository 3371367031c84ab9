// SPDX-License-Identifier: Apache-2.0

package drain

import "karpenter/model"

// halted returns why the launches may not replace nodes: machines of one of their
// pools do not become nodes, and this is not the one that is tried.
func (r *round) halted(launches []model.Launch) string {
	for i := range launches {
		pool := &r.s.Pools[r.pools[launches[i].Pool]]
		d := &pool.Disruption
		if d.Halted == "" || d.Probing && len(launches) == 1 && !r.coming(pool.Name) {
			continue
		}
		return d.Halted
	}
	return ""
}

// coming reports whether a machine of the pool is to become a node, what this
// plan launches included.
func (r *round) coming(pool string) bool {
	for i := range r.s.Nodes {
		if n := &r.s.Nodes[i]; n.Pool == pool && !n.Registered && !n.Deleting {
			return true
		}
	}
	return false
}
