// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	shifttypes "github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// eksAPI is Elastic Kubernetes Service.
type eksAPI struct{ a *AWS }

// cluster is the one cluster of the account.
type cluster struct{ types.Cluster }

func (a *AWS) clusterARN() string {
	return a.arn("eks", a.config.Region, "cluster/"+a.config.Cluster)
}

func (a *AWS) furnishCluster() {
	now := a.clock.Now()
	var subnets []string
	for _, s := range a.subnets {
		subnets = append(subnets, *s.SubnetId)
	}
	a.cluster.Cluster = types.Cluster{
		Name: &a.config.Cluster, Arn: aws.String(a.clusterARN()), Version: aws.String(a.config.KubernetesVersion), Endpoint: aws.String(a.config.Endpoint),
		CertificateAuthority:    &types.Certificate{Data: aws.String(a.config.CertificateAuthority)},
		KubernetesNetworkConfig: &types.KubernetesNetworkConfigResponse{ServiceIpv4Cidr: aws.String("10.100.0.0/16"), IpFamily: types.IpFamilyIpv4},
		ResourcesVpcConfig:      &types.VpcConfigResponse{VpcId: aws.String(a.vpc), SubnetIds: subnets},
		Status:                  types.ClusterStatusActive, CreatedAt: &now, PlatformVersion: aws.String("eks.1"),
	}
}

// SetKubernetesVersion upgrades the cluster.
func (a *AWS) SetKubernetesVersion(version string) {
	a.locked(func(now time.Time) {
		defer a.record(now, a.ids, "SetKubernetesVersion", version)
		a.cluster.Version = &version
	})
}

// SetServiceCIDR changes the cluster's range of service addresses to an IPv4 or
// IPv6 one.
func (a *AWS) SetServiceCIDR(cidr string, ipv6 bool) {
	a.locked(func(time.Time) {
		if ipv6 {
			a.cluster.KubernetesNetworkConfig = &types.KubernetesNetworkConfigResponse{ServiceIpv6Cidr: &cidr, IpFamily: types.IpFamilyIpv6}
		} else {
			a.cluster.KubernetesNetworkConfig = &types.KubernetesNetworkConfigResponse{ServiceIpv4Cidr: &cidr, IpFamily: types.IpFamilyIpv4}
		}
	})
}

// DescribeCluster describes the cluster.
func (s eksAPI) DescribeCluster(ctx context.Context, in *eks.DescribeClusterInput, _ ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	return answer(ctx, s.a, "DescribeCluster", in, func(time.Time) (*eks.DescribeClusterOutput, error) {
		if name := aws.ToString(in.Name); name != s.a.config.Cluster {
			return nil, &types.ResourceNotFoundException{Message: aws.String("No cluster found for name: " + name + ".")}
		}
		return &eks.DescribeClusterOutput{Cluster: new(copied(s.a.cluster.Cluster))}, nil
	})
}

// zonalShiftAPI is Application Recovery Controller.
type zonalShiftAPI struct{ a *AWS }

type shift struct {
	zoneID         string
	started, until time.Time
	applied        bool
}

// ShiftAway moves the cluster's traffic away from a zone, named by its ID, until
// a time. A shift that is not applied has no effect, as while another one lasts.
func (a *AWS) ShiftAway(zoneID string, until time.Time, applied bool) {
	a.locked(func(now time.Time) { a.shifts = append(a.shifts, shift{zoneID, now, until, applied}) })
}

// EndShifts cancels all zonal shifts.
func (a *AWS) EndShifts() { a.locked(func(time.Time) { a.shifts = nil }) }

// GetManagedResource tells which zones the cluster is shifted away from.
func (s zonalShiftAPI) GetManagedResource(ctx context.Context, in *arczonalshift.GetManagedResourceInput, _ ...func(*arczonalshift.Options)) (*arczonalshift.GetManagedResourceOutput, error) {
	return answer(ctx, s.a, "GetManagedResource", in, func(now time.Time) (*arczonalshift.GetManagedResourceOutput, error) {
		arn := s.a.clusterARN()
		if aws.ToString(in.ResourceIdentifier) != arn {
			return nil, &shifttypes.ResourceNotFoundException{Message: aws.String("The resource " + aws.ToString(in.ResourceIdentifier) + " was not found.")}
		}
		out := &arczonalshift.GetManagedResourceOutput{Arn: &arn, Name: aws.String(s.a.config.Cluster), AppliedWeights: map[string]float32{}, ZonalShifts: []shifttypes.ZonalShiftInResource{}}
		for _, z := range s.a.zones {
			out.AppliedWeights[z.id] = 1
		}
		for i, each := range s.a.shifts {
			if !each.until.After(now) {
				continue
			}
			status := shifttypes.AppliedStatusNotApplied
			if each.applied {
				status = shifttypes.AppliedStatusApplied
				out.AppliedWeights[each.zoneID] = 0
			}
			out.ZonalShifts = append(out.ZonalShifts, shifttypes.ZonalShiftInResource{
				AppliedStatus: status, AwayFrom: aws.String(each.zoneID), ExpiryTime: aws.Time(each.until), StartTime: aws.Time(each.started), ResourceIdentifier: &arn,
				ZonalShiftId: aws.String(string(rune('a'+i)) + "-shift"), Comment: aws.String(""),
			})
		}
		return out, nil
	})
}
