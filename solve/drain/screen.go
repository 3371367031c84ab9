// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/pack"
)

// price finds what the pods of the candidates cost on new nodes at least.
func (r *round) price(candidates []int) {
	nodes := make([]model.Node, 0, len(candidates))
	for _, i := range candidates {
		nodes = append(nodes, r.s.Nodes[i])
	}
	all := r.s
	all.Nodes, all.Pending = nil, movable(nodes)
	part := r.work.Part(1.0 / 8)
	worth := pack.Worth(&all, r.policy, r.memory, part)
	r.work.Return(part)
	for i := range all.Pending {
		shape := all.Pending[i].Shape
		if known, ok := r.worth[shape]; !ok || worth[i] < known {
			r.worth[shape] = worth[i]
		}
	}
}

// screen returns why the node cannot be replaced for at most most, as far as
// each of its pods by itself tells.
func (r *round) screen(o *offer, most model.Price) (model.Cause, string) {
	n := &r.s.Nodes[o.sites[0]]
	worth, least := 0.0, 0.0
	rows := r.rowsNow()
	for i := range n.Movable {
		shape := n.Movable[i].Shape
		if r.home(shape, n.Name, rows) {
			continue
		}
		alone := r.leastFor(&n.Movable[i])
		if math.IsInf(alone, 1) {
			return model.ByPlace, fmt.Sprintf("no other place is found for pod %s", n.Movable[i].Pods[0].Key())
		}
		worth, least = worth+r.worth[shape]*float64(len(n.Movable[i].Pods)), max(least, alone)
	}
	if bound := max(worth, least); bound > roughly(most) {
		return model.ByPrice, o.tooDear(model.Price(bound))
	}
	return "", ""
}

// home reports whether some node but the one named has room for a pod of the
// shape, rules between pods not asked. What it says may be of an earlier state,
// when there was more room.
func (r *round) home(shape *model.Shape, but string, rows []fit.NodeRow) bool {
	homes, known := r.homes[shape]
	if !known {
		for i := range rows {
			if pack.Takes(&rows[i], shape) {
				if homes = append(homes, rows[i].Name); len(homes) == 2 {
					break
				}
			}
		}
		r.homes[shape] = homes
	}
	return slices.ContainsFunc(homes, func(name string) bool { return name != but })
}

// rowsNow returns the nodes as they were when consolidation began, which had no
// less room than they have now.
func (r *round) rowsNow() []fit.NodeRow {
	if r.rows == nil {
		r.rows = r.memory.Nodes(&r.s)
	}
	return r.rows
}

// roughly allows for rounding in sums of prices.
func roughly(most model.Price) float64 { return max(float64(most), 0)*(1+1e-6) + 8 }

// leastFor returns the price of the cheapest node that takes a pod; infinite
// when there is none.
func (r *round) leastFor(p *model.Pending) float64 {
	least, known := r.least[p.Shape]
	if !known {
		least = math.Inf(1)
		catalogue := r.memory.Catalogue(&r.s)
		for o := range catalogue.NewDemand(model.Pending{Shape: pack.Soft(p.Shape)}).Offers.All() {
			offer := &catalogue.Offers[o]
			if p.Shape.Requests.Fits(catalogue.Types[offer.Type].Free) {
				least = min(least, float64(offer.Price))
			}
		}
		r.least[p.Shape] = least
	}
	return least
}
