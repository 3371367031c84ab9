// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/launch"
	"karpenter/cloud/aws/template"
	"karpenter/model"
)

// role is the machine of a rehearsal.
type role struct {
	class        *awsv1.EC2NodeClass
	instanceType string
	want         *template.Want
	template     string // name of its launch template, once made
	tags         []types.Tag
}

func compareNames(a, b client.Object) int { return cmp.Compare(a.GetName(), b.GetName()) }

// cast chooses the instance type and the image of a dry run: of the types that
// the class's NodePools can launch, the smallest that boots from an image
// without drivers for devices, or else from any other image.
func cast(class *awsv1.EC2NodeClass, group *instancetype.PlacementGroup, facts []*instancetype.Facts, pools []v1.NodePool, config *Config) (*role, error) {
	of := instancetype.NewClass(class, group)
	best, ok := choose(candidates(of, facts, pools, config), image.NewChoice(class.Status.AMIs))
	if !ok {
		return nil, errors.New("no instance type that the class allows boots from any of status.amis")
	}
	if config.Language != nil {
		formulas, err := instancetype.NewFormulas(config.Language, class.Spec.Kubelet)
		if err != nil {
			return nil, fmt.Errorf("spec.kubelet: %w", err)
		}
		if of, _, err = formulas.Apply(of, best.facts, &config.Cluster); err != nil {
			return nil, fmt.Errorf("spec.kubelet: %w", err)
		}
	}
	want := &template.Want{
		Claim: rehearsedClaim(pools), Class: class, CapacityType: v1.CapacityTypeOnDemand, Tenancy: tenancy(pools),
		Candidates: []launch.Candidate{{Type: instancetype.New(best.facts, of, &config.Cluster)}},
	}
	if group != nil {
		want.GroupID = group.ID
	}
	return &role{
		class: class, instanceType: best.facts.InstanceType, want: want,
		tags: template.Tags(launch.Tags(config.ClusterName, want.Claim, class)),
	}, nil
}

// choose returns the best candidate of the first group in which one boots.
func choose(groups [][]candidate, images *image.Choice) (candidate, bool) {
	for _, group := range groups {
		var booting []candidate
		for _, c := range group {
			if ami, ok := images.For(c.instanceType); ok {
				c.plain = !slices.ContainsFunc(ami.Requirements, isForDevice)
				booting = append(booting, c)
			}
		}
		if len(booting) > 0 {
			return slices.MinFunc(booting, func(a, b candidate) int {
				return cmp.Or(
					compareTrueFirst(a.plain, b.plain),
					cmp.Compare(a.facts.VCpuInfo.DefaultVCpus, b.facts.VCpuInfo.DefaultVCpus),
					strings.Compare(a.facts.InstanceType, b.facts.InstanceType))
			}), true
		}
	}
	return candidate{}, false
}

func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// candidate is a type that could be rehearsed.
type candidate struct {
	facts        *instancetype.Facts
	instanceType *cloud.InstanceType
	plain        bool // its image has no drivers for devices
}

// candidates returns the types that the class can start: those that a NodePool
// may buy, though not for Windows; a common type of each architecture; and all.
func candidates(of *instancetype.Class, facts []*instancetype.Facts, pools []v1.NodePool, config *Config) [][]candidate {
	var all, bought, common []candidate
	demands := demandsOf(pools)
	for _, f := range facts {
		if !instancetype.Supported(f, of) {
			continue
		}
		c := candidate{facts: f, instanceType: instancetype.New(f, of, &config.Cluster)}
		all = append(all, c)
		if slices.ContainsFunc(demands, func(d model.Requirements) bool { _, ok := c.instanceType.Requirements.Intersects(d); return ok }) {
			bought = append(bought, c)
		}
		if f.InstanceType == "m5.large" || f.InstanceType == "m6g.large" {
			common = append(common, c)
		}
	}
	if of.Family.IsWindows() {
		bought = nil
	}
	return [][]candidate{bought, common, all}
}

// demandsOf returns what each pool wants of types.
func demandsOf(pools []v1.NodePool) []model.Requirements {
	labels := v1.DefaultLabels().With(awsv1.Labels())
	var out []model.Requirements
	for i := range pools {
		template := &pools[i].Spec.Template
		demand := model.LabelRequirements(template.Labels)
		for _, r := range template.Spec.Requirements {
			demand = demand.And(model.NewRequirement(labels.CanonicalKey(r.Key), model.Operator(r.Operator), r.Values...))
		}
		out = append(out, demand)
	}
	return out
}

// isForDevice reports whether an image with the requirement is for types with
// GPUs or accelerators.
func isForDevice(r corev1.NodeSelectorRequirement) bool {
	device := r.Key == awsv1.InstanceGPUCountLabelKey || r.Key == awsv1.InstanceAcceleratorCountLabelKey
	return device && r.Operator != corev1.NodeSelectorOpDoesNotExist
}

// tenancy is dedicated if any of the pools names it.
func tenancy(pools []v1.NodePool) string {
	for _, demand := range demandsOf(pools) {
		if r, ok := demand.Get(awsv1.InstanceTenancyLabelKey); ok && r.Has(awsv1.InstanceTenancyDedicated) {
			return awsv1.InstanceTenancyDedicated
		}
	}
	return awsv1.InstanceTenancyDefault
}

// rehearsedClaim is a claim of the first of the pools, as permissions may depend
// on its tags, and the size of user data on its labels.
func rehearsedClaim(pools []v1.NodePool) *v1.NodeClaim {
	claim := &v1.NodeClaim{}
	if len(pools) > 0 {
		template := &pools[0].Spec.Template
		claim.Labels = maps.Clone(template.Labels)
		metav1.SetMetaDataLabel(&claim.ObjectMeta, v1.NodePoolLabelKey, pools[0].Name)
		claim.Spec.Taints, claim.Spec.StartupTaints = template.Spec.Taints, template.Spec.StartupTaints
	}
	return claim
}

// fleet is the dry run of CreateFleet.
func (r *role) fleet() *ec2.CreateFleetInput {
	var overrides []types.FleetLaunchTemplateOverridesRequest
	for _, subnet := range r.class.Status.Subnets {
		overrides = append(overrides, types.FleetLaunchTemplateOverridesRequest{
			InstanceType: types.InstanceType(r.instanceType), SubnetId: aws.String(subnet.ID),
		})
	}
	return &ec2.CreateFleetInput{
		DryRun: aws.Bool(true),
		Type:   types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &r.template, Version: aws.String("$Latest")},
			Overrides:                   overrides,
		}},
		OnDemandOptions: &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand, TotalTargetCapacity: aws.Int32(1),
		},
		TagSpecifications: r.tagged(types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeFleet),
	}
}

// instances is the dry run of RunInstances in the subnet.
func (r *role) instances(subnet string) *ec2.RunInstancesInput {
	return &ec2.RunInstancesInput{
		DryRun:            aws.Bool(true),
		MinCount:          aws.Int32(1),
		MaxCount:          aws.Int32(1),
		InstanceType:      types.InstanceType(r.instanceType),
		LaunchTemplate:    &types.LaunchTemplateSpecification{LaunchTemplateName: &r.template, Version: aws.String("$Latest")},
		NetworkInterfaces: r.interfaces(subnet),
		TagSpecifications: r.tagged(types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface),
	}
}

func (r *role) interfaces(subnet string) []types.InstanceNetworkInterfaceSpecification {
	var groups []string
	for _, g := range r.class.Status.SecurityGroups {
		groups = append(groups, g.ID)
	}
	var out []types.InstanceNetworkInterfaceSpecification
	for _, n := range r.class.Spec.NetworkInterfaces {
		one := types.InstanceNetworkInterfaceSpecification{
			NetworkCardIndex: aws.Int32(n.NetworkCardIndex), DeviceIndex: aws.Int32(n.DeviceIndex),
			InterfaceType: aws.String(string(n.InterfaceType)), Groups: groups, SubnetId: &subnet,
		}
		if n.InterfaceType != awsv1.InterfaceTypeEFAOnly {
			one.AssociatePublicIpAddress = r.class.Spec.AssociatePublicIPAddress
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		out = append(out, types.InstanceNetworkInterfaceSpecification{
			DeviceIndex: aws.Int32(0), Groups: groups, SubnetId: &subnet, AssociatePublicIpAddress: r.class.Spec.AssociatePublicIPAddress,
		})
	}
	return out
}

func (r *role) tagged(resources ...types.ResourceType) []types.TagSpecification {
	var out []types.TagSpecification
	for _, resource := range resources {
		out = append(out, types.TagSpecification{ResourceType: resource, Tags: r.tags})
	}
	return out
}
