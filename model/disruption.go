package model

// Reason is why a node is taken away voluntarily.
type Reason string

// The reasons budgets can name.
const (
	Empty         Reason = "Empty"
	Drifted       Reason = "Drifted"
	Underutilized Reason = "Underutilized"
)

// Disruption is what a NodePool's disruption block allows at the Snapshot's
// time.
type Disruption struct {
	// Allowed is how many nodes of the pool may be disrupted for a reason
	// now: its budgets' value less the nodes that consume them already.
	Allowed map[Reason]int
}

// NodeDisruption is what speaks for and against taking a node away.
type NodeDisruption struct {
	Empty          bool    // no pod on it needs a place elsewhere
	Consolidatable bool    // quiet for the pool's consolidateAfter
	Blocked        string  // why it may not be disrupted now; "" = it may
	Cost           float64 // 1 + sum of the eviction costs of its pods
}

// Removal takes one node away.
type Removal struct {
	Node, Claim string
	Reason      Reason
}

// Stay says why a node that could be removed for Reason is kept.
type Stay struct {
	Node, Claim string
	Reason      Reason
	Why         string
	Buffer      string // namespace/name of the CapacityBuffer whose room it is, and nothing else; "" = none
}
