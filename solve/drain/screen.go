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

// estimates are what pods cost at least, by shape.
type estimates struct {
	*scene
	worth    map[*model.Shape]float64  // on a new node
	least    map[*model.Shape]float64  // the cheapest node that takes one
	launched map[*model.Shape]cheapest // the node that is launched for one without a place
	homes    map[*model.Shape][]string // up to two nodes that take one; those of an earlier state may be too many, never too few
	rows     []fit.NodeRow             // the nodes there were to take pods, at some time
}

// screen returns why the node cannot be replaced for at most most, as far as
// each of its pods by itself tells.
func (est *estimates) screen(o *offer, most model.Price) (model.Cause, string) {
	n := &est.s.Nodes[o.sites[0]]
	worth, least := 0.0, 0.0
	rows := est.rowsNow()
	for i := range n.Movable {
		shape := n.Movable[i].Shape
		if est.home(shape, n.Name, rows) {
			continue
		}
		alone := est.leastFor(&n.Movable[i])
		if math.IsInf(alone, 1) {
			return model.ByPlace, fmt.Sprintf("no other place is found for pod %s", n.Movable[i].Pods[0].Key())
		}
		worth, least = worth+est.worth[shape]*float64(len(n.Movable[i].Pods)), max(least, alone)
	}
	if bound := max(worth, least); bound > withRounding(most) {
		return model.ByPrice, o.tooDear(model.Price(bound))
	}
	return "", ""
}

// home reports whether some node but the one named has room for a pod of the
// shape, rules between pods not asked. What it says may be of an earlier state,
// when there was more room.
func (est *estimates) home(shape *model.Shape, but string, rows []fit.NodeRow) bool {
	homes, known := est.homes[shape]
	if !known {
		soft := pack.Soft(shape)
		for i := range rows {
			if pack.Takes(&rows[i], soft) {
				if homes = append(homes, rows[i].Name); len(homes) == 2 {
					break
				}
			}
		}
		est.homes[shape] = homes
	}
	return slices.ContainsFunc(homes, func(name string) bool { return name != but })
}

// rowsNow returns the nodes as they were when consolidation began, which had no
// less room than they have now.
func (est *estimates) rowsNow() []fit.NodeRow {
	if est.rows == nil {
		est.rows = est.memory.Nodes(&est.s)
	}
	return est.rows
}

// withRounding allows for rounding in sums of prices.
func withRounding(most model.Price) float64 { return max(float64(most), 0)*(1+1e-6) + 8 }

// leastFor returns the price of the cheapest node that takes a pod; infinite
// when there is none.
func (est *estimates) leastFor(p *model.Pending) float64 {
	least, known := est.least[p.Shape]
	if !known {
		least = math.Inf(1)
		catalogue := est.memory.Catalogue(&est.s)
		for o := range catalogue.NewDemand(model.Pending{Shape: pack.Soft(p.Shape)}).Offers.All() {
			offer := &catalogue.Offers[o]
			if p.Shape.Requests.Fits(catalogue.Types[offer.Type].Free) {
				least = min(least, float64(offer.Price))
			}
		}
		est.least[p.Shape] = least
	}
	return least
}

// bought is a node that is launched for pods.
type bought struct {
	offer int
	free  model.Resources
}

// cheapest is the node that is launched for a pod without a place.
type cheapest struct {
	bought
	demand *fit.Demand // of the pod
	price  float64     // infinite when there is none
}

// cheapestFor returns the cheapest node of the heaviest pools that take the pod.
func (est *estimates) cheapestFor(p *model.Pending) cheapest {
	if known, ok := est.launched[p.Shape]; ok {
		return known
	}
	catalogue := est.memory.Catalogue(&est.s)
	demand := catalogue.NewDemand(model.Pending{Shape: pack.Soft(p.Shape)})
	out := cheapest{demand: demand, price: math.Inf(1)}
	weight := int32(math.MinInt32)
	for o := range demand.Offers.All() { // heaviest pool first
		row := &catalogue.Types[catalogue.Offers[o].Type]
		own, price := catalogue.Pools[row.Pool].Weight, float64(catalogue.Offers[o].Price)
		if own < weight {
			break
		}
		if p.Shape.Requests.Fits(row.Free) {
			weight = own
			if price < out.price {
				out.price, out.bought = price, bought{o, row.Free}
			}
		}
	}
	est.launched[p.Shape] = out
	return out
}
