// SPDX-License-Identifier: Apache-2.0

package model

import "time"

// Policy is how a decision is made: settings that are not facts of the cluster.
type Policy struct {
	// MaxTypes is how many instance types a Launch lists at most, cheapest
	// first; less than 1 counts as 1. More would not fit a launch request.
	MaxTypes int
	// Work bounds the search for a better plan and a tighter bound, in
	// elementary steps of about 1 to 3 ns each. The search for nodes to remove
	// may take five thirds of it. It is a count and not a duration, so that
	// plans do not depend on the machine.
	Work int

	// PreferencePremium is how much more a plan that honors preferences may
	// cost than one that ignores them, as a fraction of the latter.
	PreferencePremium float64
	// PreferenceAllowance is how much more per hour a plan may always cost for
	// pods that prefer to be spread. Without it, PreferencePremium would allow
	// nothing in small clusters, whose cost is a few cents.
	PreferenceAllowance Price
	// IgnorePreferences plans as if pods had none.
	IgnorePreferences bool
	// MaxSpotPoolShare is the largest share of a workload's pods that is to run in one
	// spot pool, which is an instance type in a zone. New nodes are spread over spot
	// pools as long as a plan costs at most PreferenceAllowance more for it. 0 and 1
	// mean that any share may.
	MaxSpotPoolShare float64
	// NodeCountPremium is how much more the new nodes of a plan may cost than the
	// cheapest found, as a fraction of that, if they are fewer.
	NodeCountPremium float64
	// RelaxMinValues lets a launch span fewer values than its pool demands
	// where it must. Otherwise the pods stay pending.
	RelaxMinValues bool
	// ReservedCapacity counts on reservations: launches that take from one
	// name it, and no more of them are planned than it has left. Without it a
	// reserved offering is like any other.
	ReservedCapacity bool

	// Hysteresis is the least a replacement has to save, as a fraction of what
	// the nodes it replaces cost.
	Hysteresis float64
	// Payback is the time within which a command for Underutilized must save
	// the cost of what it disrupts; 0 = any saving is enough.
	Payback time.Duration
	// RebalancePremium is how much more it may cost to replace a spot node that the
	// provider advises to leave, as a fraction of what it costs, and at most
	// Hysteresis. Nil means that such nodes are not replaced for this reason.
	RebalancePremium *float64
	// SpotToSpot lets spot nodes be replaced by cheaper spot nodes.
	SpotToSpot bool
	// TerminateFirstDrift and TerminateFirstRepair let drifted and unhealthy nodes
	// be terminated before they are replaced, where no replacement can be launched.
	TerminateFirstDrift, TerminateFirstRepair bool
}

// DefaultPolicy is what the controller runs with.
func DefaultPolicy() Policy {
	return Policy{MaxTypes: 600, Work: 1_000_000_000, PreferencePremium: 0.05, PreferenceAllowance: Dollar / 20, MaxSpotPoolShare: 0.5, NodeCountPremium: 0.01, ReservedCapacity: true, Hysteresis: 0.1, Payback: 12 * time.Hour}
}

// Plan is the complete result of a decision.
type Plan struct {
	Placements []Placement // pods onto capacity that exists or is on its way
	Launches   []Launch
	Verdicts   []Verdict // pods that stay pending
	Commands   []Command
	Stays      []Stay
	Crowds     []Crowd  // in spot pools, more than the policy wants
	Untried    []string // PodGroups that may fit: Policy.Work ended before all possibilities were tried

	// Exhausted reports that Policy.Work ended before the search was complete:
	// a cheaper plan, a tighter bound or more nodes to remove may exist.
	Exhausted bool

	Cost  Price // of all Launches at their planned offerings, per hour
	Bound Price // no feasible plan for the placed pods that keeps earlier plans launches for less
}

// Crowd reports a workload, or the vCPUs of a pool, whose share in one spot
// pool exceeds Policy.MaxSpotPoolShare or Aims.MaxSpotPoolShare.
type Crowd struct {
	Workload string  // namespace/name; "" = it is the vCPUs of Pool
	Pool     string  // of the nodes
	In       string  // instance type and zone of the spot pool
	Share    float64 // that is there
	Most     float64 // that is to be there at most

	// Cost is how much more per hour it would cost to spread the crowd as far as
	// possible. Nil means that no way was found.
	Cost *Price
}

// Gap returns how far Cost may be from the optimum, as a fraction of Bound:
// 0 if Cost is the bound, infinite if the plan costs something and no bound is
// known.
func (p *Plan) Gap() float64 {
	if p.Cost == p.Bound {
		return 0
	}
	return float64(p.Cost-p.Bound) / float64(max(p.Bound, 0))
}

// Placement puts a pod on a node of the Snapshot.
type Placement struct {
	Pod  Pod
	Node string
}

// Launch asks for one new NodeClaim.
type Launch struct {
	Pool          string
	Requirements  Requirements // pool and pods; without instance types and capacity types
	Types         []string     // every type that fits, cheapest first, at most Policy.MaxTypes
	CapacityTypes []string     // those available among Types, sorted
	Requests      Resources    // of its pods and its daemons
	Pods          []Pod

	Drivers        []string  // whose devices its pods claim, sorted
	ReservationIDs []string  // reservations it counts on, sorted; with any, CapacityTypes is reserved alone
	MinValues      []Relaxed // demands on the number of values that were relaxed, by key

	// The offering the plan counts on: the cheapest of Types.
	Type, Zone, CapacityType string
	Price                    Price // with Pool.Extras
}

// Relaxed says that a launch spans fewer values of a label than its pool
// demands.
type Relaxed struct {
	Key   string
	Spans int
}

// Restore translates the plan back to the resources and shapes of its Snapshot, after
// planning with additional resources from position base on, and with shapes that
// request some of them. plain maps such shapes to those of the Snapshot.
func (p *Plan) Restore(base int, plain map[*Shape]*Shape) {
	restoreRequests(p.Launches, base)
	for i := range p.Commands {
		restoreRequests(p.Commands[i].Launches, base)
	}
	for i := range p.Verdicts {
		if s := plain[p.Verdicts[i].Shape]; s != nil {
			p.Verdicts[i].Shape = s
		}
	}
}

func restoreRequests(launches []Launch, base int) {
	for i := range launches {
		if l := &launches[i]; len(l.Requests) > base {
			l.Requests = l.Requests[:base:base]
		}
	}
}
