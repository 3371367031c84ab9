// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"math"
	"slices"
)

// line is how the CPU time of an engine grows with the number of Deployments in
// a family, on the same number of existing nodes.
type line struct {
	family, engine string
	nodes          int
	points         []point // by number of Deployments
}

// point is the median over the draws of a size.
type point struct {
	deployments int
	cpu         float64 // seconds; the limit if there was no plan
	over        bool    // there was no plan within the limit
}

// lines returns the lines of all measurements, in the order they came.
func lines(all []*Measurement) []line {
	type size struct {
		at, deployments int
	}
	var out []line
	values := map[size][]float64{}
	limits := map[size]float64{}
	for _, m := range all {
		if m.Status == Skipped {
			continue
		}
		at := slices.IndexFunc(out, func(l line) bool { return l.family == m.Family && l.engine == m.Engine && l.nodes == m.Case.Nodes })
		if at < 0 {
			at, out = len(out), append(out, line{family: m.Family, engine: m.Engine, nodes: m.Case.Nodes})
		}
		s := size{at, m.Deployments}
		values[s] = append(values[s], m.CPU())
		limits[s] = m.Limit
	}
	for s, v := range values {
		p := point{deployments: s.deployments, cpu: figures(v).at(0.5)}
		if math.IsInf(p.cpu, 1) {
			p.cpu, p.over = limits[s], true
		}
		out[s.at].points = append(out[s.at].points, p)
	}
	for _, l := range out {
		slices.SortFunc(l.points, func(a, b point) int { return cmp.Compare(a.deployments, b.deployments) })
	}
	return out
}
