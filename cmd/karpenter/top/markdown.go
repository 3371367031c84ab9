// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes the nodes as a table for an issue or a pull request.
func (s *Screen) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes, $%.3f/h ($%.0f/month)", len(s.View.Nodes), s.View.Cost, s.View.Cost*730)
	if s.Bound.Least > 0 {
		fmt.Fprintf(&b, "; $%.3f/h is the proven minimum", s.Bound.Least)
	}
	b.WriteString("\n\n| node | type | zone | capacity | status | pods | CPU | $/hour | why |\n|---|---|---|---|---|--:|--:|--:|---|\n")
	for i := range s.View.Nodes {
		n := &s.View.Nodes[i]
		price := "?"
		if n.Priced {
			price = fmt.Sprintf("%.4f", n.Price)
		}
		cpu := 0.0
		if n.Room.MilliCPU > 0 {
			cpu = 100 * float64(n.Used.MilliCPU) / float64(n.Room.MilliCPU)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %d | %.0f%% | %s | %s |\n",
			n.Name, n.Type, n.Zone, n.CapacityType, n.State, n.Pods, cpu, price, strings.ReplaceAll(n.Why, "|", `\|`))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
