// SPDX-License-Identifier: Apache-2.0

package drain

import "karpenter/model"

// empty removes the nodes that no pod needs.
func (r *round) empty() {
	for _, i := range r.candidates(model.Empty) {
		if !r.allowed(model.Empty, i) && !givenBack(&r.s.Nodes[i], model.Empty) {
			r.overBudget(&r.s.Nodes[i], model.Empty)
			continue
		}
		r.remove(i)
	}
}

// remove takes an empty node away.
func (r *round) remove(site int) {
	n := &r.s.Nodes[site]
	r.accept(model.Command{Reason: model.Empty, Nodes: []model.Target{{Node: n.Name, Claim: n.Claim}}, Cost: n.Price, Savings: n.Price}, []int{site}, nil)
}
