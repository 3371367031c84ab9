// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Text writes the answer for a terminal.
func (a NodeAnswer) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "node %s", a.Node.Name)
	switch a.Fate {
	case Goes:
		fmt.Fprintf(&b, " will be disrupted: %s\n", a.Command.Reason)
	case Going:
		b.WriteString(" is being terminated\n")
	case Foreign:
		b.WriteString(" has no NodeClaim: Karpenter does not manage it\n")
	default:
		b.WriteString(" stays\n")
	}
	a.facts(&b)
	if a.Command != nil {
		a.Command.text(&b)
	}
	if len(a.Reasons) > 0 {
		b.WriteString("\nwhy\n")
	}
	for _, r := range a.Reasons {
		if r.For != "" {
			fmt.Fprintf(&b, "  not as %s: ", r.For)
		} else {
			b.WriteString("  ")
		}
		b.WriteString(r.Why + "\n")
	}
	if len(a.Places) > 0 {
		b.WriteString("\nits pods\n")
	}
	for _, p := range a.Places {
		fmt.Fprintf(&b, "  %s\n", p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *NodeAnswer) facts(b *strings.Builder) {
	row(b, "nodepool", a.Node.Pool)
	if a.Node.Claim != a.Node.Name {
		row(b, "nodeclaim", a.Node.Claim)
	}
	row(b, "type", join(a.Node.InstanceType, a.Node.CapacityType, a.Node.Zone, price(a.Node.PricePerHour)))
	row(b, "price", partsText(a.Node.PriceParts))
	if a.Fate == Foreign || a.Fate == Going {
		return
	}
	pods := "none to move"
	if a.Pods > 0 {
		pods = fmt.Sprintf("%d to move", a.Pods)
	}
	row(b, "pods", pods)
	row(b, "drifted", since(a.Drifted))
	var budgets []string
	for _, x := range a.Budgets {
		n := strconv.Itoa(x.Nodes)
		if x.Nodes < 0 {
			n = "any number"
		}
		budgets = append(budgets, n+" as "+x.Reason)
	}
	row(b, "allowed", strings.Join(budgets, ", "))
}

func since(time string) string {
	if time == "" {
		return ""
	}
	return "since " + time
}

func (c *Departure) text(b *strings.Builder) {
	row(b, "with", strings.Join(c.With, ", "))
	for _, l := range c.Launches {
		text := join("a new", l.InstanceType, l.CapacityType, l.Zone, price(l.PricePerHour), "in nodepool", l.Pool)
		if n := len(l.Alternatives); n > 0 {
			text += fmt.Sprintf(", or %s as %s: whichever the cloud has cheapest", counted(n, "other type"), strings.Join(l.CapacityTypes, " or "))
		}
		row(b, "replaced", "by "+text)
	}
	switch {
	case c.SavingsPerHour < 0:
		row(b, "pays", fmt.Sprintf("%s more than %s", monthly(-c.SavingsPerHour), dollars(c.CostPerHour)))
	default:
		row(b, "saves", fmt.Sprintf("%s of %s", monthly(c.SavingsPerHour), dollars(c.CostPerHour)))
	}
	for _, s := range c.Scores {
		row(b, "score", fmt.Sprintf("%.3g in nodepool %s: %.3g%% of its cost for %.3g%% of its disruption", s.Value, s.Pool, 100*s.Savings, 100*s.Disruption))
	}
}

// String says where which pods go.
func (p Assignment) String() string {
	const most = 5
	names := p.Pods
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	to := "no place is found"
	switch {
	case p.Node != "":
		to = "node " + p.Node
	case p.Type != "":
		to = "a new " + p.Type
	}
	return strings.Join(names, ", ") + more + " → " + to
}

// monthly writes dollars per hour and per month.
func monthly(d float64) string {
	const hours = 730
	return fmt.Sprintf("%s ($%.0f/month)", dollars(d), d*hours)
}

// dollars writes dollars per hour, also none, rounded to hundredths of a cent if
// they are that much.
func dollars(d float64) string {
	step := 1e-4
	if math.Abs(d) < step {
		step = 1e-9
	}
	return "$" + strconv.FormatFloat(math.Round(d/step)/(1/step), 'f', -1, 64) + "/h"
}
