// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Text writes the answer for a terminal.
func (a Answer) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "pod %s", a.Pod)
	if a.Shape != "" {
		fmt.Fprintf(&b, " (%s)", a.Shape)
	}
	switch a.Outcome {
	case OnNode:
		a.Node.text(&b)
	case OnNew:
		a.Launch.text(&b)
	case Pending:
		a.pending(&b)
	default:
		fmt.Fprintf(&b, " needs no new node: %s\n", a.Reason)
	}
	preferencesText(&b, a.Preferences)
	if a.Crowd != nil {
		fmt.Fprintf(&b, "  %-10s %s\n", "crowds", a.Crowd.Text())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (n *Node) text(b *strings.Builder) {
	fmt.Fprintf(b, " is planned onto node %s, which is ", n.Name)
	if n.Ready {
		b.WriteString("there\n")
	} else {
		b.WriteString("on its way\n")
	}
	if n.Pool == "" {
		return
	}
	row(b, "nodepool", n.Pool)
	row(b, "nodeclaim", n.Claim)
	row(b, "type", join(n.InstanceType, n.CapacityType, n.Zone, price(n.PricePerHour)))
	row(b, "price", partsText(n.PriceParts))
}

func (l *Launch) text(b *strings.Builder) {
	b.WriteString(" is planned onto a new node\n")
	row(b, "nodepool", l.Pool)
	row(b, "type", join(l.InstanceType, l.CapacityType, l.Zone, price(l.PricePerHour)))
	row(b, "price", partsText(l.PriceParts))
	if n := len(l.Alternatives); n > 0 {
		row(b, "or", fmt.Sprintf("%s, as %s: whichever the cloud has cheapest", counted(n, "other type"), strings.Join(l.CapacityTypes, " or ")))
	}
	row(b, "takes from", strings.Join(l.Reservations, ", "))
	row(b, "relaxed", strings.Join(l.Relaxed, ", "))
	if l.Pods > 1 {
		row(b, "with", counted(l.Pods-1, "other pod"))
	}
	row(b, "requests", l.Requests)
}

func (a Answer) pending(b *strings.Builder) {
	b.WriteString(" stays pending")
	if a.Alike > 0 {
		do := "do"
		if a.Alike == 1 {
			do = "does"
		}
		fmt.Fprintf(b, ", and so %s %s like it", do, counted(a.Alike, "other pod"))
	}
	b.WriteString("\n")
	if a.Reason != "" {
		fmt.Fprintf(b, "  %s\n", a.Reason)
	}
	for _, p := range a.Pools {
		p.text(b)
	}
	if a.Nodes > 0 {
		fmt.Fprintf(b, "\nexisting nodes\n  none of %d takes it\n", a.Nodes)
	}
}

// text writes the steps one per line, their counts aligned.
func (p Pool) text(b *strings.Builder) {
	fmt.Fprintf(b, "\nnodepool %s\n", p.Name)
	if p.Reason != "" {
		fmt.Fprintf(b, "  %s\n", p.Reason)
	}
	width := 0
	for _, s := range p.Steps {
		width = max(width, len(strconv.Itoa(s.Left)))
	}
	for i, s := range p.Steps {
		after := "after "
		if i == 0 {
			after = ""
		}
		fmt.Fprintf(b, "  %*d %s%s\n", width, s.Left, after, s.Constraint)
		if s.Hint != "" {
			fmt.Fprintf(b, "  %*s → %s\n", width, "", s.Hint)
		}
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func row(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, "  %-10s %s\n", name, value)
	}
}

func join(parts ...string) string { return strings.Join(strings.Fields(strings.Join(parts, " ")), " ") }

// price writes dollars per hour; 0 is a price that is not known.
func price(dollars float64) string {
	if dollars == 0 {
		return ""
	}
	return "$" + strconv.FormatFloat(dollars, 'f', -1, 64) + "/h"
}
