// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"k8s.io/utils/clock"

	"karpenter/cloud/aws/answers"
	"karpenter/cloud/aws/client"
)

// ServiceCIDR returns the addresses of an EKS cluster's Services. They never
// change, so EKS is asked only until it has answered once. It is safe for
// concurrent use.
type ServiceCIDR struct {
	eks     client.EKS
	cluster string
	found   *answers.Cache[string, string] // by cluster
}

// NewServiceCIDR returns that of the cluster of the name, not known yet.
func NewServiceCIDR(eks client.EKS, cluster string, clk clock.PassiveClock) *ServiceCIDR {
	return &ServiceCIDR{eks, cluster, answers.New[string, string](clk, math.MaxInt64)}
}

// Get returns the addresses: those of IPv4, or else those of IPv6.
func (s *ServiceCIDR) Get(ctx context.Context) (string, error) {
	return s.found.Get(ctx, s.cluster, func(ctx context.Context) (string, error) {
		out, err := s.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(s.cluster)})
		if err != nil {
			return "", fmt.Errorf("describing cluster %s: %w", s.cluster, err)
		}
		if out.Cluster != nil && out.Cluster.KubernetesNetworkConfig != nil {
			network := out.Cluster.KubernetesNetworkConfig
			for _, cidr := range []*string{network.ServiceIpv4Cidr, network.ServiceIpv6Cidr} {
				if aws.ToString(cidr) != "" {
					return *cidr, nil
				}
			}
		}
		return "", fmt.Errorf("cluster %s has no service CIDR", s.cluster)
	})
}
