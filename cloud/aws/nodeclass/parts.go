// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/template"
)

// Images finds the images of a class; see image.Images.
type Images interface {
	List(context.Context, *awsv1.EC2NodeClass) ([]awsv1.AMI, error)
}

// Subnets finds the subnets of a class; see network.Subnets.
type Subnets interface {
	Of(context.Context, *awsv1.EC2NodeClass) ([]awsv1.Subnet, error)
}

// SecurityGroups finds the security groups of a class; see
// network.SecurityGroups.
type SecurityGroups interface {
	Of(context.Context, *awsv1.EC2NodeClass) ([]awsv1.SecurityGroup, error)
}

// Reservations finds capacity reservations; see reservation.Reservations.
type Reservations interface {
	Of(context.Context, []awsv1.CapacityReservationSelectorTerm) (found []awsv1.CapacityReservation, skipped, err error)
}

// PlacementGroups finds the placement group of a class, nil when it asks for
// none; see reservation.Groups. The error is reservation.ErrNoGroup when there is
// no such group.
type PlacementGroups interface {
	For(context.Context, *awsv1.EC2NodeClass) (*instancetype.PlacementGroup, error)
}

// Profiles makes instance profiles; see profile.Profiles.
type Profiles interface {
	Ensure(context.Context, *awsv1.EC2NodeClass) (name string, err error)
	Missing(name string)
	Without() string
	Delete(context.Context, *awsv1.EC2NodeClass) error
}

// Templates makes launch templates; see template.Templates.
type Templates interface {
	Ensure(context.Context, *template.Want) ([]template.Template, error)
	DeleteAll(ctx context.Context, class string) error
}

// LaunchAPI has the calls to AWS for dry runs. All have DryRun set.
type LaunchAPI interface {
	CreateFleet(context.Context, *ec2.CreateFleetInput, ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error)
	RunInstances(context.Context, *ec2.RunInstancesInput, ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error)
}

// AWS is what classes need of it. All fields are required.
type AWS struct {
	Images          Images
	Subnets         Subnets
	SecurityGroups  SecurityGroups
	Reservations    Reservations
	PlacementGroups PlacementGroups
	Profiles        Profiles
	Templates       Templates
	Launch          LaunchAPI
	// Facts returns the facts about all instance types of the region, or none
	// before EC2 has answered; see catalogue.Catalogue.
	Facts func() []*instancetype.Facts
	// CIDR returns where the cluster's Services have their addresses; see
	// template.ServiceCIDR.
	CIDR func(context.Context) (string, error)
}
