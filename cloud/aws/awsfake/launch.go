// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// start launches an instance, or returns an error that names what is short.
func (a *AWS) start(w *want, now time.Time) (*instance, error) {
	group, err := a.groupOf(w)
	if err != nil {
		return nil, err
	}
	if err := a.enough(w, group); err != nil {
		return nil, err
	}
	r, err := a.reserve(w)
	if err != nil {
		return nil, err
	}
	if r == nil && !a.market.take(w.pool()) {
		return nil, a.soldOut(w)
	}
	if r != nil {
		r.used++
	}
	w.subnet.used += w.addresses()
	made := a.made(w, now)
	made.reservation, made.group = r, group
	a.instances.add(made)
	a.place(made, w)
	made.visible = now.Add(a.config.VisibleAfter)
	a.announce(made, "pending", now)
	a.later(now.Add(a.config.BootDelay), func(at time.Time) { a.booted(made, at) })
	return made, nil
}

// enough refuses when something other than the capacity itself runs out.
func (a *AWS) enough(w *want, group *placementGroup) error {
	if err := a.market.spoilt[w.pool()]; err != nil {
		return err
	}
	if w.market == Spot && !a.spotRole {
		return refuse("AuthFailure.ServiceLinkedRoleCreationNotPermitted", "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.")
	}
	if quota, ok := a.quotas[w.pool().CapacityType]; ok && a.cpusInUse(w.pool().CapacityType)+a.cpus(w.typ) > quota {
		if w.market == Spot {
			return refuse("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
		}
		return refuse("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", quota)
	}
	if w.subnet.free() < w.addresses() {
		return refuse("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", *w.subnet.SubnetId)
	}
	const rackLimit = 7
	if group != nil && group.Strategy == types.PlacementStrategySpread && a.instances.count(func(i *instance) bool {
		return i.group == group && i.zone() == w.zone() && !i.ended()
	}) >= rackLimit {
		return refuse("UnfulfillableCapacity", "You've reached the limit of instances in this spread placement group. A spread placement group can have up to seven instances per Availability Zone.")
	}
	return nil
}

func (a *AWS) soldOut(w *want) error {
	if w.market == Spot {
		return refuse("InsufficientInstanceCapacity", "There is no Spot capacity available that matches your request.")
	}
	message := fmt.Sprintf("We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). Our system will be working on provisioning additional capacity.", w.typ, w.zone())
	var others []string
	for _, z := range a.zones {
		pool := Pool{w.typ, z.name, OnDemand}
		if left, limited := a.market.left[pool]; a.market.offered(w.typ, z.name) && (!limited || left > 0) {
			others = append(others, z.name)
		}
	}
	if len(others) > 0 {
		message += fmt.Sprintf(" You can currently get %s capacity by not specifying an Availability Zone in your request or choosing %s.", w.typ, strings.Join(others, ", "))
	}
	return refuse("InsufficientInstanceCapacity", "%s", message)
}

func (a *AWS) cpus(typ string) int64 { return int64(*a.market.byName[typ].VCpuInfo.DefaultVCpus) }

func (a *AWS) cpusInUse(way string) int64 {
	var n int64
	for _, i := range a.instances.list {
		if i.pool.CapacityType == way && !i.ended() {
			n += a.cpus(i.pool.Type)
		}
	}
	return n
}

// made is the instance as it is at its launch.
func (a *AWS) made(w *want, now time.Time) *instance {
	id, data := a.id("i"), w.template.data
	address := w.subnet.address()
	suffix := a.config.Region + ".compute.internal"
	if a.config.Region == "us-east-1" {
		suffix = "ec2.internal"
	}
	info := a.market.byName[w.typ]
	i := &instance{pool: w.pool(), subnet: w.subnet, addresses: w.addresses(), userData: aws.ToString(data.UserData), state: types.InstanceStateNamePending}
	i.Instance = types.Instance{
		InstanceId: &id, ImageId: &w.image, InstanceType: types.InstanceType(w.typ), LaunchTime: &now, SubnetId: w.subnet.SubnetId, VpcId: w.subnet.VpcId,
		Architecture: a.image(w.image).Architecture, Hypervisor: types.HypervisorTypeXen, VirtualizationType: types.VirtualizationTypeHvm,
		Placement:        &types.Placement{AvailabilityZone: w.subnet.AvailabilityZone, AvailabilityZoneId: w.subnet.AvailabilityZoneId, Tenancy: types.TenancyDefault, GroupName: aws.String("")},
		PrivateIpAddress: aws.String(address.String()), PrivateDnsName: aws.String("ip-" + strings.ReplaceAll(address.String(), ".", "-") + "." + suffix),
		RootDeviceName: a.image(w.image).RootDeviceName, RootDeviceType: types.DeviceTypeEbs, EbsOptimized: aws.Bool(false), EnaSupport: aws.Bool(true),
		CpuOptions: &types.CpuOptions{CoreCount: info.VCpuInfo.DefaultVCpus, ThreadsPerCore: aws.Int32(1)}, AmiLaunchIndex: aws.Int32(0),
		Monitoring:     &types.Monitoring{State: types.MonitoringStateDisabled},
		EnclaveOptions: &types.EnclaveOptions{Enabled: aws.Bool(data.EnclaveOptions != nil && aws.ToBool(data.EnclaveOptions.Enabled))},
		Tags:           a.tagsOf(w), Platform: a.image(w.image).Platform,
	}
	if data.Monitoring != nil && aws.ToBool(data.Monitoring.Enabled) {
		i.Monitoring.State = types.MonitoringStateEnabled
	}
	if data.Placement != nil && data.Placement.Tenancy != "" {
		i.Placement.Tenancy = data.Placement.Tenancy
	}
	if m := data.MetadataOptions; m != nil {
		i.MetadataOptions = &types.InstanceMetadataOptionsResponse{
			HttpEndpoint: types.InstanceMetadataEndpointState(m.HttpEndpoint), HttpProtocolIpv6: types.InstanceMetadataProtocolState(m.HttpProtocolIpv6),
			HttpPutResponseHopLimit: m.HttpPutResponseHopLimit, HttpTokens: types.HttpTokensState(m.HttpTokens),
			InstanceMetadataTags: types.InstanceMetadataTagsState(m.InstanceMetadataTags), State: types.InstanceMetadataOptionsStateApplied,
		}
	}
	if p := data.IamInstanceProfile; p != nil {
		name := aws.ToString(p.Name)
		if p.Arn != nil {
			name = (*p.Arn)[strings.LastIndexByte(*p.Arn, '/')+1:]
		}
		i.IamInstanceProfile = &types.IamInstanceProfile{Arn: a.iam.profiles[name].Arn, Id: a.iam.profiles[name].InstanceProfileId}
	}
	a.connect(i, w, address)
	a.attach(i, w)
	switch w.market {
	case Spot:
		i.InstanceLifecycle = types.InstanceLifecycleTypeSpot
		i.SpotInstanceRequestId = aws.String(strings.Replace(a.id("sir"), "-0", "-", 1))
	case string(types.MarketTypeCapacityBlock), string(types.MarketTypeInterruptibleCapacityReservation):
		i.InstanceLifecycle = types.InstanceLifecycleType(w.market)
	}
	return i
}

// tagsOf are the tags of a new instance: the request's over the template's, and
// EC2's own.
func (a *AWS) tagsOf(w *want) []types.Tag {
	var out []types.Tag
	for _, s := range w.template.data.TagSpecifications {
		if s.ResourceType == types.ResourceTypeInstance {
			out = append(out, cloneTags(s.Tags)...)
		}
	}
	for _, tag := range w.tags {
		out = set(out, aws.ToString(tag.Key), aws.ToString(tag.Value))
	}
	out = set(out, "aws:ec2launchtemplate:id", *w.template.LaunchTemplateId)
	out = set(out, "aws:ec2launchtemplate:version", "1")
	if w.fleet != "" {
		out = set(out, "aws:ec2:fleet-id", w.fleet)
	}
	return out
}

// connect gives the instance its network interfaces, the first with its address.
func (a *AWS) connect(i *instance, w *want, address netip.Addr) {
	seen := map[string]bool{}
	for n, wanted := range w.interfaces() {
		made := types.InstanceNetworkInterface{
			NetworkInterfaceId: aws.String(a.id("eni")), SubnetId: w.subnet.SubnetId, VpcId: w.subnet.VpcId, OwnerId: &a.config.Account, Status: types.NetworkInterfaceStatusInUse,
			InterfaceType: aws.String("interface"), SourceDestCheck: aws.Bool(true),
			Attachment: &types.InstanceNetworkInterfaceAttachment{
				AttachmentId: aws.String(a.id("eni-attach")), DeviceIndex: aws.Int32(aws.ToInt32(wanted.DeviceIndex)), NetworkCardIndex: aws.Int32(aws.ToInt32(wanted.NetworkCardIndex)),
				DeleteOnTermination: aws.Bool(true), Status: types.AttachmentStatusAttached, AttachTime: i.LaunchTime,
			},
		}
		if wanted.InterfaceType != nil {
			made.InterfaceType = aws.String(*wanted.InterfaceType)
		}
		if n == 0 {
			made.PrivateIpAddress = aws.String(address.String())
		}
		for range aws.ToInt32(wanted.Ipv4PrefixCount) {
			made.Ipv4Prefixes = append(made.Ipv4Prefixes, types.InstanceIpv4Prefix{Ipv4Prefix: aws.String(w.subnet.address().String() + "/28")})
		}
		for _, id := range wanted.Groups {
			j := slices.IndexFunc(a.groups, func(g types.SecurityGroup) bool { return *g.GroupId == id })
			g := types.GroupIdentifier{GroupId: aws.String(id), GroupName: a.groups[j].GroupName}
			made.Groups = append(made.Groups, g)
			if !seen[id] {
				seen[id] = true
				i.SecurityGroups = append(i.SecurityGroups, g)
			}
		}
		i.NetworkInterfaces = append(i.NetworkInterfaces, made)
	}
}

// SetVisibleAfter changes Config.VisibleAfter for the launches to come.
func (a *AWS) SetVisibleAfter(delay time.Duration) {
	a.locked(func(time.Time) { a.config.VisibleAfter = delay })
}
