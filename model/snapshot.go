// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"time"
)

// Snapshot is everything a decision may depend on. It is immutable: the parts
// of it may be shared between Snapshots and between goroutines.
type Snapshot struct {
	Now       time.Time
	Resources []string // names of the axis all Resources below are vectors on
	WellKnown LabelSet // labels a pod may ask for although no pool defines them

	Pools   []Pool   // all managed NodePools, in any order; Pool.Weight decides which one is tried first
	Nodes   []Node   // sorted by name
	Daemons []Daemon // one per DaemonSet
	Pending []Pending
	Groups  []PodGroup // groups of pods in Pending that must start together, in any order
	Intents []Intent   // commands of earlier plans that are being confirmed, oldest first

	Devices   []DevicePool     // published devices that are of no single node, by driver and name
	Selectors []DeviceSelector // of all claims that pods of it need, by text; nil = none needs any
}

// Pending is the pods of one shape that need a place and that selectors do not
// tell apart.
type Pending struct {
	Shape *Shape
	Peer  Peer
	Pods  []Pod
}

// Pod names one pod.
type Pod struct {
	Namespace, Name, UID string
	Created              time.Time
	Planned              string // node or claim an earlier plan chose for it; "" = none
	From                 string // node it runs on now when that node is going away; "" = unbound
	Buffer               string // namespace/name of the CapacityBuffer it stands in for, or "ProvisioningRequest namespace/name"; "" = a pod that exists
	Claims               string // PersistentVolumeClaims that its shape's VolumeTerms come from, for people: "shop/data, shop/logs"
	Group                string // Name of the PodGroup that it is of; "" = none. A pod is an ordinary one if Groups lacks the name
	Workload             string // name of what controls it in its namespace, such as the Deployment: its replicas have the same; "" = nothing does
}

// PodGroup is pods that start together or not at all.
type PodGroup struct {
	Name     string // namespace/name
	MinCount int    // of its pods must run at the same time, or none is started
	Running  int    // of its pods are bound and not ending, those included that are pending because their node is going away
	Refused  string // why none of its pods is planned: "it does not exist"; "" = nothing prevents it
	Waits    string // why its pods are planned on initialized nodes only; "" = they may go on any node

	Avoid []Place // where nodes launched for it have not started: others are launched if possible

	TopologyKey string   // label of which the nodes of all its pods must have one value; "" = they may be anywhere
	On          []string // with TopologyKey, the nodes that its running pods are on, sorted
}

// Place is an instance type in a zone.
type Place struct{ Type, Zone string }

// Key returns namespace/name.
func (p Pod) Key() string { return p.Namespace + "/" + p.Name }

// Shape is the scheduling-relevant part of a pod spec. Two pods whose shapes
// have equal Keys, and which no selector tells apart, may be exchanged in any
// plan.
type Shape struct {
	Key         string    // Identity, or any other text that only equal shapes share
	Requests    Resources // effective requests, with Pods: 1
	Selector    Requirements
	Terms       []Requirements // required node affinity: one of them must hold; none = no demand
	Preferences []Preference   // heaviest first
	Tolerations []Toleration
	Priority    int32

	Spread    []Spread
	PodTerms  []PodTerm
	HostPorts []HostPort

	Volumes     []Volumes      // by driver
	VolumeTerms []Requirements // where its volumes can be used: one of them must hold; none = anywhere

	Claims      []DeviceClaim  // that devices must be found for, in the pod's order
	DeviceTerms []Requirements // where its allocated claims can be used: one of them must hold; none = anywhere
	GroupTerms  []Requirements // where its PodGroup is: one of them must hold; none = anywhere

	// Refused lists parts of the pod spec that no plan supports, in words that
	// users know ("resourceClaims (not supported yet)"). Such a pod is never
	// placed; its Verdict says why.
	Refused []string
}

// Alternatives returns the conjunctions of which a node must satisfy one: the
// selector with each affinity term, each volume term and each device term in turn.
func (s *Shape) Alternatives() []Requirements {
	return product(product(product(product([]Requirements{s.Selector}, s.Terms), s.VolumeTerms), s.DeviceTerms), s.GroupTerms)
}

// Suits reports whether labels satisfy one of the alternatives. It does not list them:
// what labels are sure to satisfy one by one, they satisfy together.
func (s *Shape) Suits(labels Requirements) bool {
	meet := func(r Requirements) bool { _, ok := labels.Satisfies(r); return ok }
	some := func(terms []Requirements) bool { return len(terms) == 0 || slices.ContainsFunc(terms, meet) }
	return meet(s.Selector) && some(s.GroupTerms) && some(s.DeviceTerms) && some(s.VolumeTerms) && some(s.Terms) // the longest at last
}

// Chosen is like Alternatives, without the terms of volumes and devices.
func (s *Shape) Chosen() []Requirements { return product([]Requirements{s.Selector}, s.Terms) }

// product returns every way to take one of each; no terms demand nothing.
func product(bases, terms []Requirements) []Requirements {
	if len(terms) == 0 {
		return bases
	}
	out := make([]Requirements, 0, len(bases)*len(terms))
	for _, b := range bases {
		for _, t := range terms {
			out = append(out, b.And(t...))
		}
	}
	return out
}

// Daemon is the pod a DaemonSet runs on every node that suits it.
type Daemon struct {
	Name  string // namespace/name of the DaemonSet
	Shape *Shape
}

// Pool is a NodePool.
type Pool struct {
	Name         string
	Weight       int32        // higher is asked first; ties by name, descending
	Requirements Requirements // spec.requirements and template labels, intersected
	Taints       []Taint
	Limits       []Limit
	Usage        Resources // capacity of its nodes that are not being deleted, with Nodes; those that are to be count
	Types        []*InstanceType

	// Extras are what each of its nodes costs besides the instance. The prices of
	// the offerings of Types and of its nodes include them.
	Extras []Extra

	Aims Aims

	// Unavailable says why the pool launches no nodes for pods: "static", "not
	// ready", "being deleted"; "" = it launches nodes.
	Unavailable string
	Static      *Static // nil = the pool follows its pods

	Disruption Disruption

	// Template is the hash of the template for new nodes, or "" if it is not
	// known. Decisions do not use it; what-if plans with other NodePools do.
	Template string
}

// Aims are settings of plans that a pool overrides.
type Aims struct {
	// PreferencePremium and PreferenceAllowance override those of the Policy for
	// the pool's new nodes. Nil means that the Policy's apply.
	PreferencePremium   *float64
	PreferenceAllowance *Price
	// OnDemandShare is the minimum share of the vCPUs of the pool's nodes that
	// must be on demand, from 0 to 1. New nodes make up for what is missing.
	OnDemandShare float64
	// MaxSpotPoolShare overrides Policy.MaxSpotPoolShare for workloads on the pool's
	// nodes, and is as well the largest share of the vCPUs of its nodes that is to be
	// in one spot pool. Nil means that the Policy's applies, to workloads only.
	MaxSpotPoolShare *float64
	// Payback and Threshold override Policy.Payback and Policy.Hysteresis for the
	// pool's nodes. Nil means that the Policy's apply.
	Payback   *time.Duration
	Threshold *float64
}

// Static is a pool that keeps a number of nodes, independent of pods.
type Static struct {
	Replicas int
	Active   int // claims that are neither of the following
	Leaving  int // claims that are being deleted
	Pending  int // claims that a command in progress removes
}

// Limit caps the sum of one resource over the nodes of a pool.
type Limit struct {
	Resource int // position on the axis
	Max      int64
}

// InstanceType is a type of instance that a cloud provider can launch.
type InstanceType struct {
	Name         string
	Requirements Requirements // labels its nodes will have; several values where offerings differ
	Capacity     Resources    // with Nodes: 1
	Allocatable  Resources
	Offerings    []Offering
	VolumeLimits []VolumeLimit // of drivers that have one, by driver
	Devices      []DevicePool  // that drivers will publish for a node of it, by driver and name
}

// Offering is one way to launch an instance type: a zone, a capacity type, and
// a price.
type Offering struct {
	Zone, CapacityType string
	ReservationID      string
	ReservationLeft    int64
	Requirements       Requirements // zone, capacity type and provider labels, one value each
	Price              Price        // of a node, with Pool.Extras
	Available          bool
	Full               bool // not Available, only because its reservation is used up
}

// Node is capacity that exists or is on its way.
type Node struct {
	Name        string // Node name; until a Node has registered, the NodeClaim's name, after "nodeclaim/" if another Node has that name
	Claim       string // NodeClaim name; "" = not managed by us
	Pool        string
	Registered  bool
	Initialized bool

	// Labels have one value each once the instance is launched. Before that,
	// they are the requirements of its NodeClaim, and pods must accept every
	// value.
	Labels          Requirements
	Taints          []Taint
	Capacity        Resources
	Allocatable     Resources
	Requested       Resources // by all pods bound to it
	DaemonRequested Resources // by DaemonSet pods bound to it
	Leaving         Resources // of Requested, by pods that terminate before a new node would be ready

	Residents []Resident // pods bound to it that some selector or anti-affinity in the Snapshot is about
	HostPorts []HostPort // taken by pods bound to it
	Attached  []Attached // by driver that has a limit

	// Devices are those of this node alone, by driver and name: what drivers have
	// published once it is initialized, those of its type until then.
	Devices []DevicePool

	Price Price // of its offering, with Pool.Extras; 0 = unknown

	// Reservation is the capacity reservation that it will use once it is
	// launched; until then, the reservation does not count it. "" = none, or
	// launched.
	Reservation string

	// Movable are the pods on it that must be rescheduled when it is removed,
	// and that may be evicted now; for a node with an unhealthy condition also
	// the others. Nodes that Karpenter does not manage have none.
	Movable []Pending

	// Deleting nodes take no pods, and their pods are pending.
	Deleting bool
	// Stuck nodes are Deleting, and a pod that nothing moves keeps them. Pods still have
	// to spread over them, as kube-scheduler sees it; over others that are Deleting, which
	// are gone soon, they need not.
	Stuck bool
	// Closed nodes take no pods either, but count in every other way: nodes
	// that share their provider ID with another Node, and nodes of what-if
	// plans.
	Closed bool

	Disruption NodeDisruption

	// Template is the hash of the template that it was made from, like
	// Pool.Template; "" if it cannot be compared.
	Template string
}

// Price is in nano-dollars per hour.
type Price int64

// Dollar is one dollar per hour.
const Dollar Price = 1_000_000_000

// MaxPrice is the highest price of an offering. Nothing costs as much, and the prices of
// many nodes can still be added up.
const MaxPrice = 100_000 * Dollar

// Dollars returns the price in dollars per hour, for people and reports.
func (p Price) Dollars() float64 { return float64(p) / float64(Dollar) }
