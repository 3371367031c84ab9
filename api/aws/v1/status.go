// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EC2NodeClassStatus is what the selectors of the node class select now.
type EC2NodeClassStatus struct {
	// Subnets nodes may be in, those with most free addresses first.
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups of nodes, by ID.
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// CapacityReservations nodes may run in, by ID.
	// +optional
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`
	// AMIs nodes boot from, the newest first.
	// +optional
	AMIs []AMI `json:"amis,omitempty"`
	// InstanceProfile is the name of the instance profile of nodes: the one in the
	// spec, or the one that Karpenter created for the role.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// Conditions of the node class. Ready needs AMIsReady, SubnetsReady,
	// SecurityGroupsReady, InstanceProfileReady, PlacementGroupReady,
	// ValidationSucceeded and, with the feature gate ReservedCapacity,
	// CapacityReservationsReady. If it is not True, no nodes are launched.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Subnet nodes may be in.
type Subnet struct {
	// ID of the subnet.
	// +required
	ID string `json:"id"`
	// Zone the subnet is in.
	// +required
	Zone string `json:"zone"`
	// ZoneID is the zone's ID, which is the same in all accounts.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup of nodes.
type SecurityGroup struct {
	// ID of the security group.
	// +required
	ID string `json:"id"`
	// Name of the security group.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI that nodes boot from.
type AMI struct {
	// ID of the image.
	// +required
	ID string `json:"id"`
	// Deprecated says that its publisher has deprecated the image.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// Name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// Requirements on the labels of instance types that boot from the image.
	// +required
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservation nodes may run in.
type CapacityReservation struct {
	// AvailabilityZone the reservation is in.
	// +required
	AvailabilityZone string `json:"availabilityZone"`
	// EndTime is when the reservation ends. Unset means when it is cancelled.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	// +required
	ID string `json:"id"`
	// InstanceMatchCriteria says whether any instance that fits uses the
	// reservation (open), or only those that name it (targeted).
	// +kubebuilder:validation:Enum=open;targeted
	// +required
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// InstanceType the reservation is for.
	// +required
	InstanceType string `json:"instanceType"`
	// OwnerID is the account the reservation belongs to.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +required
	OwnerID string `json:"ownerID"`
	// ReservationType says whether it is a capacity block.
	// +kubebuilder:default=default
	// +kubebuilder:validation:Enum=default;capacity-block
	// +optional
	ReservationType CapacityReservationType `json:"reservationType,omitempty"`
	// Interruptible says that EC2 can reclaim the capacity.
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
	// State is expiring when a capacity block is about to end.
	// +kubebuilder:default=active
	// +kubebuilder:validation:Enum=active;expiring
	// +optional
	State CapacityReservationState `json:"state,omitempty"`
}

// CapacityReservationType is the kind of a reservation.
type CapacityReservationType string

// The kinds of reservations.
const (
	CapacityReservationTypeDefault       CapacityReservationType = "default"
	CapacityReservationTypeCapacityBlock CapacityReservationType = "capacity-block"
)

// CapacityReservationState says whether nodes may be launched into a
// reservation.
type CapacityReservationState string

// The states of reservations.
const (
	CapacityReservationStateActive   CapacityReservationState = "active"
	CapacityReservationStateExpiring CapacityReservationState = "expiring"
)
