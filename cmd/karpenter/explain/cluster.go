// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"karpenter/model"
)

// ClusterAnswer compares what the nodes cost with what the same pods would cost
// if they were placed from scratch. Dollars are per hour. Nodes that Karpenter
// did not launch count nowhere, but can take pods in the fresh plan, too.
type ClusterAnswer struct {
	Nodes    int     `json:"nodes"`
	Cost     float64 `json:"costPerHour"`
	Parts    []Part  `json:"costParts,omitempty"` // of Cost, if it is not for instances alone
	Unpriced int     `json:"unpriced,omitempty"`  // of the nodes, whose price is not known: it counts as 0
	Pods     int     `json:"pods"`                // that the fresh plan places: those that may move or are pending
	Waiting  int     `json:"waiting,omitempty"`   // of the pods, that no node runs yet: Cost is without them

	Fresh Fresh   `json:"fresh"`
	Bound float64 `json:"boundPerHour"` // no plan for those pods, Kept included, costs less

	Kept     int     `json:"kept,omitempty"` // nodes that cannot be removed now, and stay in the fresh plan as they are
	KeptCost float64 `json:"keptPerHour,omitempty"`
}

// Fresh is the plan for a cluster in which no movable pod runs yet.
type Fresh struct {
	Nodes   int     `json:"nodes"` // Kept included
	Cost    float64 `json:"costPerHour"`
	Pending int     `json:"pending,omitempty"` // pods that fit nowhere; Cost and Bound do not include them
}

// OfCluster returns how the cluster's nodes compare with the plan that place
// makes for all pods that may move. The plan has no disruption commands.
func OfCluster(s *model.Snapshot, place func(*model.Snapshot) *model.Plan) ClusterAnswer {
	var a ClusterAnswer
	var cost, kept model.Price
	var parts sums
	fresh, stays := emptied(s)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" {
			continue
		}
		a.Nodes++
		cost += n.Price
		parts.node(s, n)
		if n.Price == 0 {
			a.Unpriced++
		}
		if stays(n) {
			a.Kept++
			kept += n.Price
		}
	}
	for _, p := range fresh.Pending {
		a.Pods += len(p.Pods)
	}
	for _, p := range s.Pending {
		for _, pod := range p.Pods {
			if pod.From == "" {
				a.Waiting++
			}
		}
	}
	plan := place(fresh)
	for i := range plan.Verdicts {
		a.Fresh.Pending += len(plan.Verdicts[i].Pods)
	}
	a.Parts = parts.parts()
	a.Cost, a.KeptCost = cost.Dollars(), kept.Dollars()
	a.Fresh.Nodes, a.Fresh.Cost = a.Kept+len(plan.Launches), (kept + plan.Cost).Dollars()
	a.Bound = (kept + plan.Bound).Dollars()
	return a
}

// emptied returns the situation without the nodes that may be removed, their
// pods pending, and which nodes stay.
func emptied(s *model.Snapshot) (fresh *model.Snapshot, stays func(*model.Node) bool) {
	stays = func(n *model.Node) bool {
		pool := poolOf(s, n.Pool)
		return !n.Deleting && (pool == nil || pool.Static != nil || n.Disruption.Blocked != "" || n.Disruption.Held != "")
	}
	out := *s
	out.Nodes, out.Pending, out.Intents, out.Pools = nil, nil, nil, slices.Clone(s.Pools)
	waiting := crowd{at: map[string]int{}}
	waiting.add(s.Pending)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" || stays(n) {
			out.Nodes = append(out.Nodes, *n)
			continue
		}
		waiting.add(n.Movable)
		if pool := poolOf(&out, n.Pool); pool != nil && !n.Deleting {
			pool.Usage = pool.Usage.Minus(n.Capacity)
		}
	}
	out.Pending = waiting.pending
	return &out, stays
}

// crowd is pods that wait, an entry for those that may be exchanged.
type crowd struct {
	pending []model.Pending
	at      map[string]int // by what makes them alike
}

// add adds pods, as if no plan had been made for any of them.
func (c *crowd) add(all []model.Pending) {
	for _, p := range all {
		key := fmt.Sprintf("%s\n%+v", p.Shape.Key, p.Peer)
		at, known := c.at[key]
		if !known {
			at = len(c.pending)
			c.at[key] = at
			c.pending = append(c.pending, model.Pending{Shape: p.Shape, Peer: p.Peer})
		}
		for _, pod := range p.Pods {
			pod.Planned = ""
			c.pending[at].Pods = append(c.pending[at].Pods, pod)
		}
	}
}

// Text writes the answer for a terminal.
func (a ClusterAnswer) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of NodePools\n", counted(a.Nodes, "node"))
	row(&b, "cost", monthly(a.Cost))
	row(&b, "of that", partsText(a.Parts))
	if a.Unpriced > 0 {
		row(&b, "unpriced", counted(a.Unpriced, "node")+", not counted")
	}
	if a.Kept > 0 {
		row(&b, "kept", fmt.Sprintf("%s for %s, counted in all totals: they cannot be removed now", counted(a.Kept, "node"), monthly(a.KeptCost)))
	}
	fmt.Fprintf(&b, "\nfrom scratch, for the %s that may move or wait\n", counted(a.Pods, "pod"))
	row(&b, "cost", fmt.Sprintf("%s, %s", monthly(a.Fresh.Cost), counted(a.Fresh.Nodes, "node")))
	row(&b, "at least", monthly(a.Bound)+": no plan costs less")
	if a.Fresh.Pending > 0 {
		row(&b, "unplaced", counted(a.Fresh.Pending, "pod")+", not counted from scratch")
	}
	if c := a.comparison(); c != "" {
		fmt.Fprintf(&b, "\n%s\n", c)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// comparison returns how far Cost is above Bound, or why the two can't be
// compared. It returns "" if Bound is 0.
func (a ClusterAnswer) comparison() string {
	switch {
	case a.Bound <= 0:
		return ""
	case a.Nodes == 0:
		return "there are no nodes yet whose cost could be compared with the least possible"
	case a.Cost >= a.Bound:
		return fmt.Sprintf("the nodes cost %.1f%% more than the least possible", 100*(a.Cost/a.Bound-1))
	case a.Unpriced > 0:
		return "the price of " + counted(a.Unpriced, "node") + " is unknown, so the cost can't be compared with the least possible"
	case a.Waiting > 0:
		return "the nodes cost less than the least possible because they do not run all pods: " + counted(a.Waiting, "pod") + " waiting for a node"
	}
	return "the nodes cost less than the least possible at current prices and offerings"
}
