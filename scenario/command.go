// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"

	"karpenter/model"
)

// command writes one sentence: what goes, why, what that saves and where pods
// go; and below it what is launched.
func (p *printer) command(c *model.Command) {
	verb := "remove"
	if len(c.Launches) > 0 {
		verb = "replace"
	} else if c.Reboot {
		verb = "reboot"
	}
	names := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		names[i] = nodeName(n.Node, n.Claim)
	}
	text := verb + " " + strings.Join(names, ", ") + " as " + string(c.Reason) + saving(c)
	if c.TerminateFirst != "" {
		text += ", before it is replaced (" + string(c.TerminateFirst) + ")"
	}
	for _, s := range c.Scores {
		text += fmt.Sprintf(", score %.3g for %s (%.3g%% of its cost, %.3g%% of its disruption)",
			s.Value, outerName(s.Pool), 100*s.Savings, 100*s.Disruption)
	}
	var parts []string
	for _, to := range byNode(c.Moves) {
		parts = append(parts, podList(to.pods)+" to "+outerName(to.node))
	}
	for i := range c.Launches {
		machine := "a new " + outerName(c.Launches[i].Type)
		if len(c.Launches[i].Pods) > 0 {
			machine = podList(c.Launches[i].Pods) + " to " + machine
		}
		parts = append(parts, machine)
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	p.line(text)
	below := &printer{axis: p.axis, s: p.s}
	for i := range c.Launches {
		below.launch(&c.Launches[i])
	}
	for line := range strings.Lines(below.out.String()) {
		p.out.WriteString("  " + line)
	}
}

// saving is what a command saves of what its nodes cost; nothing where their
// price is not known.
func saving(c *model.Command) string {
	cost := "$" + FormatPrice(c.Cost) + "/h"
	switch {
	case c.Cost == 0 && c.Savings == 0:
		return ""
	case c.Savings == c.Cost:
		return ", saving " + cost
	case c.Savings == 0:
		return ", saving nothing of " + cost
	case c.Savings < 0:
		return ", paying $" + FormatPrice(-c.Savings) + "/h more than " + cost
	}
	return ", saving $" + FormatPrice(c.Savings) + "/h of " + cost
}

// stay says why a node is kept, and what kind of thing that is.
func (p *printer) stay(s *model.Stay) {
	text := "stay   " + nodeName(s.Node, s.Claim) + ": not removed as " + string(s.Reason)
	if s.Cause != "" {
		text += " (" + string(s.Cause) + ")"
	}
	p.line(text + ": " + s.Why)
}
