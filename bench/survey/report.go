// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Pair is what the engines did with one problem. Either can be missing.
type Pair struct{ Ours, Theirs *Measurement }

// Pairs joins the measurements of each problem, in their order.
func Pairs(all []*Measurement) []Pair {
	var out []Pair
	at := map[string]int{}
	for _, m := range all {
		i, known := at[m.Name()]
		if !known {
			i = len(out)
			at[m.Name()], out = i, append(out, Pair{})
		}
		if m.Engine == Ours {
			out[i].Ours = m
		} else {
			out[i].Theirs = m
		}
	}
	return out
}

// CPU returns the figure that engines are compared by: the CPU seconds of the
// first decision or, in a disruption family, of the slowest one. It is infinite
// if the engine made no plan.
func (m *Measurement) CPU() float64 {
	if !m.Planned() {
		return math.Inf(1)
	}
	if m.RestCPU > 0 {
		return max(m.FirstCPU, m.WarmCPU)
	}
	return m.FirstCPU
}

// Speed returns upstream's CPU time over ours, and false if either was not
// measured or neither made a plan.
func (p Pair) Speed() (float64, bool) {
	if p.Ours == nil || p.Theirs == nil || p.Ours.Status == Skipped || p.Theirs.Status == Skipped || !p.Ours.Planned() && !p.Theirs.Planned() {
		return 0, false
	}
	return p.Theirs.CPU() / p.Ours.CPU(), true
}

// Price returns our price over upstream's, and false if the plans can't be
// compared because one of them is missing or invalid, or places fewer pods.
func (p Pair) Price() (float64, bool) {
	comparable := func(m *Measurement) bool {
		return m != nil && m.Planned() && m.Status != Restless && m.Status != Invalid
	}
	if !comparable(p.Ours) || !comparable(p.Theirs) || p.Ours.Scheduled != p.Theirs.Scheduled {
		return 0, false
	}
	switch {
	case p.Ours.Price == p.Theirs.Price:
		return 1, true
	case p.Theirs.Price == 0:
		return math.Inf(1), true
	}
	return p.Ours.Price / p.Theirs.Price, true
}

// figures are the values of one quantity over the problems of a family.
type figures []float64

// at returns the value that the share of the values does not exceed.
func (f figures) at(share float64) float64 {
	s := slices.Sorted(slices.Values(f))
	return s[max(int(math.Ceil(share*float64(len(s))))-1, 0)]
}

// text prints the value at the share, and what is missing as a dash.
func (f figures) text(share float64, format func(float64) string) string {
	if len(f) == 0 {
		return "–"
	}
	return format(f.at(share))
}

// summary is the row of a family.
type summary struct {
	family                    string
	problems                  int
	ours, warm, theirs        figures // CPU seconds
	speed, price, gap, growth figures
	memory, grown             figures // MiB, ours: at the peak, and since the decision began
	nodes, theirNodes         figures
	failed                    map[Status]int // ours
	theyFailed                map[Status]int
	fewer, more               int // problems in which ours places fewer pods, or more
}

// summarise returns a row for each family, in the order they came.
func summarise(all []*Measurement) []*summary {
	var out []*summary
	for _, p := range Pairs(all) {
		c := p.of().Case
		i := slices.IndexFunc(out, func(s *summary) bool { return s.family == c.Family })
		if i < 0 {
			i, out = len(out), append(out, &summary{family: c.Family, failed: map[Status]int{}, theyFailed: map[Status]int{}})
		}
		out[i].add(p)
	}
	for _, s := range out {
		s.growth = growth(all, s.family)
	}
	return out
}

// of returns a measurement of the pair.
func (p Pair) of() *Measurement {
	if p.Ours != nil {
		return p.Ours
	}
	return p.Theirs
}

func (s *summary) add(p Pair) {
	s.problems++
	if m := p.Ours; m != nil && m.Status != Skipped {
		s.ours = append(s.ours, m.CPU())
		if m.WarmCPU > 0 {
			s.warm = append(s.warm, m.WarmCPU)
		}
		if m.PeakBytes > 0 {
			s.memory = append(s.memory, float64(m.PeakBytes>>20))
		}
		if m.StartBytes > 0 && m.PeakBytes > 0 {
			s.grown = append(s.grown, float64((m.PeakBytes-min(m.StartBytes, m.PeakBytes))>>20))
		}
		if gap, ok := m.Gap(); ok {
			s.gap = append(s.gap, gap)
		}
		if m.Planned() {
			s.nodes = append(s.nodes, float64(m.NewNodes))
		}
	}
	if m := p.Theirs; m != nil && m.Status != Skipped {
		s.theirs = append(s.theirs, m.CPU())
		if m.Planned() {
			s.theirNodes = append(s.theirNodes, float64(m.NewNodes))
		}
	}
	if p.Ours != nil && p.Ours.Status != OK {
		s.failed[p.Ours.Status]++
	}
	if p.Theirs != nil && p.Theirs.Status != OK {
		s.theyFailed[p.Theirs.Status]++
	}
	if v, ok := p.Speed(); ok {
		s.speed = append(s.speed, v)
	}
	if v, ok := p.Price(); ok {
		s.price = append(s.price, v)
	}
	if p.Ours != nil && p.Theirs != nil && p.Ours.Planned() && p.Theirs.Planned() {
		switch {
		case p.Ours.Scheduled < p.Theirs.Scheduled:
			s.fewer++
		case p.Ours.Scheduled > p.Theirs.Scheduled:
			s.more++
		}
	}
}

// shortest is the CPU time in seconds from which on growth is looked at: less
// says nothing.
const shortest = 0.1

// growth returns by what doubling the Deployments multiplies our CPU time, from
// each size of the family to the next.
func growth(all []*Measurement, family string) figures {
	var out figures
	for _, l := range lines(all) {
		if l.engine != Ours || l.family != family {
			continue
		}
		for i := 1; i < len(l.points); i++ {
			a, b := l.points[i-1], l.points[i]
			if b.cpu >= shortest && !a.over {
				doublings := math.Log2(float64(b.deployments) / float64(a.deployments))
				out = append(out, math.Pow(b.cpu/a.cpu, 1/doublings))
			}
		}
	}
	return out
}

// Report prints a table with a row for each family, and then what is wrong.
func Report(w io.Writer, all []*Measurement) {
	fmt.Fprintln(w, "| family | problems | ours CPU s: median | p95 | worst | warm median | warm worst | upstream CPU s: median | p95 | worst | × less CPU: median | least | × per doubling: worst | price / upstream's: median | worst | gap: median | p95 | worst | nodes: ours | upstream | peak MiB | of it the decision | remarks |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
	for _, s := range summarise(all) {
		fmt.Fprintf(w, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			s.family, s.problems,
			s.ours.text(0.5, seconds), s.ours.text(0.95, seconds), s.ours.text(1, seconds), s.warm.text(0.5, seconds), s.warm.text(1, seconds),
			s.theirs.text(0.5, seconds), s.theirs.text(0.95, seconds), s.theirs.text(1, seconds),
			s.speed.text(0.5, times), s.speed.text(0, times), s.growth.text(1, times),
			s.price.text(0.5, ratio), s.price.text(1, ratio),
			s.gap.text(0.5, percent), s.gap.text(0.95, percent), s.gap.text(1, percent),
			s.nodes.text(0.5, whole), s.theirNodes.text(0.5, whole), s.memory.text(1, whole), s.grown.text(1, whole), s.remarks())
	}
}

// Faulty counts our invalid plans. Those of upstream are only reported.
func Faulty(all []*Measurement) int {
	n := 0
	for _, m := range all {
		if m.Engine == Ours && m.Status == Invalid {
			n++
		}
	}
	return n
}

// remarks counts what did not go as it should.
func (s *summary) remarks() string {
	var out []string
	note := func(who string, failed map[Status]int) {
		for _, status := range []Status{Late, Large, Invalid, Crashed, Unwarm, Restless, Skipped} {
			if n := failed[status]; n > 0 {
				out = append(out, fmt.Sprintf("%s%s: %d", who, status, n))
			}
		}
	}
	note("", s.failed)
	note("upstream ", s.theyFailed)
	if s.fewer > 0 {
		out = append(out, fmt.Sprintf("fewer pods placed than upstream: %d", s.fewer))
	}
	if s.more > 0 {
		out = append(out, fmt.Sprintf("more pods placed than upstream: %d", s.more))
	}
	return strings.Join(out, "; ")
}

func seconds(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "none"
	case v < 0.1:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func times(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "∞"
	case v < 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func ratio(v float64) string   { return fmt.Sprintf("%.3f", v) }
func percent(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }
func whole(v float64) string   { return fmt.Sprintf("%.0f", v) }
