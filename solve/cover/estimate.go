// SPDX-License-Identifier: Apache-2.0

package cover

import "karpenter/solve/work"

// Estimate returns about what one pod of each item costs if nodes are launched for all of
// them and filled in fractions: the values with which column generation begins.
func Estimate(p *Problem, budget *work.Budget) []float64 {
	s := newSolver(p, budget)
	all := make([]int, len(p.Items))
	for i := range all {
		all[i] = i
	}
	var lines []line
	for _, set := range s.equal(all) {
		lines = append(lines, s.row(set))
	}
	pr := newPricer(s, lines)
	for l := range lines {
		for _, i := range lines[l].members {
			pr.count[l] += p.Items[i].Count
		}
	}
	out := make([]float64, len(p.Items))
	for l, v := range pr.ascend(pr.count) {
		for _, i := range lines[l].members {
			out[i] = v
		}
	}
	return out
}
