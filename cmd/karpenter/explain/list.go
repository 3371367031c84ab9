// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"strings"
)

// List is one line for each of several answers.
type List struct {
	columns [3]string // names; the last column takes the space that is left
	lines   [][3]string
	none    string // in place of an empty list
}

// ListPods lists where pods are planned, or why nowhere.
func ListPods(answers []Answer) List {
	out := List{columns: [3]string{"pod", "outcome", "where or why"}, none: "No pod waits for a node."}
	for _, a := range answers {
		out.lines = append(out.lines, [3]string{a.Pod, string(a.Outcome), a.brief()})
	}
	return out
}

// ListNodes lists which nodes stay and which are removed, and why.
func ListNodes(answers []NodeAnswer) List {
	out := List{columns: [3]string{"node", "outcome", "why"}, none: "There are no nodes."}
	for _, a := range answers {
		out.lines = append(out.lines, [3]string{a.Node.Name, string(a.Fate), a.brief()})
	}
	return out
}

// Text writes the list. The last column is broken between words where it would go
// beyond width; 0 = any width.
func (l List) Text(w io.Writer, width int) error {
	if len(l.lines) == 0 {
		_, err := fmt.Fprintln(w, l.none)
		return err
	}
	first, second := len(l.columns[0]), len(l.columns[1])
	for _, row := range l.lines {
		first, second = max(first, len(row[0])), max(second, len(row[1]))
	}
	indent := first + second + 4
	if width > 0 && indent > width*2/3 {
		indent = 4 // long names leave no space beside them
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s  %-*s  %s\n", first, strings.ToUpper(l.columns[0]), second, strings.ToUpper(l.columns[1]), strings.ToUpper(l.columns[2]))
	for _, row := range l.lines {
		line := fmt.Sprintf("%-*s  %-*s ", first, row[0], second, row[1])
		for _, word := range strings.Fields(row[2]) {
			if width > 0 && len(line)+1+len(word) > width && len(line) > indent {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = strings.Repeat(" ", indent-1)
			}
			line += " " + word
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes the list as a table.
func (l List) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s | %s |\n|---|---|---|\n", l.columns[0], l.columns[1], l.columns[2])
	for _, row := range l.lines {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", row[0], row[1], strings.ReplaceAll(row[2], "|", `\|`))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// brief says in a few words where the pod is planned, or why nowhere.
func (a Answer) brief() string {
	switch {
	case a.Node != nil:
		return "node " + a.Node.Name
	case a.Launch != nil:
		return "a new " + join(a.Launch.InstanceType, a.Launch.CapacityType, a.Launch.Zone)
	case a.Reason != "":
		return a.Reason
	}
	var out []string
	for _, p := range a.Pools {
		if n := len(p.Steps); n > 0 {
			out = append(out, p.Name+": "+p.Steps[n-1].Constraint)
		}
	}
	return strings.Join(out, "; ")
}

// brief says in a few words why the node stays or goes.
func (a NodeAnswer) brief() string {
	switch {
	case a.Fate == Foreign:
		return "no NodeClaim manages it"
	case a.Fate == Going:
		if n := placed(a.Places); n > 0 {
			return fmt.Sprintf("it is being removed; %s need a new place", counted(n, "pod"))
		}
		return "it is being removed; no pod needs a new place"
	case a.Command != nil && len(a.Command.Launches) > 0:
		return fmt.Sprintf("%s: replaced by %s, saves %s", a.Command.Reason, counted(len(a.Command.Launches), "new node"), dollars(a.Command.SavingsPerHour))
	case a.Command != nil:
		return fmt.Sprintf("%s: saves %s", a.Command.Reason, dollars(a.Command.SavingsPerHour))
	}
	var out []string
	for _, r := range a.Reasons {
		out = append(out, r.Why)
	}
	return strings.Join(out, "; ")
}

func placed(places []Assignment) int {
	n := 0
	for _, p := range places {
		n += len(p.Pods)
	}
	return n
}
