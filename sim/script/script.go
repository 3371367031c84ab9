// SPDX-License-Identifier: Apache-2.0

package script

import "time"

// Script is one run. The zero value of a field is what holds when the text does
// not mention it, unless its comment says otherwise.
type Script struct {
	Seed  uint64
	Run   time.Duration // how long events and faults go on
	Rest  time.Duration // how long there is peace after that
	Gates []string      // feature gates that are on, besides those on by default

	Types  []Type
	Pools  []Pool
	Pods   []Workload
	Events []Event
	Faults []Fault
}

// Type is a type of instance the cloud offers, in every one of its zones.
type Type struct {
	Name  string
	CPU   string // quantity
	Mem   string // quantity
	Price float64
	Spot  float64 // dollars per hour; 0 = not offered as spot
	Zones []string
}

// Pool is a NodePool.
type Pool struct {
	Name     string
	Limits   Limits
	Budgets  []string      // see field "budgets"; nil = one of 10 %
	Policy   string        // consolidation policy; "" = WhenEmptyOrUnderutilized
	After    time.Duration // consolidateAfter; Never = no consolidation
	Expire   time.Duration // 0 = Never
	Grace    time.Duration // terminationGracePeriod; 0 = none
	Weight   int
	Types    []string // nil = all
	Zones    []string // nil = all
	Capacity []string // capacity types; nil = all
	Label    string   // value of VersionLabel in the template; changing it drifts nodes
	Taint    string   // key of a NoSchedule taint
	Static   int      // replicas; 0 = dynamic
}

// Never as Pool.After switches consolidation off.
const Never = time.Duration(-1)

// VersionLabel is the label in the template of a pool that Pool.Label sets.
const VersionLabel = "example.com/version"

// Limits are those of a pool; 0 and "" mean none.
type Limits struct {
	Nodes    int
	CPU, Mem string // quantities
}

// Workload is a Deployment, or a DaemonSet, with a PodDisruptionBudget if PDB
// is set, a CapacityBuffer if Buffer is, and a PodGroup if Group is.
type Workload struct {
	Name      string
	Count     int
	CPU, Mem  string // requests, quantities
	Daemon    bool   // one pod on every node instead of Count
	Apart     string // "node" or "zone": never two in one; "" = no matter
	Spread    string // "node" or "zone": evenly, skew 1; "" = no matter
	Pool      string // node selector; "" = any
	Zone      string // node selector; "" = any
	Capacity  string // node selector; "" = any
	Tolerates string // key of a taint
	PDB       string // maxUnavailable, a number or a percentage; "" = no budget
	Protect   string // value of do-not-disrupt: true or a duration; "" = none
	Surge     bool   // asks for its replacement to start before it is evicted
	Buffer    int    // pods for which a CapacityBuffer keeps room besides; 0 = none
	Group     int    // minCount of a PodGroup that its pods are of; 0 = none
	Whole     bool   // pods of the PodGroup are disrupted all at once or not at all
	Grace     time.Duration
	Life      time.Duration // mean time after which a pod is replaced; 0 = as long as it can
}

// When is a moment: a time since the start, or a step if Step is not 0.
type When struct {
	After time.Duration
	Step  int
}

// What an Event does.
const (
	Scale       = "scale"
	DeletePod   = "delete pod"
	DeleteNode  = "delete node"
	DeleteClaim = "delete claim"
	DeletePool  = "delete pool"
	Edit        = "edit"
	Price       = "price"
	Interrupt   = "interrupt"
	Sicken      = "sicken"
	Poison      = "poison"
	Unready     = "unready"
	Unbound     = "unbound"
	Unstarted   = "unstarted"
)

// Lasts reports whether the event is under way that long after the start, if it
// does that to the pool or workload of the name.
func (e *Event) Lasts(do, name string, since time.Duration) bool {
	return e.Do == do && e.Name == name && since >= e.At.After && since < e.At.After+e.For
}

// Event is something users or the cloud do.
type Event struct {
	At     When
	Do     string
	Name   string        // of the workload, pool or type it is about
	Count  int           // Scale: new size; deletions, Interrupt and Sicken: how many
	For    time.Duration // of Sicken, Poison, Unready, Unbound and Unstarted
	Factor float64
	Zone   string   // of Price; "" = all
	Sold   string   // of Price: capacity type; "" = all
	Edit   []string // key=value
}

// Kind is a kind of fault.
type Kind string

// The kinds of faults. Those of the API hit the calls of the system under test
// only; so do those of the cloud.
const (
	Conflict Kind = "conflict" // the write is rejected: the object has changed
	Throttle Kind = "throttle" // the call is rejected: too many requests
	Timeout  Kind = "timeout"  // the call fails and was not carried out
	Lost     Kind = "lost"     // the write is carried out, the answer is lost
	Gap      Kind = "gap"      // watches break; what was missed is listed again
	Stale    Kind = "stale"    // the cache lags behind by Lag

	NoCapacity    Kind = "no-capacity"    // a launch finds no capacity
	CloudThrottle Kind = "cloud-throttle" // the call is rejected: too many requests
	CloudLost     Kind = "cloud-lost"     // the call is carried out, the answer is lost
	CloudLag      Kind = "cloud-lag"      // new instances do not show in Get and List for Lag
	PartialList   Kind = "partial-list"   // List fails or leaves instances out: Keep percent remain
	FewTypes      Kind = "few-types"      // InstanceTypes leaves types out: Keep percent remain
	NoJoin        Kind = "no-join"        // the launched instance never becomes a node

	Crash      Kind = "crash"       // the process dies before the call and starts again
	CrashAfter Kind = "crash-after" // the same once the call was carried out
	Leader     Kind = "leader"      // another replica takes over before the call
	Freeze     Kind = "freeze"      // the process stands still for Lag; another takes over when its lease runs out
)

// Fault is something that goes wrong with some calls: with those it selects,
// within its window, one in Every, at most Times.
type Fault struct {
	Kind     Kind
	From     time.Duration // since the start
	For      time.Duration // 0 = until the end of the run
	Every    int           // one in so many calls, drawn; less than 2 = each
	Times    int           // 0 = no bound
	At       int           // hits the N-th call it selects and no other; 0 = by Every
	Call     string        // verb of the API or method of the provider; "" = any
	Object   string        // kind of object, such as NodeClaim; "" = any
	Type     string        // of NoCapacity and NoJoin; "" = any
	Zone     string
	Capacity string
	Lag      time.Duration // of Stale, CloudLag and Freeze
	Keep     int           // of PartialList and FewTypes: percent
}
