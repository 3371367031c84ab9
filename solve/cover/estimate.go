// SPDX-License-Identifier: Apache-2.0

package cover

import "karpenter/solve/work"

// Estimate returns about what one pod of each item costs if nodes are launched for all of
// them and filled in fractions: the values with which column generation begins.
func Estimate(p *Problem, budget *work.Budget) []float64 {
	pr := newItemPricer(p, budget)
	out := make([]float64, len(p.Items))
	for l, v := range pr.ascend().best {
		for _, i := range pr.lines[l].members {
			out[i] = v
		}
	}
	return out
}
