// SPDX-License-Identifier: Apache-2.0

package world

import (
	"time"

	"karpenter/model"
)

// Node is what decisions need of a Node.
type Node struct {
	Name, UID    string
	ProviderID   string
	Labels       map[string]string
	Taints       []model.Taint
	Capacity     model.Resources
	Allocatable  model.Resources
	Ready        bool
	Deleting     bool     // has a deletion timestamp
	DoNotDisrupt bool     // carries the annotation with the value true
	Sick         bool     // has a condition that a repair policy is about
	Features     []string // that its kubelet declares, sorted
}

// Claim is what decisions need of a NodeClaim.
type Claim struct {
	Name, UID     string
	ProviderID    string // "" = not launched
	Labels        map[string]string
	Requirements  model.Requirements
	Taints        []model.Taint
	StartupTaints []model.Taint
	Requests      model.Resources // what it was asked to hold
	Capacity      model.Resources // of its machine, once launched
	Allocatable   model.Resources

	Deleting       bool // has a deletion timestamp, or its machine is ending
	Terminating    bool // its machine is ending
	Consolidatable bool
	Disrupting     bool // a command under way takes it away
	Rebooting      bool // its machine reboots, and is expected back

	Template   string    // hash of what it was made from; "" = none that can be compared
	Advised    time.Time // since when its provider advises to leave it; zero = it does not
	Drifted    time.Time // since when it is not what its NodePool asks for; zero = it is
	FreshUntil time.Time // when it may be replaced itself, having replaced others; zero = it has not
	Groups     []string  // Names of the PodGroups of the pods that it was created for
	QuietSince time.Time // when a pod last came or went or, before that, when it was initialized; zero = it is not
	Deadline   bool      // has a terminationGracePeriod
	Created    time.Time // zero = not known
}

// Daemon is what decisions need of a DaemonSet: the pod that its template
// describes.
type Daemon struct {
	Name    string // namespace/name
	Shape   *model.Shape
	Unknown map[string]int64 // as of a Pod
	Claims  bool             // its pods may claim devices
}

// Pod is what decisions need of a Pod. Pods of equal Shape.Key share one Shape
// in Snapshots.
type Pod struct {
	Namespace, Name, UID string
	Created              time.Time
	Labels               map[string]string
	Shape                *model.Shape
	Unknown              map[string]int64    // requests for resources that have no position of their own on the axis; Shape.Key has them, Shape.Requests has not
	Claims               string              // PersistentVolumeClaims that its VolumeTerms come from, as in model.Pod
	Workload             string              // name of what controls it, as in model.Pod
	Class                string              // pods of the namespace that usually live about as long have the same; "" = another pod replaces it when it ends
	Node                 string              // it is bound to; "" = unbound
	Nominated            string              // node that its status names on our behalf; "" = none, or by another client
	Awaits               string              // node that its status names on behalf of another client, such as the scheduler; "" = none
	Binding              string              // node to which the scheduler binds it, where devices are reserved for it; "" = none
	DaemonSet            string              // namespace/name of the one that controls it; "" = none
	Devices              []model.DeviceClaim // of a DaemonSet's pod: that its node must have devices for
	Group                string              // Name of the PodGroup that it is of; "" = none
	Buffer               string              // namespace/name of the CapacityBuffer it stands in for; "" = a pod that exists. SetBuffer sets it

	Pending       bool      // asks for a node: the scheduler found none, and it is for us to find one
	Terminal      bool      // has ended
	Terminating   bool      // has a deletion timestamp
	Ends          time.Time // that timestamp, by which it ends; zero = it has none
	Daemon        bool      // belongs to a DaemonSet
	Static        bool      // belongs to its Node
	Reschedulable bool      // needs a place elsewhere when its node is removed
	Unready       bool      // is not ready, and says so
	Resizing      bool      // what it may use is being changed, in place
	Stays         bool      // tolerates the taint of a node that is being removed

	// Protected pods must not be disrupted before ProtectedUntil, or ever when
	// that is zero.
	Protected      bool
	ProtectedUntil time.Time

	EvictionCost float64
	Startup      time.Duration // it took to become ready; 0 = not known
}

// Key returns namespace/name, and something else that is unique for a pod of a
// buffer.
func (p *Pod) Key() string { return podKey(p.Namespace, p.Name, p.Buffer) }

// Drift is how many nodes machines of a pool may replace besides what budgets
// allow, by whether they become nodes.
type Drift int

// As many as budgets allow; one at a time; none.
const (
	Free Drift = iota
	Probing
	Halted
)

// Pool is what decisions need of a NodePool.
type Pool struct {
	Name         string
	Weight       int32
	Drift        Drift
	Requirements model.Requirements // spec.requirements and template labels, intersected
	Taints       []model.Taint
	Limits       []model.Limit
	Template     string // hash of what its next claims are made from
	Replicas     *int   // nodes it keeps, whatever pods there are; nil = it follows its pods

	Aims model.Aims

	// Unavailable says why the pool launches nothing for pods: it is static, not
	// ready or being deleted; "" = it is available.
	Unavailable string

	Policy           model.ConsolidationPolicy
	ConsolidateAfter time.Duration // 0 = at once, or never
	Never            bool          // consolidateAfter is Never

	// Allowed evaluates the disruption budgets for a pool of total nodes. It
	// must be pure.
	Allowed func(now time.Time, total int, reason model.Reason) int
}

// PodGroup is what decisions need of a PodGroup.
type PodGroup struct {
	Name     string // namespace/name
	UID      string
	MinCount int    // of its pods start together; 0 = its pods are ordinary ones
	Refused  string // why none of its pods is planned, as in model.PodGroup

	TopologyKey string // as in model.PodGroup
	Existing    bool   // its pods may use initialized nodes only, and none are launched for it
	Together    bool   // its pods are disrupted all at once or not at all
}

// DisruptionBudget is what decisions need of a PodDisruptionBudget.
type DisruptionBudget struct {
	Namespace, Name string
	// Selector is the text of the selector: budgets whose texts are equal
	// select the same pods. Selects evaluates it on the labels of a pod.
	Selector string
	Selects  func(labels map[string]string) bool

	Allowed       int  // disruptions allowed now
	Never         bool // allows none however healthy its pods are
	UnreadyExempt bool // lets pods go that are not ready
}
