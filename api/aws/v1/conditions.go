// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
)

// Condition types of an EC2NodeClass. The root, Ready, depends on all of them,
// on CapacityReservationsReady only under the feature gate ReservedCapacity.
const (
	AMIsReadyCondition                 = "AMIsReady"
	CapacityReservationsReadyCondition = "CapacityReservationsReady"
	PlacementGroupReadyCondition       = "PlacementGroupReady"
	SubnetsReadyCondition              = "SubnetsReady"
	SecurityGroupsReadyCondition       = "SecurityGroupsReady"
	InstanceProfileReadyCondition      = "InstanceProfileReady"
	ValidationSucceededCondition       = "ValidationSucceeded"
)

// Reasons of the conditions of what is selected.
const (
	AMINotFoundReason                    = "AMINotFound"
	UnsupportedAliasReason               = "UnsupportedAlias"
	SubnetsNotFoundReason                = "SubnetsNotFound"
	SecurityGroupsNotFoundReason         = "SecurityGroupsNotFound"
	PlacementGroupNotFoundReason         = "PlacementGroupNotFound"
	PlacementGroupResolutionFailedReason = "PlacementGroupResolutionFailed"
)

// Reasons of the condition ValidationSucceeded.
const (
	InvalidKubeletConfigurationReason         = "InvalidKubeletConfiguration"
	KubeletExpressionsDisabledReason          = "KubeletExpressionsDisabled"
	KubeletExpressionInvalidReason            = "KubeletExpressionInvalid"
	UnsupportedKubeletConfigurationReason     = "UnsupportedKubeletConfiguration"
	KubeletExpressionEvaluationFailedReason   = "KubeletExpressionEvaluationFailed"
	TagValidationFailedReason                 = "TagValidationFailed"
	DependenciesNotReadyReason                = "DependenciesNotReady"
	ClusterCIDRResolutionFailedReason         = "ClusterCIDRResolutionFailed"
	CreateLaunchTemplateAuthCheckFailedReason = "CreateLaunchTemplateAuthCheckFailed"
	CreateFleetAuthCheckFailedReason          = "CreateFleetAuthCheckFailed"
	RunInstancesAuthCheckFailedReason         = "RunInstancesAuthCheckFailed"
	UserDataSizeLimitExceededReason           = "UserDataSizeLimitExceeded"
	InstanceProfileNotFoundReason             = "InstanceProfileNotFound"
	UnreadableFieldsReason                    = "UnreadableFields"
	ConsumableCapacityInvalidReason           = "NVIDIAConsumableCapacityInvalid"
	DRADisabledReason                         = "DRADisabled"
)

// Reasons a NodeClaim has drifted from its EC2NodeClass.
const (
	NodeClassDriftReason           = "NodeClassDrift"
	AMIDriftReason                 = "AMIDrift"
	SubnetDriftReason              = "SubnetDrift"
	SecurityGroupDriftReason       = "SecurityGroupDrift"
	CapacityReservationDriftReason = "CapacityReservationDrift"
	PlacementGroupDriftReason      = "PlacementGroupDrift"
)

// StatusConditions opens the node class's conditions; see conditions.For. With
// reservedCapacity it is not ready before its capacity reservations are known.
func (c *EC2NodeClass) StatusConditions(now time.Time, reservedCapacity bool) *conditions.Set {
	dependents := []string{AMIsReadyCondition}
	if reservedCapacity {
		dependents = append(dependents, CapacityReservationsReadyCondition)
	}
	dependents = append(dependents, PlacementGroupReadyCondition, SubnetsReadyCondition,
		SecurityGroupsReadyCondition, InstanceProfileReadyCondition, ValidationSucceededCondition)
	return conditions.For(c, conditions.Kind{Dependents: dependents}, now)
}

// GetConditions returns the stored conditions.
func (c *EC2NodeClass) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the stored conditions.
func (c *EC2NodeClass) SetConditions(cs []metav1.Condition) { c.Status.Conditions = cs }
