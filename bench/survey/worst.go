// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"karpenter/bench/wild"
)

// finding is a problem that an engine did badly on.
type finding struct {
	reason  string
	c       wild.Case
	badness float64 // orders findings of the same reason; the larger, the worse
	what    string
}

// worstOfEach is how many problems are kept for each reason.
const worstOfEach = 5

// findings returns the worst problems by reason: without a plan, invalid,
// placing fewer pods than upstream, more expensive than upstream, slowest,
// slowest beside upstream, and with the widest gap.
func findings(all []*Measurement) []finding {
	var out []finding
	for _, p := range Pairs(all) {
		if p.Ours != nil && p.Ours.Status != Skipped {
			out = append(out, p.findings()...)
		}
	}
	order := []string{"invalid", "no-plan", "fewer-pods", "more-expensive", "slowest", "slow-beside-upstream", "gap"}
	slices.SortStableFunc(out, func(a, b finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.reason), slices.Index(order, b.reason)), cmp.Compare(b.badness, a.badness))
	})
	count := map[string]int{}
	return slices.DeleteFunc(out, func(f finding) bool {
		count[f.reason]++
		return count[f.reason] > worstOfEach
	})
}

func (p Pair) findings() []finding {
	m := p.Ours
	note := func(reason string, badness float64, format string, args ...any) finding {
		return finding{reason, m.Case, badness, fmt.Sprintf(format, args...)}
	}
	if !m.Planned() {
		// Of these, the smallest problem says most.
		return []finding{note("no-plan", -float64(m.Deployments*(m.Case.Nodes+1)), "%s: %s", m.Status, m.Note)}
	}
	out := []finding{note("slowest", m.CPU(), "%.2f CPU s", m.CPU())}
	if m.Status == Invalid {
		out = append(out, note("invalid", float64(len(m.Faults)), "%s: %s", m.Note, strings.Join(m.Faults, "; ")))
	}
	if gap, ok := m.Gap(); ok && gap > 0 {
		out = append(out, note("gap", gap, "gap of %.1f%%", 100*gap))
	}
	if speed, ok := p.Speed(); ok && !math.IsInf(speed, 1) {
		out = append(out, note("slow-beside-upstream", -speed, "%.2f CPU s, upstream %.2f", m.CPU(), p.Theirs.CPU()))
	}
	if price, ok := p.Price(); ok && price > 1 {
		out = append(out, note("more-expensive", price, "$%.3f/h, upstream $%.3f/h", m.Price, p.Theirs.Price))
	}
	if p.Theirs != nil && p.Theirs.Planned() && m.Scheduled < p.Theirs.Scheduled {
		out = append(out, note("fewer-pods", float64(p.Theirs.Scheduled-m.Scheduled), "%d pods placed, upstream %d of %d", m.Scheduled, p.Theirs.Scheduled, m.Pods))
	}
	return out
}

// WriteWorst writes the worst problems into a folder, each as a scenario that
// "karpenter plan --snapshot" reads, and a README that says what is wrong with
// each.
func WriteWorst(folder string, all []*Measurement) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var list strings.Builder
	written := map[wild.Case]bool{}
	for _, f := range findings(all) {
		name := f.c.Name() + ".txt"
		if !written[f.c] {
			if err := Write(f.c, filepath.Join(folder, name)); err != nil {
				return err
			}
			written[f.c] = true
		}
		fmt.Fprintf(&list, "%s: %s: %s\n  again: bench wild -seed %d -families %s -sizes %d -nodes %d -draws %d\n",
			f.reason, name, f.what, f.c.Seed, f.c.Family, f.c.Deployments, f.c.Nodes, f.c.Draw)
	}
	return os.WriteFile(filepath.Join(folder, "README"), []byte(list.String()), 0o644)
}
