// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// Provider launches and terminates instances, which are called machines here.
// All methods may be called concurrently and repeatedly.
type Provider interface {
	// Name is the short name used in metric labels.
	Name() string

	// NodeClasses lists the kinds of NodeClass the provider serves, at least
	// one. Each kind reports a Ready condition in its status.
	NodeClasses() []schema.GroupVersionKind

	// Create starts one machine for the claim and returns at once, without
	// waiting for the machine to be ready. It is idempotent by the claim's
	// UID: called again after a crash it answers with the same machine.
	// Errors: InsufficientCapacity, NodeClassNotReady, CreateError; any other
	// error is retried until the launch times out.
	Create(ctx context.Context, claim *v1.NodeClaim) (*Machine, error)

	// Delete terminates the machine of the claim. Nil means that the
	// termination was accepted or is in progress; the caller repeats the call
	// until the error is NotFound.
	Delete(ctx context.Context, claim *v1.NodeClaim) error

	// Get returns the machine with this provider ID, or NotFound when it is
	// gone or beyond recovery.
	Get(ctx context.Context, providerID string) (*Machine, error)

	// List returns every machine this cluster owns. A machine that is missing
	// in the list, and whose node is not ready, counts as lost, so List must
	// return an error instead of a partial list.
	List(ctx context.Context) ([]*Machine, error)

	// InstanceTypes returns all types of the pool's NodeClass, unavailable
	// ones included. The caller shares the answer and does not modify it; a
	// provider never modifies a type it has handed out, so that what was
	// derived from a *InstanceType stays true as long as the pointer is seen.
	InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*InstanceType, error)

	// IsDrifted returns why the machine no longer matches its NodeClass, in
	// CamelCase, or "".
	IsDrifted(ctx context.Context, claim *v1.NodeClaim) (string, error)

	// RepairPolicies returns the node conditions that call for replacing the
	// machine. The answer never changes.
	RepairPolicies() []RepairPolicy
}

// Machine is an instance, as the provider knows it. Create fills everything;
// Get and List need ProviderID, Labels, Deleting and, as far as the cloud
// remembers them, Claim, ClaimUID and Created.
type Machine struct {
	ProviderID  string // equal to what the kubelet puts in Node.spec.providerID
	Claim       string // name of the NodeClaim it was started for; "" = unknown
	ClaimUID    types.UID
	Created     time.Time // zero = unknown
	ImageID     string
	Labels      map[string]string // at least instance type, zone, capacity type, arch and os
	Annotations map[string]string
	Capacity    corev1.ResourceList
	Allocatable corev1.ResourceList // expected; the Node's own figures replace it
	Deleting    bool
}

// InstanceType is a type of instance that the provider can launch.
type InstanceType struct {
	Name string
	// Requirements define every well-known label the type's nodes will have,
	// with DoesNotExist for those that do not apply and the union over the
	// offerings for zone and capacity type.
	Requirements model.Requirements
	Offerings    []Offering
	Capacity     corev1.ResourceList
	Overhead     Overhead
	// VolumeAttachmentLimits are how many volumes of a CSI driver a node may
	// attach, by the driver's name. Drivers that are not among them have no limit
	// until a node's CSINode names one.
	VolumeAttachmentLimits map[string]int
	// DevicePools are the devices for dynamic resource allocation of a node of the
	// type. The pools are shared and never modified.
	DevicePools []DevicePool
}

// Kubelet is what is known before launch about the kubelets of the nodes of a
// NodePool.
type Kubelet struct {
	// Versions are the versions of Kubernetes in the images that the nodes can
	// have, such as 1.36; "" is a version that is not known.
	Versions []string
	// Gates are the feature gates that the node class names for kubelets, such as
	// "A=true,B=false".
	Gates string
}

// Offering is one way to launch an instance type: a zone, a capacity type, and
// a price.
type Offering struct {
	// Requirements pin zone and capacity type to one value each, and the
	// provider's label for ReservationID of reserved ones.
	Requirements model.Requirements
	Price        model.Price
	// Available is false when a launch would fail now. An unavailable
	// offering still prices existing nodes.
	Available bool
	// ReservationID and ReservationCapacity, the launches left in it, are set
	// on reserved offerings only.
	ReservationID       string
	ReservationCapacity int64
	// Full reports that a reserved offering is not Available only because its
	// reservation has no launches left.
	Full bool

	// CapacityOverride replaces or adds entries of the type's capacity when
	// this offering is launched, OverheadOverride entries of its overhead's
	// total. Nil means the offering is like its type.
	CapacityOverride corev1.ResourceList
	OverheadOverride corev1.ResourceList
}

// Overhead is the part of a type's capacity pods can't use.
type Overhead struct {
	KubeReserved      corev1.ResourceList
	SystemReserved    corev1.ResourceList
	EvictionThreshold corev1.ResourceList
}

// RepairPolicy names a node condition that calls for Action once it has held for
// Toleration. Package cloud/health says which sets of policies are valid.
type RepairPolicy struct {
	ConditionType   corev1.NodeConditionType
	ConditionStatus corev1.ConditionStatus
	// ReasonRegex is matched against the condition's reason; it is not anchored.
	// "" marks the fallback of the whole set: it holds for every reason that no
	// other policy of the condition's type and status matches.
	ReasonRegex string
	Toleration  time.Duration
	// TerminationGracePeriod bounds the drain: nil leaves the bound to the
	// NodeClaim, 0 drains by force, else the smaller of both holds.
	TerminationGracePeriod *time.Duration
	// Priority is from 0 to 100. Nodes with a higher one are repaired first.
	Priority int
	Action   RepairAction
}

// RepairAction is the action that a repair policy demands.
type RepairAction string

// The repair actions.
const (
	ReplaceNode RepairAction = "ReplaceNode"
	RebootNode  RepairAction = "RebootNode"
)

// Rebooter is a Provider that can restart machines.
type Rebooter interface {
	// Reboot restarts the machine of the claim in place, and returns once the
	// cloud has accepted it. It is repeated with the same operation ID until then.
	// Errors: RebootNotImplemented, RebootFailed, NotFound; any other error is
	// retried.
	Reboot(ctx context.Context, claim *v1.NodeClaim, operationID string) error
}

// Reboot restarts the machine of the claim; see Rebooter. A provider that is no
// Rebooter answers with RebootNotImplemented.
func Reboot(ctx context.Context, p Provider, claim *v1.NodeClaim, operationID string) error {
	r, ok := p.(Rebooter)
	if !ok {
		return &RebootNotImplementedError{}
	}
	return r.Reboot(ctx, claim, operationID)
}
