// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// decision names the kind of command, for labels and log lines.
func decision(c *model.Command) string {
	switch {
	case len(c.Nodes) == 0:
		return "no-op"
	case c.Reboot:
		return "reboot"
	case c.TerminateFirst != "":
		return "terminate-first"
	case len(c.Launches) == 0:
		return "delete"
	}
	return "replace"
}

// consolidationType is the metric label of the way a command saves.
func consolidationType(c *model.Command) string {
	switch {
	case c.Reason == model.Empty:
		return "empty"
	case c.Reason != model.Underutilized:
		return ""
	case len(c.Nodes) == 1:
		return "single"
	}
	return "multi"
}

// claimsOf returns the claims of the nodes of the command, in its order.
func claimsOf(c *model.Command) []string {
	out := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		out[i] = n.Claim
	}
	return out
}

// text says what the command does: "replace: [n1, n2] -> [1 replacement]".
func text(c *model.Command) string {
	return fmt.Sprintf("%s: %s%s", decision(c), nodesText(c), becomes(c))
}

// textFor is like text, for events about one of the command's nodes.
func textFor(c *model.Command, node string) string {
	if len(c.Nodes) == 1 {
		return text(c)
	}
	return fmt.Sprintf("%s: [%s] (part of %d-node consolidation)", decision(c), node, len(c.Nodes))
}

// title names the command in the log.
func title(c *model.Command, id string, pools []string) string {
	return fmt.Sprintf("%s/%s: %s: nodepools=[%s]: %s%s (savings: $%.2f)",
		c.Reason, id, decision(c), strings.Join(pools, ","), nodesText(c), becomes(c), c.Savings.Dollars())
}

func nodesText(c *model.Command) string {
	names := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		names[i] = n.Node
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func becomes(c *model.Command) string {
	switch n := len(c.Launches); n {
	case 0:
		return ""
	case 1:
		return " -> [1 replacement]"
	default:
		return fmt.Sprintf(" -> [%d replacements]", n)
	}
}

// only returns what is left of the command for those of its nodes that keep
// reports true for: of a command without launches.
func only(c model.Command, keep func(model.Target) bool) model.Command {
	gone := map[string]bool{}
	nodes := slices.DeleteFunc(slices.Clone(c.Nodes), func(n model.Target) bool {
		gone[n.Node] = !keep(n)
		return gone[n.Node]
	})
	c.Nodes = nodes
	c.Moves = slices.DeleteFunc(slices.Clone(c.Moves), func(p model.Placement) bool { return gone[p.Pod.From] })
	return c
}

// together returns the commands as one that does what all do.
func together(commands []model.Command) model.Command {
	out := commands[0]
	out.Nodes = slices.Clone(out.Nodes)
	for _, c := range commands[1:] {
		out.Nodes = append(out.Nodes, c.Nodes...)
		out.Cost += c.Cost
		out.Savings += c.Savings
	}
	return out
}

// poolsOf returns the NodePools of the command's nodes, sorted.
func (s *scope) poolsOf(c *model.Command) []string {
	pools := map[string]bool{}
	for _, n := range c.Nodes {
		if claim := s.claims[n.Claim]; claim != nil {
			pools[claim.Labels[v1.NodePoolLabelKey]] = true
		}
	}
	return slices.Sorted(maps.Keys(pools))
}

func lower(reason model.Reason) string { return strings.ToLower(string(reason)) }
