// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
)

// ReadyCondition is the root condition of every resource.
const ReadyCondition = conditions.Ready

// Condition types of a NodePool.
const (
	// ValidationSucceededCondition says whether ValidateNodePool passes. It is
	// a dependent.
	ValidationSucceededCondition = "ValidationSucceeded"
	// NodeClassReadyCondition says whether the node class is there and ready.
	// It is a dependent.
	NodeClassReadyCondition = "NodeClassReady"
	// NodeRegistrationHealthyCondition reports whether the pool's instances
	// become nodes. It is independent.
	NodeRegistrationHealthyCondition = "NodeRegistrationHealthy"
)

// Condition types of a NodePool that upstream does not have. They are
// independent.
const (
	// RolledOutCondition reports whether all nodes of the pool match its
	// current spec.
	RolledOutCondition = "RolledOut"
	// RolloutHaltedCondition exists while instances of the pool do not become
	// nodes. If it is True, they replace no drifted or underutilized node. If
	// it is Unknown, one replacement is launched, as an attempt.
	RolloutHaltedCondition = "RolloutHalted"
	// LaunchBackoffCondition is True while launches are delayed for pods that
	// did not stay on the nodes launched for them. Otherwise it does not exist.
	LaunchBackoffCondition = "LaunchBackoff"
)

// Reasons of the conditions of a NodePool.
const (
	NodePoolValidationFailedReason  = "NodePoolValidationFailed"
	NodeClassNotFoundReason         = "NodeClassNotFound"
	NodeClassTerminatingReason      = "NodeClassTerminating"
	NodeClassReadinessUnknownReason = "NodeClassReadinessUnknown"
	RegistrationFailedReason        = "RegistrationFailed"
	NodesNotInitializedReason       = "NodesNotInitialized"
	ProbingReason                   = "Probing"
	RollingOutReason                = "RollingOut"
	NodesDidNotKeepPodsReason       = "NodesDidNotKeepPods"
)

// Condition types of a NodeClaim. The first three are dependents, in the order
// they come True.
const (
	LaunchedCondition             = "Launched"
	RegisteredCondition           = "Registered"
	InitializedCondition          = "Initialized"
	ConsolidatableCondition       = "Consolidatable"
	DriftedCondition              = "Drifted"
	DrainedCondition              = "Drained"
	VolumesDetachedCondition      = "VolumesDetached"
	InstanceTerminatingCondition  = "InstanceTerminating"
	ConsistentStateFoundCondition = "ConsistentStateFound"
	DisruptionReasonCondition     = "DisruptionReason"
	// RebootingCondition is True while the instance of the claim reboots. Ready
	// does not depend on it.
	RebootingCondition = "Rebooting"
	// DrainBlockedCondition names pods that will never leave the node unless
	// someone acts. It exists only while such pods block something.
	DrainBlockedCondition = "DrainBlocked"
)

// Reasons of the conditions of a NodeClaim.
const (
	LaunchFailedReason                  = "LaunchFailed"
	NodeNotFoundReason                  = "NodeNotFound"
	RegistrationHookPendingReason       = "RegistrationHookPending"
	MultipleNodesFoundReason            = "MultipleNodesFound"
	NodeNotReadyReason                  = "NodeNotReady"
	StartupTaintsExistReason            = "StartupTaintsExist"
	KnownEphemeralTaintsExistReason     = "KnownEphemeralTaintsExist"
	ResourceNotRegisteredReason         = "ResourceNotRegistered"
	DRADriverPoolsNotPublishedReason    = "DRADriverPoolsNotPublished"
	NodePoolDriftedReason               = "NodePoolDrifted"
	RequirementsDriftedReason           = "RequirementsDrifted"
	InstanceTypeNotFoundReason          = "InstanceTypeNotFound"
	DrainingReason                      = "Draining"
	AwaitingVolumeDetachmentReason      = "AwaitingVolumeDetachment"
	TerminationGracePeriodElapsedReason = "TerminationGracePeriodElapsed"
	ConsistencyCheckFailedReason        = "ConsistencyCheckFailed"
	RebootRequestedReason               = "RebootRequested"
	RebootIssuedReason                  = "RebootIssued"
	RebootSucceededReason               = "RebootSucceeded"
	RebootFailedReason                  = "RebootFailed"
	RebootingReason                     = "Rebooting"
)

// StatusConditions opens the pool's conditions; see conditions.For.
func (p *NodePool) StatusConditions(now time.Time) *conditions.Set {
	return conditions.For(p, conditions.Kind{Dependents: []string{
		ValidationSucceededCondition, NodeClassReadyCondition,
	}}, now)
}

// GetConditions returns the stored conditions.
func (p *NodePool) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions replaces the stored conditions.
func (p *NodePool) SetConditions(cs []metav1.Condition) { p.Status.Conditions = cs }

// StatusConditions opens the claim's conditions; see conditions.For.
func (c *NodeClaim) StatusConditions(now time.Time) *conditions.Set {
	return conditions.For(c, conditions.Kind{Dependents: []string{
		LaunchedCondition, RegisteredCondition, InitializedCondition,
	}}, now)
}

// GetConditions returns a copy of the stored conditions.
func (c *NodeClaim) GetConditions() []metav1.Condition {
	if c.Status.Conditions == nil {
		return nil
	}
	cs := make([]metav1.Condition, len(c.Status.Conditions))
	for i := range cs {
		cs[i] = metav1.Condition(c.Status.Conditions[i])
	}
	return cs
}

// SetConditions replaces the stored conditions.
func (c *NodeClaim) SetConditions(cs []metav1.Condition) {
	c.Status.Conditions = make([]Condition, len(cs))
	for i := range cs {
		c.Status.Conditions[i] = Condition(cs[i])
	}
}
