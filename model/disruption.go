// SPDX-License-Identifier: Apache-2.0

package model

import "time"

// Reason is why nodes are disrupted voluntarily.
type Reason string

// The reasons that budgets can name.
const (
	Empty         Reason = "Empty"
	Drifted       Reason = "Drifted"
	Underutilized Reason = "Underutilized"
	Unhealthy     Reason = "Unhealthy"
)

// ConsolidationPolicy says which savings justify the disruption of a NodePool's
// nodes that are not empty.
type ConsolidationPolicy string

// The policies. None set is WhenEmptyOrUnderutilized.
const (
	WhenEmpty                ConsolidationPolicy = "WhenEmpty"
	WhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	Balanced                 ConsolidationPolicy = "Balanced"
)

// Disruption is a NodePool's spec.disruption, evaluated at the Snapshot's time.
type Disruption struct {
	// Allowed is how many nodes of the pool may be disrupted now, by reason:
	// the value of its budgets less the nodes that use them already.
	Allowed map[Reason]int
	// Halted says why no drifted or underutilized node is replaced by an
	// instance of the pool: such instances do not become nodes. Allowed is
	// reduced then. "" = not halted. With Probing, one replacement is launched
	// nevertheless, while no other is on its way.
	Halted  string
	Probing bool
	Policy  ConsolidationPolicy
	Never   bool // consolidateAfter is Never: no node is removed as empty or underutilized
	// Budgets are percentages of Counted nodes. Consuming of these are being
	// removed or not ready. Allowed follows from both numbers, and can be
	// computed from them for other budgets.
	Counted, Consuming int
}

// BlockedByNomination is NodeDisruption.Blocked of a node that pending pods are
// expected on.
const BlockedByNomination = "the node is nominated for a pending pod"

// NodeDisruption has the facts for and against the disruption of a node.
type NodeDisruption struct {
	Empty          bool      // no pod on it needs to be rescheduled
	Consolidatable bool      // quiet for the pool's consolidateAfter
	Settling       bool      // not quiet that long: it receives no pods of nodes that are consolidated
	Fresh          bool      // pods on it were moved recently, so they are not moved again for a saving
	Returned       bool      // it was launched for a PodGroup that could not start: once Empty, it is removed without regard to budgets, consolidateAfter and initialization
	Drifted        time.Time // since when it does not match its NodePool; zero = it does
	Advised        time.Time // since when the provider recommends replacing it, because its spot pool is at risk; zero = not
	Quiet          time.Time // when a pod last came or went, from which Consolidatable and Settling follow; zero = not known

	// Since is when it was created. PodsEnd is the time at which its pods have
	// usually run to completion. Zero = not known.
	Since, PodsEnd time.Time

	// Together are the PodGroups whose pods on it are disrupted only together with all other
	// pods of the group, sorted.
	Together []string

	Blocked  string // why it may not be disrupted now for any reason; "" = it may
	Held     string // why its pods forbid it now; "" = they do not
	Deadline bool   // it has a terminationGracePeriod, so Held is no obstacle to drift

	Cost float64 // 1 + sum of the eviction costs of its pods
	// Startup is the sum of how long its pods took to start, each times its
	// eviction cost.
	Startup time.Duration

	// Unhealthy is the node condition for which a repair policy wants the node
	// replaced, or rebooted if Reboot, and nothing about the node forbids it;
	// "" = none. Nodes with a higher Severity go first.
	Unhealthy string
	Reboot    bool
	Severity  float64
}

// Intent is a command that waits for its confirmation.
type Intent struct {
	Reason Reason
	Claims []string // of the nodes it removes, sorted
}

// Command removes nodes together, once everything it launches is ready.
type Command struct {
	Reason   Reason
	Nodes    []Target    // in the order of the Snapshot
	Launches []Launch    // what replaces them
	Moves    []Placement // their pods to existing nodes
	Cost     Price       // of Nodes, per hour
	Savings  Price       // Cost less what Launches cost at the offerings planned; may be negative for drift
	Scores   []Score     // by pool, of those whose policy is Balanced

	Reboot bool // the nodes are rebooted and stay
	// TerminateFirst says why nothing is launched before the nodes are
	// terminated; "" = the Launches come first.
	TerminateFirst TerminateFirst
}

// TerminateFirst is why no replacement can be launched before a node is
// terminated.
type TerminateFirst string

// Why a node is terminated before it is replaced.
const (
	NoReservedCapacity TerminateFirst = "no-reserved-capacity" // its capacity reservation is full
	StaticAtLimit      TerminateFirst = "static-at-limit"      // the limit of nodes of its static pool is reached
)

// Target names a node with its NodeClaim.
type Target struct{ Node, Claim string }

// Score relates what a command saves of a pool's cost to what it disrupts of
// the pool.
type Score struct {
	Pool                string
	Value               float64
	Savings, Disruption float64 // as fractions of the pool's totals
}

// Stay says why a node that could be disrupted for Reason is kept.
type Stay struct {
	Node, Claim string
	Reason      Reason
	Cause       Cause
	Why         string
	Buffer      string // namespace/name of the CapacityBuffer that alone uses the node; "" = none
	Score       Score  // too low for its pool, whose policy is Balanced; the zero Score = that is not why
}

// Cause is the kind of reason for which a node is kept.
type Cause string

// The causes.
const (
	ByNode   Cause = "blocked"   // the node, its pods or their PodDisruptionBudgets
	ByBudget Cause = "budget"    // the budgets of its NodePool, or replacements that are halted
	ByUse    Cause = "use"       // pods that are pending, or capacity kept for a buffer
	ByPolicy Cause = "policy"    // the settings of its NodePool
	ByPlace  Cause = "no place"  // its pods have no other place
	ByPrice  Cause = "no saving" // no other place is cheaper, or not by enough

	Unexamined Cause = "not examined" // the work of a decision is bounded, and others came first
)
