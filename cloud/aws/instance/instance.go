// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/model"
)

// Instance is one EC2 instance. It is shared and not changed.
type Instance struct {
	ID           string
	Type         string
	Zone         string
	ZoneID       string // "" = EC2 did not say
	ImageID      string
	SubnetID     string
	CapacityType string // model.OnDemand, Spot or Reserved
	Tenancy      string
	Launched     time.Time
	State        types.InstanceStateName
	Tags         map[string]string

	// Reservation, if CapacityType is reserved.
	ReservationID            string
	ReservationType          awsv1.CapacityReservationType
	ReservationInterruptible bool

	GroupID        string   // placement group
	Partition      int32    // of it; 0 = none, or not known yet
	SecurityGroups []string // IDs, sorted
	EFAs           int      // network interfaces for the Elastic Fabric Adapter

	// Described is false when EC2 has not shown the instance yet: then
	// SecurityGroups, EFAs, GroupID and Partition are unknown.
	Described bool
}

// Ending reports whether the instance is going away permanently.
func (i *Instance) Ending() bool {
	return i.State == types.InstanceStateNameShuttingDown || i.State == types.InstanceStateNameTerminated
}

// described returns the instance as EC2 describes it. Reservations are included
// only if they are used; otherwise their instances count as on demand.
func described(in *types.Instance, reservations bool) *Instance {
	out := &Instance{
		ID: aws.ToString(in.InstanceId), Type: string(in.InstanceType), ImageID: aws.ToString(in.ImageId), SubnetID: aws.ToString(in.SubnetId),
		CapacityType: model.OnDemand, Tenancy: awsv1.InstanceTenancyDefault,
		Launched: aws.ToTime(in.LaunchTime), Tags: map[string]string{}, Described: true,
	}
	if in.State != nil {
		out.State = in.State.Name
	}
	if p := in.Placement; p != nil {
		out.Zone, out.ZoneID = aws.ToString(p.AvailabilityZone), aws.ToString(p.AvailabilityZoneId)
		out.GroupID, out.Partition = aws.ToString(p.GroupId), aws.ToInt32(p.PartitionNumber)
		if p.Tenancy != "" {
			out.Tenancy = string(p.Tenancy)
		}
	}
	for _, tag := range in.Tags {
		out.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	for _, group := range in.SecurityGroups {
		out.SecurityGroups = append(out.SecurityGroups, aws.ToString(group.GroupId))
	}
	slices.Sort(out.SecurityGroups)
	for _, n := range in.NetworkInterfaces {
		if kind := aws.ToString(n.InterfaceType); kind == "efa" || kind == "efa-only" {
			out.EFAs++
		}
	}
	out.bought(in, reservations)
	return out
}

// bought returns the capacity type. An instance that runs in an open
// reservation without naming it can leave it at any time, so it counts as on
// demand.
func (i *Instance) bought(in *types.Instance, reservations bool) {
	asked := in.CapacityReservationSpecification != nil &&
		in.CapacityReservationSpecification.CapacityReservationPreference == types.CapacityReservationPreferenceCapacityReservationsOnly
	switch {
	case aws.ToString(in.SpotInstanceRequestId) != "" || in.InstanceLifecycle == types.InstanceLifecycleTypeSpot:
		i.CapacityType = model.Spot
	case reservations && asked && aws.ToString(in.CapacityReservationId) != "":
		i.CapacityType, i.ReservationID = model.Reserved, aws.ToString(in.CapacityReservationId)
		i.ReservationType = awsv1.CapacityReservationTypeDefault
		if in.InstanceLifecycle == types.InstanceLifecycleTypeCapacityBlock {
			i.ReservationType = awsv1.CapacityReservationTypeCapacityBlock
		}
		i.ReservationInterruptible = in.InstanceLifecycle == types.InstanceLifecycleTypeInterruptibleCapacityReservation
	}
}

// living are the states of instances that exist, those on their way out
// included.
func living() []string {
	return []string{"pending", "running", "stopping", "stopped", "shutting-down"}
}
