// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"time"

	"karpenter/model"
)

// Fate is what a plan does with a node.
type Fate string

// The fates.
const (
	Goes    Fate = "goes"    // it is to be removed
	Stays   Fate = "stays"   // it is kept, for the reasons that follow
	Going   Fate = "going"   // it is being removed already
	Foreign Fate = "foreign" // Karpenter did not launch it, and does not remove it
)

// NodeAnswer explains what a plan does with one node.
type NodeAnswer struct {
	Node    Node         `json:"node"`
	Fate    Fate         `json:"fate"`
	Pods    int          `json:"pods,omitempty"`         // that must be rescheduled when it is removed, and may be evicted
	Drifted string       `json:"driftedSince,omitempty"` // RFC 3339
	Budgets []Allowance  `json:"budgets,omitempty"`      // of its NodePool
	Command *Departure   `json:"command,omitempty"`      // with Goes
	Reasons []Reason     `json:"reasons,omitempty"`      // with Stays
	Places  []Assignment `json:"places,omitempty"`       // of its pods, with Goes and Going
}

// Allowance is how many more nodes of a NodePool may be disrupted for a reason
// now; -1 = all.
type Allowance struct {
	Reason string `json:"reason"`
	Nodes  int    `json:"nodes"`
}

// Departure is the command that removes a node.
type Departure struct {
	Reason         string   `json:"reason"`
	With           []string `json:"with,omitempty"`     // other nodes that go with it
	Launches       []Launch `json:"launches,omitempty"` // that are ready before any of them goes
	CostPerHour    float64  `json:"costPerHour"`        // of the nodes, in dollars
	SavingsPerHour float64  `json:"savingsPerHour"`     // negative when it costs more afterwards
	Scores         []Score  `json:"scores,omitempty"`
}

// Score is the score of a command in a NodePool whose policy is Balanced.
type Score struct {
	Pool       string  `json:"nodePool"`
	Value      float64 `json:"value"`
	Savings    float64 `json:"savings"`    // as fractions of the pool's totals
	Disruption float64 `json:"disruption"` //
}

// Reason is one thing that keeps a node.
type Reason struct {
	For   string `json:"for,omitempty"`   // Empty, Drifted or Underutilized; "" = any of them
	Cause string `json:"cause,omitempty"` // kind of thing: that of a model.Stay, or waiting
	Why   string `json:"why"`
}

// Assignment is where pods of a node move; both fields are empty if they fit
// nowhere.
type Assignment struct {
	Node string   `json:"node,omitempty"`
	Type string   `json:"newInstanceType,omitempty"`
	Pods []string `json:"pods"` // namespace/name
}

// OfNode returns what the plan for s does with the node, which has the name of
// its Node or its NodeClaim, and whether such a node exists.
func OfNode(s *model.Snapshot, plan *model.Plan, name string) (NodeAnswer, bool) {
	i := slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Name == name || n.Claim == name })
	if i < 0 {
		return NodeAnswer{}, false
	}
	n := &s.Nodes[i]
	a := NodeAnswer{Node: *NodeOf(s, n.Name)}
	runs := map[string]bool{}
	for _, pending := range n.Movable {
		for _, p := range pending.Pods {
			runs[p.Key()] = true
		}
	}
	a.Pods = len(runs)
	if !n.Disruption.Drifted.IsZero() {
		a.Drifted = n.Disruption.Drifted.UTC().Format(time.RFC3339)
	}
	pool := poolOf(s, n.Pool)
	if pool != nil && n.Claim != "" {
		a.Budgets = allowances(pool)
	}
	command := commandFor(plan, n.Name)
	switch {
	case n.Deleting:
		a.Fate = Going
		a.place(func(p model.Pod) bool { return p.From == n.Name }, plan.Placements, plan.Launches, plan.Verdicts)
	case n.Claim == "":
		a.Fate = Foreign
	case command != nil:
		a.Fate, a.Command = Goes, departure(s, command, n.Name)
		a.place(func(p model.Pod) bool { return runs[p.Key()] }, command.Moves, command.Launches, nil)
	default:
		a.Fate, a.Reasons = Stays, reasons(plan, n, pool)
	}
	return a, true
}

func poolOf(s *model.Snapshot, name string) *model.Pool {
	if i := slices.IndexFunc(s.Pools, func(p model.Pool) bool { return p.Name == name }); i >= 0 {
		return &s.Pools[i]
	}
	return nil
}

func commandFor(plan *model.Plan, node string) *model.Command {
	i := slices.IndexFunc(plan.Commands, func(c model.Command) bool {
		return slices.ContainsFunc(c.Nodes, func(t model.Target) bool { return t.Node == node })
	})
	if i < 0 {
		return nil
	}
	return &plan.Commands[i]
}

// unbounded is more nodes than there are.
const unbounded = 1 << 30

func allowances(pool *model.Pool) []Allowance {
	var out []Allowance
	for _, reason := range []model.Reason{model.Empty, model.Drifted, model.Underutilized} {
		n := pool.Disruption.Allowed[reason]
		if n >= unbounded {
			n = -1
		}
		out = append(out, Allowance{string(reason), n})
	}
	return out
}

func departure(s *model.Snapshot, c *model.Command, node string) *Departure {
	out := &Departure{Reason: string(c.Reason), CostPerHour: c.Cost.Dollars(), SavingsPerHour: c.Savings.Dollars()}
	for _, t := range c.Nodes {
		if t.Node != node {
			out.With = append(out.With, t.Node)
		}
	}
	for i := range c.Launches {
		out.Launches = append(out.Launches, *LaunchOf(s, &c.Launches[i]))
	}
	for _, sc := range c.Scores {
		out.Scores = append(out.Scores, Score{sc.Pool, sc.Value, sc.Savings, sc.Disruption})
	}
	return out
}

// place records where the pods of the node move.
func (a *NodeAnswer) place(mine func(model.Pod) bool, moves []model.Placement, launches []model.Launch, verdicts []model.Verdict) {
	add := func(to Assignment, pods []model.Pod) {
		for _, p := range pods {
			if mine(p) {
				to.Pods = append(to.Pods, p.Key())
			}
		}
		if len(to.Pods) > 0 {
			slices.Sort(to.Pods)
			a.Places = append(a.Places, to)
		}
	}
	byNode := map[string][]model.Pod{}
	var nodes []string
	for _, m := range moves {
		if _, known := byNode[m.Node]; !known {
			nodes = append(nodes, m.Node)
		}
		byNode[m.Node] = append(byNode[m.Node], m.Pod)
	}
	for _, to := range nodes {
		add(Assignment{Node: to}, byNode[to])
	}
	for i := range launches {
		add(Assignment{Type: launches[i].Type}, launches[i].Pods)
	}
	var left []model.Pod
	for i := range verdicts {
		left = append(left, verdicts[i].Pods...)
	}
	add(Assignment{}, left)
}

// reasons returns why a managed node is kept: the reasons in the plan, and
// those for which the plan did not examine the node.
func reasons(plan *model.Plan, n *model.Node, pool *model.Pool) []Reason {
	var out []Reason
	d := &n.Disruption
	if d.Blocked != "" {
		out = append(out, Reason{"", string(model.ByNode), d.Blocked})
	}
	if d.Held != "" {
		out = append(out, Reason{"", string(model.ByNode), d.Held})
	}
	saving := model.Underutilized
	if d.Empty {
		saving = model.Empty
	}
	asked := false
	for _, stay := range plan.Stays {
		if stay.Node != n.Name {
			continue
		}
		asked = asked || stay.Reason == saving
		if stay.Why != d.Blocked && stay.Why != d.Held {
			out = append(out, Reason{string(stay.Reason), string(stay.Cause), stay.Why})
		}
	}
	if cause, why := notAsked(n, pool); why != "" && !asked {
		out = append(out, Reason{string(saving), string(cause), why})
	}
	return out
}

// waiting is the cause of reasons that end with time.
const waiting model.Cause = "waiting"

// notAsked returns why plans do not examine the node for consolidation.
func notAsked(n *model.Node, pool *model.Pool) (cause model.Cause, why string) {
	switch d := &n.Disruption; {
	case pool == nil:
		return "", ""
	case pool.Static != nil:
		return model.ByPolicy, fmt.Sprintf("NodePool %q is static: it keeps %d nodes, independent of pods", pool.Name, pool.Static.Replicas)
	case pool.Disruption.Never:
		return model.ByPolicy, fmt.Sprintf("NodePool %q has consolidation disabled: spec.disruption.consolidateAfter is Never", pool.Name)
	case d.Settling:
		return waiting, fmt.Sprintf("a pod was added or removed within consolidateAfter of NodePool %q", pool.Name)
	case !d.Consolidatable && n.Initialized:
		return waiting, "its NodeClaim is not Consolidatable yet: pods were added or removed within consolidateAfter"
	}
	return "", ""
}
