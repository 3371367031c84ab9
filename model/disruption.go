// SPDX-License-Identifier: Apache-2.0

package model

import "time"

// Reason is why nodes are taken away voluntarily.
type Reason string

// The reasons that budgets can name.
const (
	Empty         Reason = "Empty"
	Drifted       Reason = "Drifted"
	Underutilized Reason = "Underutilized"
	Unhealthy     Reason = "Unhealthy"
)

// ConsolidationPolicy says for which savings a NodePool gives up nodes that are
// not empty.
type ConsolidationPolicy string

// The policies. None set is WhenEmptyOrUnderutilized.
const (
	WhenEmpty                ConsolidationPolicy = "WhenEmpty"
	WhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	Balanced                 ConsolidationPolicy = "Balanced"
)

// Disruption is what a NodePool's disruption block says at the Snapshot's time.
type Disruption struct {
	// Allowed is how many nodes of the pool may be disrupted for a reason
	// now: its budgets' value less the nodes that consume them already.
	Allowed map[Reason]int
	// Halted says why machines of the pool replace no node that is drifted, for
	// which Allowed is less than the budgets, or underutilized: they do not become
	// nodes. "" = they do. Probing lets one be launched all the same, while no
	// other is on its way.
	Halted  string
	Probing bool
	Policy  ConsolidationPolicy
	Never   bool // consolidateAfter is Never: no node is taken away as empty or underutilized
	// Budgets are taken of Counted nodes, of which Consuming are going away or not
	// ready. Allowed follows from them; a decision about other budgets does, too.
	Counted, Consuming int
}

// BlockedByNomination is NodeDisruption.Blocked of a node that pending pods are
// expected on.
const BlockedByNomination = "the node is nominated for a pending pod"

// NodeDisruption is what speaks for and against taking a node away.
type NodeDisruption struct {
	Empty          bool      // no pod on it needs a place elsewhere
	Consolidatable bool      // quiet for the pool's consolidateAfter
	Settling       bool      // not quiet that long: it takes no pods of nodes that are consolidated
	Fresh          bool      // pods on it were moved not long ago: they are not moved yet for what that saves
	Returned       bool      // it was launched for a PodGroup that could not start: once Empty, it goes whatever budgets and consolidateAfter say, initialized or not
	Drifted        time.Time // since when it is not what its NodePool asks for; zero = it is
	Advised        time.Time // since when the provider advises to leave it, as its spot pool is at risk; zero = it does not
	Quiet          time.Time // when a pod last came or went, from which Consolidatable and Settling follow; zero = not known

	// Since is since when it has been there. PodsEnd is by when its pods have usually
	// ended, without others in their place. Zero = not known.
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

// Intent is a command that waits to be confirmed.
type Intent struct {
	Reason Reason
	Claims []string // of the nodes it takes away, sorted
}

// Command takes nodes away together, once everything it launches is ready.
type Command struct {
	Reason   Reason
	Nodes    []Target    // in the order of the Snapshot
	Launches []Launch    // what replaces them
	Moves    []Placement // their pods onto nodes there are
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

// Score is what a command saves of a pool's cost in proportion to what it
// disrupts of it.
type Score struct {
	Pool                string
	Value               float64
	Savings, Disruption float64 // as fractions of the pool's totals
}

// Stay says why a node that might be taken away for Reason is kept.
type Stay struct {
	Node, Claim string
	Reason      Reason
	Cause       Cause
	Why         string
	Buffer      string // namespace/name of the CapacityBuffer whose room it is, and nothing else; "" = none
	Score       Score  // too low for its pool, whose policy is Balanced; the zero Score = that is not why
}

// Cause is the kind of thing that keeps a node.
type Cause string

// The causes.
const (
	ByNode   Cause = "blocked"   // the node, its pods or their PodDisruptionBudgets
	ByBudget Cause = "budget"    // the budgets of its NodePool, or replacements that are halted
	ByUse    Cause = "use"       // pods that are pending, or room kept for a buffer
	ByPolicy Cause = "policy"    // what its NodePool wants
	ByPlace  Cause = "no place"  // its pods have no other place
	ByPrice  Cause = "no saving" // no other place is cheaper, or not by enough

	Unexamined Cause = "not examined" // the work of a decision is bounded, and others came first
)
