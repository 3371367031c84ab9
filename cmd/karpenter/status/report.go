// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warning" // works, and someone should look
	Failure Verdict = "failure" // does not work
	Skipped Verdict = "skipped" // could not be checked
)

// Check is one thing that was looked at.
type Check struct {
	Name    string   `json:"name"`
	Verdict Verdict  `json:"verdict"`
	Summary string   `json:"summary"`
	Details []string `json:"details,omitempty"`
	Remedy  string   `json:"remedy,omitempty"`
}

// Report is all checks.
type Report struct {
	Cluster string  `json:"cluster"` // address of the API server
	Checks  []Check `json:"checks"`
}

// Count returns how many checks have the verdict.
func (r Report) Count(v Verdict) int {
	n := 0
	for _, c := range r.Checks {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// Summary says the counts in words.
func (r Report) Summary() string {
	out := fmt.Sprintf("%d ok", r.Count(OK))
	for _, v := range []Verdict{Warning, Failure} {
		if n := r.Count(v); n > 0 {
			out += ", " + counted(n, string(v))
		}
	}
	if n := r.Count(Skipped); n > 0 {
		out += fmt.Sprintf(", %d skipped", n)
	}
	return out
}

// Style is how a report is written for people.
type Style struct {
	Width  int // columns of a line; 0 = 80
	Colour bool
}

// mostDetails is how many details the text shows; JSON has all.
const mostDetails = 5

// Write writes the report for a terminal.
func (r Report) Write(w io.Writer, style Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.Cluster)
	width := cmp.Or(style.Width, 80)
	const indent = 26 // of the text about a check
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%s  %-16s ", style.mark(c.Verdict), c.Name)
		wrapped(&b, c.Summary, indent, width)
		for i, d := range c.Details {
			if i == mostDetails {
				fmt.Fprintf(&b, "%*s and %d more; -o json has all\n", indent-1, "", len(c.Details)-mostDetails)
				break
			}
			fmt.Fprintf(&b, "%*s- ", indent, "")
			wrapped(&b, d, indent+2, width)
		}
		if c.Remedy != "" {
			fmt.Fprintf(&b, "%*s→ ", indent, "")
			wrapped(&b, c.Remedy, indent+2, width)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", r.Summary())
	_, err := io.WriteString(w, b.String())
	return err
}

func (s Style) mark(v Verdict) string {
	word := map[Verdict]string{OK: "ok", Warning: "WARN", Failure: "FAIL", Skipped: "skip"}[v]
	padded := fmt.Sprintf("%-5s", word)
	if !s.Colour {
		return padded
	}
	colour := map[Verdict]int{OK: 32, Warning: 33, Failure: 31, Skipped: 90}[v]
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, padded)
}

// wrapped writes the text word by word; lines after the first begin at indent.
func wrapped(b *strings.Builder, text string, indent, width int) {
	at := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
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

// Markdown writes the report as a table for an issue or a pull request.
func (r Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n| check | verdict | what | remedy |\n|---|---|---|---|\n", r.Cluster, r.Summary())
	for _, c := range r.Checks {
		what := strings.Join(append([]string{c.Summary}, c.Details...), "<br>")
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Name, c.Verdict, cell(what), cell(c.Remedy))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "ss"); ok {
		return fmt.Sprintf("%d %ssses", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
