// SPDX-License-Identifier: Apache-2.0

package cover

import "karpenter/solve/fit"

// Candidate is a kind of node that can be launched in any number.
type Candidate struct {
	Price  float64 // ≥ 0
	Room   []int64 // by resource
	Serves fit.Bits
	Pool   int
	Uses   []Use
}

// Use is what a node takes of a limit.
type Use struct {
	Limit  int // position in Problem.Limits
	Amount int64
}

// Item is a number of pods that may be exchanged for each other.
type Item struct {
	Request []int64 // by resource
	Count   int
	Likely  float64  // of Count, how many pods values are found for; 0 = all
	Class   int      // Candidate.Serves says which classes a candidate can take
	Most    int      // pods of the item that one node takes; 0 = no bound
	Groups  []int    // in which the item counts
	Apart   fit.Bits // items whose pods must not share a node with this one's; nil = none
}

// Problem is what is to be covered, and by what.
type Problem struct {
	Candidates []Candidate // cheapest first
	Items      []Item
	Groups     []int   // by group: how many pods of its items one node takes together
	Limits     []int64 // what nodes may still use of each

	// Agree reports whether pods of the items may share a node of the candidate
	// as far as the labels of its pool go; nil = they always may.
	Agree func(candidate int, items []int) bool

	// Supplied returns how many of so many more pods of an item a node of the candidate
	// that takes these has devices for; nil = for all.
	Supplied func(candidate int, take []Portion, item, pods int) int

	Epsilon float64 // part of every price that is charged but not paid, to prefer fewer nodes
}

// likely is the part of the pods of the items that values are found for.
func (p *Problem) likely(items []int) float64 {
	sum, all := 0.0, 0.0
	for _, i := range items {
		n := float64(p.Items[i].Count)
		if all += n; p.Items[i].Likely > 0 {
			n = p.Items[i].Likely
		}
		sum += n
	}
	return sum / max(all, 1)
}

// Node is a number of equal nodes to launch.
type Node struct {
	Candidate int
	Count     int
	Take      []Portion // on each
}

// Portion is how many pods of an item one node takes.
type Portion struct{ Item, Pods int }

// Result is a cover.
type Result struct {
	Nodes     []Node
	Left      []int     // by item: pods that no node was found for
	Values    []float64 // by item: dual value of one pod, of those that prove most; 0 where no candidate serves it
	Master    []float64 // by item: its dual value in the master problem, as far as that is known: more than can be proven
	Columns   Columns   // with which the master problem was solved
	Start     *Start    // of the master problem, if the problem has limits
	Abandoned bool      // the items are worth more than Options.Most, so no nodes were chosen
}

// Options says how to solve a Problem.
type Options struct {
	Most   float64   // give up when the items are worth more than this together
	Rough  bool      // a cover that is not quite as cheap will do
	Prove  bool      // the values are for a proof, and worth some work
	Known  Columns   // of a problem that differs in nothing but prices: a start that saves work
	Values []float64 // of items, for a problem that differs in nothing but lower prices
	Start  *Start    // of a problem that differs in nothing but limits: it saves work
	Rows   int       // the master problem has at most about so many rows; 0 = a number that suits the items
}

// Columns are patterns for the lines of a master problem.
type Columns []pattern

// pattern is how many pods of which lines share one node of a candidate.
type pattern struct {
	candidate int // -1 = none covers the line
	take      []Portion
}

// Start is the values of the lines of a master problem before any pattern is known.
type Start struct {
	among       []int       // the candidates on which some pod costs close to the least
	parts       [][]float64 // of the price of each of them
	floor, best []float64   // by line
	shadow      []float64   // by candidate and dimension
}

// Count returns how many nodes the cover has.
func (r *Result) Count() int {
	n := 0
	for i := range r.Nodes {
		n += r.Nodes[i].Count
	}
	return n
}

// LeavesMoreThan reports whether more pods of some item find no node than in the
// other cover.
func (r *Result) LeavesMoreThan(o *Result) bool {
	for i := range r.Left {
		if r.Left[i] > o.Left[i] {
			return true
		}
	}
	return false
}
