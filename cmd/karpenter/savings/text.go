// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// hours is how many hours a month has, as AWS counts them.
const hours = 730

// mostTypes is how many instance types a line names.
const mostTypes = 4

// row is a line of the comparison.
type row struct {
	name, nodes, hourly, monthly, saves, remark string
}

func (r Report) rows() []row {
	line := func(name string, nodes int, cost float64) row {
		return row{name: name, nodes: strconv.Itoa(nodes), hourly: fmt.Sprintf("%.3f", cost), monthly: thousands(cost * hours)}
	}
	out := []row{line("now", r.Now.Nodes, r.Now.Cost)}
	for _, p := range r.Plans {
		l := line("from scratch, "+p.Name, p.Nodes, p.Cost)
		l.saves = r.share(p.Cost)
		bound := r.share(p.Bound)
		if p.Unplaced > 0 {
			l.saves, bound = "?", "?"
			l.remark = fmt.Sprintf("without %s", counted(p.Unplaced, "pod"))
		}
		out = append(out, l, row{name: "  proven minimum", hourly: fmt.Sprintf("%.3f", p.Bound), monthly: thousands(p.Bound * hours), saves: bound})
	}
	return out
}

// share says which part of the present cost is saved.
func (r Report) share(cost float64) string {
	if r.Now.Cost == 0 || len(r.Now.Unpriced) > 0 {
		return "?"
	}
	if saved := 100 * (1 - cost/r.Now.Cost); saved < 99.5 || cost == 0 {
		return fmt.Sprintf("%.0f%%", saved)
	}
	return ">99%"
}

// Best is the cheapest plan that places all pods; nil = none does.
func (r Report) Best() *Plan {
	var best *Plan
	for i := range r.Plans {
		if p := &r.Plans[i]; p.Unplaced == 0 && (best == nil || p.Cost < best.Cost) {
			best = p
		}
	}
	return best
}

// Text writes the report for people. Lines of text have at most width columns.
func (r Report) Text(w io.Writer, width int) error {
	var b strings.Builder
	item := func(mark, text string) { wrapped(&b, mark, text, width) }
	where := ""
	if r.Region != "" {
		where = " in " + r.Region
	}
	fmt.Fprintf(&b, "%s%s (%d Spot) for %s\n", counted(r.Now.Nodes, "node"), where, r.Now.Spot, counted(r.Now.Pods, "pod"))
	item("  types      ", some(r.Now.Types))
	fmt.Fprintf(&b, "  requested  %.0f%% of the CPU, %.0f%% of the memory\n\n", 100*r.Now.CPU, 100*r.Now.Memory)
	fmt.Fprintf(&b, "%-31s %5s %9s %9s %5s\n", "", "NODES", "$/HOUR", "$/MONTH", "SAVES")
	for _, l := range r.rows() {
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-31s %5s %9s %9s %5s  %s", l.name, l.nodes, l.hourly, l.monthly, l.saves, l.remark), " "))
	}
	if best := r.Best(); best != nil {
		fmt.Fprintf(&b, "\nLaunch, %s\n", best.Name)
		for _, l := range best.lines() {
			fmt.Fprintf(&b, "  %s\n", l)
		}
	}
	if len(r.Obstacles) > 0 {
		b.WriteString("\nIn the way\n")
	}
	for _, o := range r.Obstacles {
		item("  - ", o.What+": "+strings.Join(o.Such, ", ")+more(o.Pods-len(o.Such)))
		item("    → ", o.Do)
	}
	b.WriteString("\nAssumptions\n")
	item("  - ", r.listOf())
	for _, n := range r.Notes {
		item("  - ", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// wrapped writes a text after a mark.
func wrapped(b *strings.Builder, mark, text string, width int) {
	indent := len([]rune(mark))
	at := indent
	b.WriteString(mark)
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > width:
			fmt.Fprintf(b, "\n%*s", indent, "")
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
}

// lines says what the plan launches.
func (p Plan) lines() []string {
	const most = 8
	var out []string
	for i, l := range p.Buy {
		if i == most {
			out = append(out, fmt.Sprintf("and %s more; -o json has all", counted(len(p.Buy)-most, "offering")))
			break
		}
		out = append(out, fmt.Sprintf("%4d × %-18s %-10s $%.3f/h", l.Count, l.InstanceType, l.CapacityType, l.Cost))
	}
	return out
}

// some names the most frequent instance types.
func some(types map[string]int) string {
	names := slices.SortedFunc(maps.Keys(types), func(a, b string) int {
		return cmp.Or(types[b]-types[a], cmp.Compare(a, b))
	})
	var out []string
	for _, name := range names[:min(len(names), mostTypes)] {
		out = append(out, fmt.Sprintf("%d × %s", types[name], name))
	}
	text := strings.Join(out, ", ")
	if n := len(names) - len(out); n > 0 {
		text += fmt.Sprintf(" and %s", counted(n, "other type"))
	}
	return text
}

// thousands writes whole dollars with commas.
func thousands(d float64) string {
	text := strconv.FormatFloat(d, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Markdown writes the report for a pull request.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### What %s for %s could cost\n\n", counted(r.Now.Nodes, "node"), counted(r.Now.Pods, "pod"))
	b.WriteString("| | nodes | $/hour | $/month | saves |\n|---|--:|--:|--:|--:|\n")
	for _, l := range r.rows() {
		name := strings.TrimSpace(l.name)
		if l.remark != "" {
			name += " (" + l.remark + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, l.nodes, l.hourly, l.monthly, l.saves)
	}
	if best := r.Best(); best != nil {
		fmt.Fprintf(&b, "\n**Launch, %s**\n\n| n | type | capacity | $/hour |\n|--:|---|---|--:|\n", best.Name)
		for _, l := range best.Buy {
			fmt.Fprintf(&b, "| %d | %s | %s | %.3f |\n", l.Count, l.InstanceType, l.CapacityType, l.Cost)
		}
	}
	if len(r.Obstacles) > 0 {
		b.WriteString("\n**In the way**\n\n")
	}
	for _, o := range r.Obstacles {
		fmt.Fprintf(&b, "- %s: %s%s. %s.\n", o.What, strings.Join(o.Such, ", "), more(o.Pods-len(o.Such)), o.Do)
	}
	var notes []string
	for _, n := range r.Notes {
		notes = append(notes, capitalised(n))
	}
	fmt.Fprintf(&b, "\n<sub>%s. %s.</sub>\n", capitalised(r.listOf()), strings.Join(notes, ". "))
	_, err := io.WriteString(w, b.String())
	return err
}

// capitalised begins the text, which has an ASCII letter or a digit first, like a sentence.
func capitalised(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
