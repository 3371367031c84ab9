// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"strings"
)

// ListText writes one line for each answer. The last column is broken between words
// where it would go beyond width; 0 = any width.
func ListText(w io.Writer, answers []Answer, width int) error {
	if len(answers) == 0 {
		_, err := io.WriteString(w, "No pod waits for a node.\n")
		return err
	}
	pod, outcome := len("POD"), len("OUTCOME")
	for _, a := range answers {
		pod, outcome = max(pod, len(a.Pod)), max(outcome, len(a.Outcome))
	}
	indent := pod + outcome + 4
	if width > 0 && indent > width*2/3 {
		indent = 4 // long names leave no space beside them
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s  %-*s  WHERE OR WHY\n", pod, "POD", outcome, "OUTCOME")
	for _, a := range answers {
		line := fmt.Sprintf("%-*s  %-*s ", pod, a.Pod, outcome, a.Outcome)
		for _, word := range strings.Fields(a.brief()) {
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

// ListMarkdown writes the answers as a table.
func ListMarkdown(w io.Writer, answers []Answer) error {
	var b strings.Builder
	b.WriteString("| pod | outcome | where or why |\n|---|---|---|\n")
	for _, a := range answers {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.Pod, a.Outcome, strings.ReplaceAll(a.brief(), "|", `\|`))
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
