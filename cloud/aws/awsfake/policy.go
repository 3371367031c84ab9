// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// HoldToPolicy sets Config.ControllerPolicy: from now on callers can do what the
// controller's policies allow, or everything.
func (a *AWS) HoldToPolicy(hold bool) {
	a.locked(func(time.Time) { a.config.ControllerPolicy = hold })
}

// permitted rejects calls without the permission, with the error of the
// service: because Deny has revoked it, or because the controller's policies
// don't include it.
func (a *AWS) permitted(name string, in any) error {
	for _, action := range operations[name].actions {
		if why, denied := a.guard.denied[action]; denied {
			return a.unauthorized(name, action, why)
		}
	}
	if !a.config.ControllerPolicy {
		return nil
	}
	if action := a.forbidden(in); action != "" {
		return a.unauthorized(name, action, fmt.Sprintf(NoPolicy, action))
	}
	return nil
}

func (a *AWS) unauthorized(name, action, why string) error {
	who := fmt.Sprintf("User: arn:aws:sts::%s:assumed-role/KarpenterControllerRole-%s/karpenter is not authorized to perform: %s", a.config.Account, a.config.Cluster, action)
	switch operations[name].service {
	case "EC2":
		return refuse("UnauthorizedOperation", "You are not authorized to perform this operation. %s %s", who, why)
	case "IAM":
		return refuse("AccessDenied", "%s %s", who, why)
	default:
		return refuse("AccessDeniedException", "%s %s", who, why)
	}
}

// forbidden returns the action for which the controller's policies have no
// statement that fits the call, "" when all is allowed. What they allow depends
// on tags: of the request for what is made, of the resource for what is changed.
// Resources that do not exist are left to the call.
func (a *AWS) forbidden(in any) string {
	switch in := in.(type) {
	case *ec2.CreateLaunchTemplateInput:
		return a.unlabelled(in.TagSpecifications, "ec2:CreateLaunchTemplate", types.ResourceTypeLaunchTemplate)
	case *ec2.CreateFleetInput:
		return a.forbiddenFleet(in)
	case *ec2.RunInstancesInput:
		if s := in.LaunchTemplate; s != nil {
			if t, err := a.templates.find(s.LaunchTemplateName, s.LaunchTemplateId); err == nil && !a.owned(t.Tags) {
				return "ec2:RunInstances"
			}
		}
		return a.unlabelled(in.TagSpecifications, "ec2:RunInstances", types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface)
	case *ec2.CreateTagsInput:
		return a.forbiddenTags(in)
	case *ec2.TerminateInstancesInput:
		for _, id := range in.InstanceIds {
			if i := a.instances.byID[id]; i != nil && !a.owned(i.Tags) {
				return "ec2:TerminateInstances"
			}
		}
	case *ec2.RebootInstancesInput:
		for _, id := range in.InstanceIds {
			if i := a.instances.byID[id]; i != nil && !a.owned(i.Tags) {
				return "ec2:RebootInstances"
			}
		}
	case *ec2.DeleteLaunchTemplateInput:
		if t, err := a.templates.find(in.LaunchTemplateName, in.LaunchTemplateId); err == nil && !a.owned(t.Tags) {
			return "ec2:DeleteLaunchTemplate"
		}
	case *ssm.GetParameterInput:
		if name := aws.ToString(in.Name); !strings.HasPrefix(name, "/aws/service/") && !strings.Contains(name, ":parameter/aws/service/") {
			return "ssm:GetParameter"
		}
	default:
		return a.forbiddenProfile(in)
	}
	return ""
}

// unlabelled returns the action when one of the kinds of resources would be made
// without the tags of the cluster.
func (a *AWS) unlabelled(specifications []types.TagSpecification, action string, kinds ...types.ResourceType) string {
	for _, kind := range kinds {
		list := tagged(specifications, kind)
		if !a.owned(list) || tagValue(list, "eks:eks-cluster-name") != a.config.Cluster {
			return action
		}
	}
	return ""
}

// owned reports whether the tags say that the cluster's Karpenter owns the thing.
func (a *AWS) owned(list []types.Tag) bool {
	return tagValue(list, "kubernetes.io/cluster/"+a.config.Cluster) == "owned" && slices.ContainsFunc(list, func(t types.Tag) bool { return aws.ToString(t.Key) == "karpenter.sh/nodepool" })
}

func tagValue(list []types.Tag, key string) string {
	for _, t := range list {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}

// forbiddenFleet wants the cluster's tags on all that a fleet makes, and on the
// templates it is made of.
func (a *AWS) forbiddenFleet(in *ec2.CreateFleetInput) string {
	if action := a.unlabelled(in.TagSpecifications, "ec2:CreateFleet", types.ResourceTypeFleet, types.ResourceTypeInstance, types.ResourceTypeVolume); action != "" {
		return action
	}
	for _, config := range in.LaunchTemplateConfigs {
		s := config.LaunchTemplateSpecification
		if s == nil {
			continue
		}
		t, err := a.templates.find(s.LaunchTemplateName, s.LaunchTemplateId)
		if err != nil {
			continue
		}
		var list []types.TagSpecification
		for _, ts := range t.data.TagSpecifications {
			list = append(list, types.TagSpecification(ts))
		}
		kinds := []types.ResourceType{types.ResourceTypeNetworkInterface}
		if marketOf(in, t) == Spot {
			kinds = append(kinds, types.ResourceTypeSpotInstancesRequest)
		}
		if !a.owned(t.Tags) || a.unlabelled(list, "ec2:RunInstances", kinds...) != "" {
			return "ec2:RunInstances"
		}
	}
	return ""
}

// forbiddenTags lets three tags be put on the cluster's instances.
func (a *AWS) forbiddenTags(in *ec2.CreateTagsInput) string {
	const action = "ec2:CreateTags"
	for _, tag := range in.Tags {
		key := aws.ToString(tag.Key)
		if !slices.Contains([]string{"eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"}, key) || key == "eks:eks-cluster-name" && aws.ToString(tag.Value) != a.config.Cluster {
			return action
		}
	}
	for _, id := range in.Resources {
		if i := a.instances.byID[id]; !strings.HasPrefix(id, "i-") || i != nil && !a.owned(i.Tags) {
			return action
		}
	}
	return ""
}

// forbiddenProfile lets the cluster's instance profiles be made and changed, and
// the node role be put into them.
func (a *AWS) forbiddenProfile(in any) string {
	ours := func(name *string) bool {
		p := a.iam.profiles[aws.ToString(name)]
		return p == nil || a.ownedProfile(tagsOfProfile(p.Tags))
	}
	switch in := in.(type) {
	case *iam.CreateInstanceProfileInput:
		if list := tagsOfProfile(in.Tags); !a.ownedProfile(list) || tagValue(list, "eks:eks-cluster-name") != a.config.Cluster {
			return "iam:CreateInstanceProfile"
		}
	case *iam.AddRoleToInstanceProfileInput:
		if !ours(in.InstanceProfileName) {
			return "iam:AddRoleToInstanceProfile"
		}
		if role := aws.ToString(in.RoleName); role != "KarpenterNodeRole-"+a.config.Cluster {
			if _, exists := a.iam.roles[role]; exists {
				return "iam:PassRole"
			}
		}
	case *iam.RemoveRoleFromInstanceProfileInput:
		if !ours(in.InstanceProfileName) {
			return "iam:RemoveRoleFromInstanceProfile"
		}
	case *iam.DeleteInstanceProfileInput:
		if !ours(in.InstanceProfileName) {
			return "iam:DeleteInstanceProfile"
		}
	}
	return ""
}

func (a *AWS) ownedProfile(list []types.Tag) bool {
	return tagValue(list, "kubernetes.io/cluster/"+a.config.Cluster) == "owned" && tagValue(list, "topology.kubernetes.io/region") == a.config.Region &&
		slices.ContainsFunc(list, func(t types.Tag) bool { return aws.ToString(t.Key) == "karpenter.k8s.aws/ec2nodeclass" })
}
