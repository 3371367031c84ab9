// SPDX-License-Identifier: Apache-2.0

// Package cover chooses new nodes: given counted items and the candidates that
// can hold them, it looks for the cheapest multiset of nodes that covers all
// items, and proves how cheap any could be.
//
// # Method
//
// The dual of the program in which nodes are filled in fractions gives the first
// values (ascent.go), and a greedy cover the first patterns (greedy.go). Column
// generation (Gilmore and Gomory 1961) goes on from there. A pattern is how many of which items
// share one node of a candidate. The restricted master problem is the covering linear
// program over the patterns known so far; its dual values say what one pod of each
// item is worth. Pricing looks, candidate by candidate, for a pattern of negative
// reduced cost: one that is worth more than its node costs. The fractional solution is
// rounded by diving: launch the whole part and the largest fractions, solve again for the
// rest. If the greedy cover itself costs less, it is the plan. Small plans are improved by tearing a few nodes down and covering their pods
// again.
//
// # Vocabulary
//
//   - item: pods that may be exchanged for each other.
//   - line: an item, or several that are equal, or, where there are too many, similar
//     ones, which then request what they do on average; nodes are always filled with
//     the items themselves. Patterns are of lines.
//   - row: lines under equal rules whose values the master problem keeps in fixed
//     ratios, because there are too many to find the value of each.
//   - group: items of which one node takes only so many pods together.
//   - shadow prices: of the resources of one candidate, at which its best
//     pattern cannot be worth more than the price of its room.
//
// # Invariants
//
//  1. Every node of a Result respects room, per-node bounds, groups, pairs kept
//     apart, Agree and limits, whatever the master problem left out.
//  2. The work is bounded: a cover that leaves no item without need exists after
//     a number of steps near linear in items times candidates, and the budget
//     bounds everything beyond it.
package cover
