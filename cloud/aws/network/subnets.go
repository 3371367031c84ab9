// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/answers"
	"karpenter/cloud/aws/client"
)

// pageSize is how many resources one answer of EC2 holds at most.
const pageSize = 500

// SubnetAPI is the call to AWS that Subnets needs.
type SubnetAPI interface {
	DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
}

// version is a spec of a node class: a change of it is asked about at once.
type version struct {
	uid        apitypes.UID
	generation int64
}

func versionOf(class *awsv1.EC2NodeClass) version { return version{class.UID, class.Generation} }

// Subnets knows the subnets of node classes. It may be used concurrently.
type Subnets struct {
	api     SubnetAPI
	clock   clock.PassiveClock
	lists   *answers.Cache[version, []awsv1.Subnet]
	account account
	public  sync.Map // whether a subnet assigns public IPv4 addresses, by ID
}

// NewSubnets returns Subnets that ask EC2 again after the refresh interval.
func NewSubnets(api SubnetAPI, clock clock.PassiveClock, refresh time.Duration) *Subnets {
	return &Subnets{
		api: api, clock: clock,
		lists:   answers.New[version, []awsv1.Subnet](clock, refresh),
		account: account{lasting: max(5*time.Minute, refresh+4*time.Minute), subnets: map[string]*state{}},
	}
}

// Of returns the subnets that the class selects, those with most free addresses
// first, then by ID. The answer is shared and must not be changed.
func (s *Subnets) Of(ctx context.Context, class *awsv1.EC2NodeClass) ([]awsv1.Subnet, error) {
	return s.lists.Get(ctx, versionOf(class), func(ctx context.Context) ([]awsv1.Subnet, error) {
		asked := s.clock.Now()
		found, err := s.describe(ctx, class.Spec.SubnetSelectorTerms)
		if err != nil {
			return nil, err
		}
		free := map[string]int64{}
		var out []awsv1.Subnet
		for _, subnet := range found {
			id := aws.ToString(subnet.SubnetId)
			if _, twice := free[id]; twice {
				continue
			}
			free[id] = int64(aws.ToInt32(subnet.AvailableIpAddressCount))
			s.public.Store(id, aws.ToBool(subnet.MapPublicIpOnLaunch))
			out = append(out, awsv1.Subnet{ID: id, Zone: aws.ToString(subnet.AvailabilityZone), ZoneID: aws.ToString(subnet.AvailabilityZoneId)})
		}
		slices.SortFunc(out, func(a, b awsv1.Subnet) int {
			return cmp.Or(cmp.Compare(free[b.ID], free[a.ID]), cmp.Compare(a.ID, b.ID))
		})
		s.account.counted(free, asked)
		return out, nil
	})
}

// PublicZones returns the zones in which all subnets in the status of the class
// assign public IPv4 addresses to instances, sorted. It asks EC2 only about subnets
// that it has not described yet; those of which it does not learn assign none.
func (s *Subnets) PublicZones(ctx context.Context, class *awsv1.EC2NodeClass) []string {
	unknown := slices.ContainsFunc(class.Status.Subnets, func(n awsv1.Subnet) bool {
		_, known := s.public.Load(n.ID)
		return !known
	})
	if unknown {
		if _, err := s.Of(ctx, class); err != nil {
			log.FromContext(ctx).Error(err, "counting no public IPv4 addresses until EC2 describes the subnets", "EC2NodeClass", class.Name)
		}
	}
	zones := map[string]bool{}
	for _, subnet := range class.Status.Subnets {
		public, _ := s.public.Load(subnet.ID)
		others, seen := zones[subnet.Zone]
		zones[subnet.Zone] = public == true && (others || !seen)
	}
	maps.DeleteFunc(zones, func(_ string, public bool) bool { return !public })
	return slices.Sorted(maps.Keys(zones))
}

// describe asks for what any of the terms selects; a subnet may come twice.
func (s *Subnets) describe(ctx context.Context, terms []awsv1.SubnetSelectorTerm) ([]types.Subnet, error) {
	var out []types.Subnet
	for _, filters := range subnetFilters(terms) {
		pages := ec2.NewDescribeSubnetsPaginator(s.api, &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: aws.Int32(pageSize)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("describe subnets: %w", err)
			}
			out = append(out, page.Subnets...)
		}
	}
	return out, nil
}

// subnetFilters returns the filters of each question to be asked. A term that
// says nothing selects nothing.
func subnetFilters(terms []awsv1.SubnetSelectorTerm) [][]types.Filter {
	var out [][]types.Filter
	var ids []string
	for _, term := range terms {
		switch {
		case term.ID != "":
			ids = append(ids, term.ID)
		case len(term.Tags) > 0:
			out = append(out, client.TagFilters(term.Tags))
		}
	}
	if len(ids) > 0 {
		out = append(out, []types.Filter{client.Filter("subnet-id", ids...)})
	}
	return out
}
