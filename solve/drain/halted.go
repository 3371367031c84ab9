// SPDX-License-Identifier: Apache-2.0

package drain

import "karpenter/model"

// halted returns why the launches may not replace nodes: instances of one of their
// pools do not become nodes, and this is not the one that is tried.
func (sc *scene) halted(launches []model.Launch) string {
	for i := range launches {
		pool := &sc.s.Pools[sc.pools[launches[i].Pool]]
		d := &pool.Disruption
		if d.Halted == "" || d.Probing && len(launches) == 1 && !sc.coming(pool.Name) {
			continue
		}
		return d.Halted
	}
	return ""
}

// coming reports whether an instance of the pool is to become a node, what this
// plan launches included.
func (sc *scene) coming(pool string) bool {
	for i := range sc.s.Nodes {
		if n := &sc.s.Nodes[i]; n.Pool == pool && !n.Registered && !n.Deleting {
			return true
		}
	}
	return false
}
