// SPDX-License-Identifier: Apache-2.0

package drain

import "karpenter/model"

// halted returns the pool that keeps the launches from replacing nodes, or "", and why: its instances
// do not become nodes, and this is not the one that is tried.
func (sc *scene) halted(launches []model.Launch) (name, why string) {
	for i := range launches {
		pool := &sc.s.Pools[sc.pools[launches[i].Pool]]
		d := &pool.Disruption
		if d.Halted == "" || d.Probing && len(launches) == 1 && !sc.coming(pool.Name) {
			continue
		}
		return pool.Name, d.Halted
	}
	return "", ""
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
