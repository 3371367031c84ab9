package explain

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// ListText writes one line for each answer.
func ListText(w io.Writer, answers []Answer) error {
	if len(answers) == 0 {
		_, err := io.WriteString(w, "No pod waits for a node.\n")
		return err
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "POD\tOUTCOME\tWHERE OR WHY")
	for _, a := range answers {
		fmt.Fprintf(columns, "%s\t%s\t%s\n", a.Pod, a.Outcome, a.brief())
	}
	return columns.Flush()
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
