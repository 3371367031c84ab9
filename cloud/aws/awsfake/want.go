// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// want is an instance to be started: a launch template with what the request
// puts in its place.
type want struct {
	template *template
	image    string
	typ      string
	subnet   *subnet
	market   string // OnDemand, Spot, "capacity-block" or "interruptible-capacity-reservation"
	tags     []types.Tag
	fleet    string
}

// zone is where the instance is to run.
func (w *want) zone() string { return *w.subnet.AvailabilityZone }

// pool returns the pool that the instance uses: everything except spot uses
// on-demand capacity.
func (w *want) pool() Pool {
	if w.market == Spot {
		return Pool{w.typ, w.zone(), Spot}
	}
	return Pool{w.typ, w.zone(), OnDemand}
}

// interfaces are the network interfaces, one by default.
func (w *want) interfaces() []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	if len(w.template.data.NetworkInterfaces) > 0 {
		return w.template.data.NetworkInterfaces
	}
	return []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0), Groups: w.template.data.SecurityGroupIds}}
}

// addresses is how many IPv4 addresses of the subnet the instance takes: one for
// each interface but efa-only ones, and 16 for each prefix.
func (w *want) addresses() int32 {
	var n int32
	for _, i := range w.interfaces() {
		if aws.ToString(i.InterfaceType) != "efa-only" {
			n += 1 + 16*aws.ToInt32(i.Ipv4PrefixCount)
		}
	}
	return n
}

// target is the capacity reservation the instance must run in, "" for any.
func (w *want) target() string {
	s := w.template.data.CapacityReservationSpecification
	if s == nil || s.CapacityReservationTarget == nil {
		return ""
	}
	return aws.ToString(s.CapacityReservationTarget.CapacityReservationId)
}

// preference says which reservations the instance may use unasked.
func (w *want) preference() types.CapacityReservationPreference {
	s := w.template.data.CapacityReservationSpecification
	if s == nil || s.CapacityReservationPreference == "" {
		return types.CapacityReservationPreferenceOpen
	}
	return s.CapacityReservationPreference
}

// check refuses what can't be started however much capacity there is.
func (a *AWS) check(w *want, now time.Time) error {
	for _, check := range []func(*want, time.Time) error{a.checkType, a.checkImage, a.checkNetwork, a.checkProfile, a.checkPlacement} {
		if err := check(w, now); err != nil {
			return err
		}
	}
	return nil
}

const notSupported = "The requested configuration is currently not supported. Please check the documentation for supported configurations."

func (a *AWS) checkType(w *want, now time.Time) error {
	info := a.market.byName[w.typ]
	if info == nil {
		return refuse("InvalidParameterValue", "Invalid value '%s' for InstanceType.", w.typ)
	}
	_, priced := a.market.price(w.pool(), now)
	if !a.market.offered(w.typ, w.zone()) || w.market == Spot && !priced {
		return refuse("InvalidFleetConfiguration", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).", w.typ, w.zone())
	}
	if e := w.template.data.EnclaveOptions; e != nil && aws.ToBool(e.Enabled) && info.NitroEnclavesSupport != types.NitroEnclavesSupportSupported {
		return refuse("Unsupported", notSupported)
	}
	if c := w.template.data.CpuOptions; c != nil && c.NestedVirtualization == types.NestedVirtualizationSpecificationEnabled &&
		!slices.Contains(info.ProcessorInfo.SupportedFeatures, "nested-virtualization") {
		return refuse("Unsupported", notSupported)
	}
	return nil
}

func (a *AWS) checkImage(w *want, _ time.Time) error {
	if !strings.HasPrefix(w.image, "ami-") {
		return refuse("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", w.image)
	}
	image := a.image(w.image)
	if image == nil {
		return refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", w.image)
	}
	architectures := texts(a.market.byName[w.typ].ProcessorInfo.SupportedArchitectures)
	if !slices.Contains(architectures, string(image.Architecture)) {
		return refuse("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.",
			strings.Join(architectures, ","), image.Architecture)
	}
	return nil
}

func (a *AWS) checkNetwork(w *want, _ time.Time) error {
	interfaces, info := w.interfaces(), a.market.byName[w.typ].NetworkInfo
	if n := int32(len(interfaces)); n > *info.MaximumNetworkInterfaces {
		return refuse("AttachmentLimitExceeded", "Interface count %d exceeds the limit for %s", n, w.typ)
	}
	efa := 0
	for _, i := range interfaces {
		if strings.HasPrefix(aws.ToString(i.InterfaceType), "efa") {
			efa++
		}
		if len(interfaces) > 1 && aws.ToBool(i.AssociatePublicIpAddress) {
			return refuse("InvalidParameterCombination", "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.")
		}
		for _, id := range i.Groups {
			if err := a.checkGroup(id, w.subnet); err != nil {
				return err
			}
		}
	}
	if efa > 0 && (info.EfaInfo == nil || efa > int(aws.ToInt32(info.EfaInfo.MaximumEfaInterfaces))) {
		return refuse("InvalidParameterCombination", "%s does not support %d EFA interfaces", w.typ, efa)
	}
	return nil
}

func (a *AWS) checkGroup(id string, s *subnet) error {
	i := slices.IndexFunc(a.groups, func(g types.SecurityGroup) bool { return *g.GroupId == id })
	if i < 0 {
		return doNotExist("InvalidGroup.NotFound", "security group", []string{id})
	}
	if *a.groups[i].VpcId != *s.VpcId {
		return refuse("InvalidParameter", "Security group %s and subnet %s belong to different networks.", id, *s.SubnetId)
	}
	return nil
}

func (a *AWS) checkProfile(w *want, now time.Time) error {
	wanted := w.template.data.IamInstanceProfile
	if wanted == nil {
		return nil
	}
	name, parameter := aws.ToString(wanted.Name), "name"
	if wanted.Arn != nil {
		parts := strings.Split(*wanted.Arn, "/")
		name, parameter = parts[len(parts)-1], "arn"
	}
	profile := a.iam.profiles[name]
	if profile == nil || profile.CreateDate.Add(a.config.ProfileDelay).After(now) {
		return refuse("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.%s is invalid. Invalid IAM Instance Profile name", name, parameter)
	}
	if len(profile.Roles) == 0 {
		return refuse("InvalidParameterValue", "IAM Instance Profile \"%s\" has no associated IAM Roles", *profile.Arn)
	}
	return nil
}

func (a *AWS) checkPlacement(w *want, _ time.Time) error {
	id := w.target()
	if id != "" && a.reservation(id) == nil {
		return refuse("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
	}
	group, err := a.groupOf(w)
	if err != nil || group == nil {
		return err
	}
	if !slices.Contains(texts(a.market.byName[w.typ].PlacementGroupInfo.SupportedStrategies), string(group.Strategy)) {
		return refuse("InvalidParameterCombination", "The instance type '%s' is not supported for placement groups with the %s strategy", w.typ, group.Strategy)
	}
	if n := aws.ToInt32(w.template.data.Placement.PartitionNumber); n < 0 || n > aws.ToInt32(group.PartitionCount) {
		return refuse("InvalidParameterValue", "The partition number %d is not in the placement group %s", n, *group.GroupName)
	}
	return nil
}
