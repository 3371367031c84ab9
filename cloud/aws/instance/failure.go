// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/cloud"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/shortage"
	"karpenter/cloud/aws/template"
	"karpenter/model"
)

// Codes in the errors of a fleet that have an effect of their own.
const (
	reservationUsedUp = "ReservationCapacityExceeded"
	noAddresses       = "InsufficientFreeAddressesInSubnet"
	noSpotRole        = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
	noTemplate        = "InvalidLaunchTemplateName.NotFoundException"
	badFleet          = "InvalidFleetConfiguration"
	spreadGroupFull   = "limit of instances in this spread placement group"    // in the message
	notInZone         = "is not supported in your requested Availability Zone" // in the message
)

// soldOut reports whether the error means that the requested capacity is not
// available, so that another request can succeed. A type may be listed in a
// zone where EC2 does not launch it, mostly on the spot market.
func soldOut(code, message string) bool {
	return code == badFleet && strings.Contains(message, notInZone) || slices.Contains([]string{
		"InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity",
		"Unsupported", noAddresses, "MaxFleetCountExceeded", reservationUsedUp,
		"SpotMaxPriceTooLow", "InvalidCapacityReservationState.Unavailable",
	}, code)
}

// fleetError returns the error for callers without an instance.
func fleetError(out *ec2.CreateFleetOutput) error {
	if len(out.Errors) == 0 {
		return fmt.Errorf("fleet %s: too few instances returned", aws.ToString(out.FleetId))
	}
	var texts []string
	hopeless := true
	for _, e := range out.Errors {
		code, message := aws.ToString(e.ErrorCode), aws.ToString(e.ErrorMessage)
		hopeless = hopeless && (soldOut(code, message) || code == noSpotRole)
		if text := code + ": " + message; !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	err := errors.New("with fleet error(s), " + strings.Join(texts, "; "))
	if hopeless {
		return &cloud.InsufficientCapacityError{Err: err}
	}
	reason, message := client.Reason(err.Error())
	return &cloud.CreateError{Reason: reason, Message: message, Err: err}
}

// templateMissing reports whether a launch failed as a launch template is not
// there.
func templateMissing(err error) bool {
	return err != nil && !cloud.IsInsufficientCapacity(err) && strings.Contains(err.Error(), noTemplate)
}

// note records and counts the errors of a fleet that matter for later launches.
func (s *Instances) note(failures []types.CreateFleetError, items []*item, subnets map[string]string) {
	order, noRole := items[0].order, false
	for _, e := range failures {
		f := failureOf(&e, order, subnets)
		s.config.Metrics.launchFailed(&f)
		s.shortOf(&f, order)
		if f.code == noAddresses && f.subnet != "" {
			s.config.Launch.Shortages.Subnet(f.subnet, s.config.Clock.Now())
			s.config.Launch.Subnets.Exhausted(f.subnet)
		}
		noRole = noRole || f.code == noSpotRole && !reserved(order)
	}
	if !noRole {
		return
	}
	s.config.Launch.Shortages.CapacityType(model.Spot, s.config.Clock.Now())
	for _, one := range items {
		if s.config.Launch.SpotRefused != nil {
			s.config.Launch.SpotRefused(one.order.Claim)
		}
	}
}

// failure is one error in a fleet's answer.
type failure struct {
	code, message              string
	instanceType, zone, subnet string
	zoneID                     string // "" when the zone is not one of the launch
	capacityType               string
}

func failureOf(e *types.CreateFleetError, order *template.Want, subnets map[string]string) failure {
	f := failure{code: aws.ToString(e.ErrorCode), message: aws.ToString(e.ErrorMessage), capacityType: order.CapacityType}
	if at := e.LaunchTemplateAndOverrides; at != nil && at.Overrides != nil {
		f.instanceType = string(at.Overrides.InstanceType)
		f.zone, f.subnet = aws.ToString(at.Overrides.AvailabilityZone), aws.ToString(at.Overrides.SubnetId)
	}
	for _, subnet := range order.Class.Status.Subnets {
		if f.zone == "" && subnet.ID == f.subnet {
			f.zone = subnet.Zone
		}
		if subnet.Zone == f.zone && subnets[f.zone] == subnet.ID {
			f.zoneID = subnet.ZoneID
		}
	}
	return f
}

// shortOf notes what is out of capacity. A subnet without addresses is the subnet's
// fault, not that of the type: another one in the zone may have some.
func (s *Instances) shortOf(f *failure, order *template.Want) {
	now := s.config.Clock.Now()
	spread := order.GroupID != "" && strings.Contains(f.message, spreadGroupFull)
	switch {
	case reserved(order):
		o := offeringOf(order, f.instanceType, f.zone)
		switch {
		case o == nil || spread || !soldOut(f.code, f.message) || f.code == noAddresses:
		case f.code == reservationUsedUp:
			s.config.Launch.Reservations.Exhausted(o.ReservationID)
		default:
			s.config.Launch.Shortages.Reservation(f.instanceType, f.zone, o.ReservationID, now)
		}
	case spread:
		for _, c := range order.Candidates {
			s.config.Launch.Shortages.Offering(shortage.Offering{
				CapacityType: order.CapacityType, InstanceType: c.Type.Name, Zone: f.zone, Group: order.GroupID,
			}, now)
		}
	case soldOut(f.code, f.message) && f.code != noAddresses:
		s.config.Launch.Shortages.Offering(shortage.Offering{
			CapacityType: order.CapacityType, InstanceType: f.instanceType, Zone: f.zone, Group: order.GroupID, Partition: order.Partition,
		}, now)
	}
}

// launchFailed counts a failure, by its own reason or else by EC2's code, such
// as InsufficientInstanceCapacity.
func (m *Metrics) launchFailed(f *failure) {
	reason, _ := client.Reason(f.code + ": " + f.message)
	if reason == client.LaunchFailed && f.code != "" {
		reason = f.code
	}
	m.launchFailures.WithLabelValues(f.zone, f.zoneID, f.capacityType, reason).Inc()
}
