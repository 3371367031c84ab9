// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"karpenter/cloud"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/shortage"
	"karpenter/model"
)

var writeErrors = flag.Bool("write-errors", false, "write docs/aws-errors.md again")

const errorsDoc = "../../docs/aws-errors.md"

// ec2Error is something that EC2 says to a launch.
type ec2Error struct {
	code, message string
	capacityType  string
	call          string // that fails as a whole; "" = it is in the answer of the fleet
	server        bool
}

func launchErrors() []ec2Error {
	const denied = "You are not authorized to perform this operation. User is not authorized to perform: ec2:RunInstances "
	spot, onDemand := model.Spot, model.OnDemand
	return []ec2Error{
		{"InsufficientInstanceCapacity", "We currently do not have sufficient m5.large capacity", spot, "", false},
		{"UnfulfillableCapacity", "Unable to fulfill capacity due to your request configuration", spot, "", false},
		{"Unsupported", "Your requested instance type is not supported in your requested Availability Zone", onDemand, "", false},
		{"InvalidFleetConfiguration", "Your requested instance type (m5.large) is not supported in your requested Availability Zone (us-west-2a).", spot, "", false},
		{"InvalidFleetConfiguration", "The fleet's configuration is not valid", onDemand, "", false},
		{"MaxSpotInstanceCountExceeded", "Max spot instance count exceeded", spot, "", false},
		{"SpotMaxPriceTooLow", "Your Spot request price of 0.01 is lower than the minimum required Spot request fulfillment price of 0.02", spot, "", false},
		{"InvalidCapacityReservationState.Unavailable", "The requested reservation is being reclaimed", onDemand, "", false},
		{"VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit", onDemand, "", false},
		{"MaxFleetCountExceeded", "You have reached the maximum number of fleets", onDemand, "", false},
		{"InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet", onDemand, "", false},
		{"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances", spot, "", false},
		{"UnauthorizedOperation", denied + "because no identity-based policy allows the ec2:RunInstances action", onDemand, "", false},
		{"UnauthorizedOperation", denied + "with an explicit deny in a permissions boundary", onDemand, "", false},
		{"UnauthorizedOperation", denied + "with an explicit deny in a service control policy", onDemand, "", false},
		{"AuthFailure", "Not authorized for images: [ami-1]", onDemand, "", false},
		{"InvalidParameter", "Security group sg-1 and subnet subnet-1 belong to different networks.", onDemand, "", false},
		{"InvalidParameterValue", "Value (profile) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", onDemand, "", false},
		{"InvalidLaunchTemplateId.NotFound", "The specified launch template does not exist", onDemand, "", false},
		{"InvalidUserData.Malformed", "User data is limited to 16384 bytes", onDemand, "", false},
		{"InvalidAMIID.Malformed", "Invalid id: \"ami\"", onDemand, "", false},
		{"InvalidAMIID.NotFound", "The image id '[ami-1]' does not exist", onDemand, "", false},
		{"InvalidParameterCombination", "The specified instance type is not eligible for Free Tier", onDemand, "", false},
		{"PendingVerification", "Your request for accessing resources in this region is being validated", onDemand, "", false},
		{"RequestLimitExceeded", "Request limit exceeded.", onDemand, "", false},
		{"InternalError", "An internal error has occurred", onDemand, "", false},
		{"SomethingNew", "No such error is documented", onDemand, "", false},
		{"RequestLimitExceeded", "Request limit exceeded.", onDemand, "CreateFleet", false},
		{"UnauthorizedOperation", denied + "because no identity-based policy allows the ec2:CreateFleet action", onDemand, "CreateFleet", false},
		{"InternalError", "An internal error has occurred", onDemand, "CreateFleet", true},
		{"UnauthorizedOperation", denied + "because no identity-based policy allows the ec2:CreateLaunchTemplate action", onDemand, "CreateLaunchTemplate", false},
		{"InvalidUserData.Malformed", "User data is limited to 16384 bytes", onDemand, "CreateLaunchTemplate", false},
	}
}

// line plays the error and says what came of it, as a row of the table.
func (e *ec2Error) line(t *testing.T) string {
	t.Helper()
	r := newRegion(t, nil)
	where := "answer of the fleet"
	if e.call == "" {
		r.aws.Spoil(awsfake.Pool{}, e.code, e.message)
	} else {
		where = e.call
		r.aws.Fail(e.call, awsfake.Failure{Code: e.code, Message: e.message, Server: e.server})
	}
	_, err := r.Create(t.Context(), r.claim("claim", in(model.LabelInstanceType, "m5.large"), in(model.LabelZone, "us-west-2a"), in(model.LabelCapacityType, e.capacityType)))
	if err == nil {
		t.Fatalf("%s: launched", e.code)
	}
	var create *cloud.CreateError
	seen := "?"
	switch {
	case cloud.IsInsufficientCapacity(err):
		seen = "abandoned: Warning `InsufficientCapacityError`; its pods are planned again"
	case errors.As(err, &create):
		seen = fmt.Sprintf("`Launched=Unknown`, `%s`: %s; tried again", create.Reason, create.Message)
	}
	for _, event := range r.events {
		_, message, _ := strings.Cut(event, ": ")
		seen += "; Warning: " + message
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |\n", e.code, e.message, where, seen, r.counted(), r.offered(e.capacityType))
}

// counted returns the reasons in the metric of failed launches.
func (r *region) counted() string {
	families, err := r.registry.Gather()
	must(r.t, err)
	for _, f := range families {
		if f.GetName() != "karpenter_cloudprovider_instance_launch_failures_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "reason" {
					return "`" + label.GetValue() + "`"
				}
			}
		}
	}
	return "–"
}

// offered returns what is no longer available.
func (r *region) offered(capacityType string) string {
	class := r.getClass()
	out := func(capacityType, instanceType, zone string) bool {
		var subnets []string
		for _, s := range class.Status.Subnets {
			if s.Zone == zone {
				subnets = append(subnets, s.ID)
			}
		}
		return r.short.SoldOut(shortage.Offering{CapacityType: capacityType, InstanceType: instanceType, Zone: zone}, subnets, r.clock.Now())
	}
	other := map[string]string{model.Spot: model.OnDemand, model.OnDemand: model.Spot}[capacityType]
	switch {
	case !out(capacityType, "m5.large", "us-west-2a"):
		return "–"
	case out(other, "c5.large", "us-west-2a"):
		return "the subnet, and so the zone if it has no other, for 3 minutes"
	case out(capacityType, "c5.large", "us-west-2b"):
		return "all spot capacity, for 3 minutes"
	}
	return "the type in the zone, as " + capacityType + ", for 3 minutes"
}

// TestErrors plays every error that EC2 is known to answer launches with, and
// holds the table for users to what comes of it.
func TestErrors(t *testing.T) {
	var out strings.Builder
	out.WriteString(`# What EC2's errors do

The fate of a NodeClaim whose launch EC2 rejects, by the code and text of
EC2's answer. A test plays each of these to the provider and compares; after a
change, ` + "`go test ./cloud/aws -run TestErrors -args -write-errors`" + ` writes this file.

An error is in the answer of the fleet, once for each type and zone that was
tried, or a whole call fails. An abandoned NodeClaim is deleted: its pods are
planned again at once, without the offerings that are known to be unavailable. One that is tried
again waits, longer each time, and is deleted 5 minutes after it was made, if it has
not launched by then. The metric is
` + "`karpenter_cloudprovider_instance_launch_failures_total`" + `, by its label
` + "`reason`" + `; it counts errors in answers of fleets.

| code | EC2 says | where | the NodeClaim | metric | unavailable afterwards |
|---|---|---|---|---|---|
`)
	for _, e := range launchErrors() {
		out.WriteString(e.line(t))
	}
	if *writeErrors {
		must(t, os.WriteFile(errorsDoc, []byte(out.String()), 0o644))
	}
	text, err := os.ReadFile(errorsDoc)
	must(t, err)
	check(t, errorsDoc, string(text), out.String())
}
