// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"karpenter/cloud"
	"karpenter/model"
)

// provider sells a fixed price list and nothing else: only what a decision
// asks of a provider is there.
type provider struct {
	cloudprovider.CloudProvider
	types []*cloudprovider.InstanceType
}

// GetInstanceTypes implements cloudprovider.CloudProvider.
func (p *provider) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return p.types, nil
}

// GetSupportedNodeClasses implements cloudprovider.CloudProvider.
func (p *provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&kwokv1alpha1.KWOKNodeClass{}}
}

// Name implements cloudprovider.CloudProvider.
func (p *provider) Name() string { return "bench" }

// instanceTypes returns the types as upstream wants them.
func instanceTypes(types []*cloud.InstanceType) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for _, t := range types {
		u := &cloudprovider.InstanceType{
			Name: t.Name, Requirements: requirements(t.Requirements), Capacity: t.Capacity,
			Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: t.Overhead.Total()},
		}
		for _, o := range t.Offerings {
			u.Offerings = append(u.Offerings, &cloudprovider.Offering{
				Requirements: requirements(o.Requirements), Price: o.Price.Dollars(), Available: o.Available,
			})
		}
		out = append(out, u)
	}
	return out
}

func requirements(rs model.Requirements) scheduling.Requirements {
	out := scheduling.NewRequirements()
	for _, r := range rs {
		out.Add(scheduling.NewRequirement(r.Key, corev1.NodeSelectorOperator(r.Operator()), r.Values...))
	}
	return out
}
