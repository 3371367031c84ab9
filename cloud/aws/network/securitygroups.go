// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/utils/clock"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/answers"
	"karpenter/cloud/aws/client"
)

// SecurityGroupAPI is the call to AWS that SecurityGroups needs.
type SecurityGroupAPI interface {
	DescribeSecurityGroups(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
}

// SecurityGroups knows the security groups of node classes. It may be used
// concurrently.
type SecurityGroups struct {
	api   SecurityGroupAPI
	lists *answers.Cache[version, []awsv1.SecurityGroup]
}

// NewSecurityGroups returns SecurityGroups that ask EC2 again after the refresh interval.
func NewSecurityGroups(api SecurityGroupAPI, clock clock.PassiveClock, refresh time.Duration) *SecurityGroups {
	return &SecurityGroups{api: api, lists: answers.New[version, []awsv1.SecurityGroup](clock, refresh)}
}

// Of returns the security groups that the class selects, by ID. The answer is
// shared and must not be changed.
func (s *SecurityGroups) Of(ctx context.Context, class *awsv1.EC2NodeClass) ([]awsv1.SecurityGroup, error) {
	return s.lists.Get(ctx, versionOf(class), func(ctx context.Context) ([]awsv1.SecurityGroup, error) {
		var out []awsv1.SecurityGroup
		for _, filters := range groupFilters(class.Spec.SecurityGroupSelectorTerms) {
			pages := ec2.NewDescribeSecurityGroupsPaginator(s.api, &ec2.DescribeSecurityGroupsInput{Filters: filters, MaxResults: aws.Int32(pageSize)})
			for pages.HasMorePages() {
				page, err := pages.NextPage(ctx)
				if err != nil {
					return nil, fmt.Errorf("describe security groups: %w", err)
				}
				for _, group := range page.SecurityGroups {
					out = append(out, awsv1.SecurityGroup{ID: aws.ToString(group.GroupId), Name: aws.ToString(group.GroupName)})
				}
			}
		}
		slices.SortFunc(out, func(a, b awsv1.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
		return slices.Compact(out), nil
	})
}

// groupFilters returns the filters of each question to be asked. A term that
// says nothing selects nothing.
func groupFilters(terms []awsv1.SecurityGroupSelectorTerm) [][]types.Filter {
	var out [][]types.Filter
	var ids, names []string
	for _, term := range terms {
		switch {
		case term.ID != "":
			ids = append(ids, term.ID)
		case term.Name != "" && len(term.Tags) == 0:
			names = append(names, term.Name)
		case term.Name != "":
			out = append(out, append(client.TagFilters(term.Tags), client.Filter("group-name", term.Name)))
		case len(term.Tags) > 0:
			out = append(out, client.TagFilters(term.Tags))
		}
	}
	if len(ids) > 0 {
		out = append(out, []types.Filter{client.Filter("group-id", ids...)})
	}
	if len(names) > 0 {
		out = append(out, []types.Filter{client.Filter("group-name", names...)})
	}
	return out
}
