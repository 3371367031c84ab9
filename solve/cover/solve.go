// SPDX-License-Identifier: Apache-2.0

package cover

import (
	"math"

	"karpenter/solve/work"
)

// Unlimited returns the options that look for the cheapest cover, whatever it
// costs.
func Unlimited() Options { return Options{Most: math.Inf(1), Prove: true} }

// Solve returns a cheap cover.
func Solve(p *Problem, o Options, budget *work.Budget) *Result {
	s := newSolver(p, budget)
	m := newMaster(s, o)
	m.patterns = append(m.patterns, o.Known...)
	r := &Result{}
	if !s.dive(m, r, o) {
		r.Abandoned = true
	} else {
		s.coverRest()
		s.coverAsFirst(m)
		if o.Rough {
			s.tighten()
		} else {
			s.improve(improveTries)
		}
	}
	r.Start = m.start
	r.Nodes, r.Left, r.Values, r.Master = s.nodes, s.left, s.values, s.master
	return r
}

// Values returns the dual values of one pod of each item, without a cover, as in Result.
func Values(p *Problem, o Options, budget *work.Budget) (values, master []float64) {
	s := newSolver(p, budget)
	m := newMaster(s, o)
	if m.restart() {
		m.optimise(math.MaxInt, greedily)
		if o.Prove {
			m.refine()
		}
		s.value(m)
	}
	return s.values, s.master
}
