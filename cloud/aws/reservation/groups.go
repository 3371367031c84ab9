// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/utils/clock"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/answers"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/instancetype"
)

// ErrNoGroup says that there is no placement group as the selector names it.
var ErrNoGroup = errors.New("not found")

// GroupAPI is the call to AWS that Groups needs.
type GroupAPI interface {
	DescribePlacementGroups(context.Context, *ec2.DescribePlacementGroupsInput, ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error)
}

// Groups knows the placement groups of node classes. It may be used
// concurrently.
type Groups struct {
	api   GroupAPI
	found *answers.Cache[awsv1.PlacementGroupSelector, *instancetype.PlacementGroup]
	older *answers.Cache[awsv1.PlacementGroupSelector, *instancetype.PlacementGroup]
}

// NewGroups returns Groups that ask EC2 again after a minute.
func NewGroups(api GroupAPI, clock clock.PassiveClock) *Groups {
	return &Groups{
		api:   api,
		found: answers.New[awsv1.PlacementGroupSelector, *instancetype.PlacementGroup](clock, ttl),
		older: answers.New[awsv1.PlacementGroupSelector, *instancetype.PlacementGroup](clock, 24*time.Hour),
	}
}

// Of returns the placement group that the selector names, ErrNoGroup when there
// is none. The answer is shared and must not be changed.
func (g *Groups) Of(ctx context.Context, selector awsv1.PlacementGroupSelector) (*instancetype.PlacementGroup, error) {
	group, err := g.found.Get(ctx, selector, func(ctx context.Context) (*instancetype.PlacementGroup, error) { return g.ask(ctx, selector) })
	switch {
	case err == nil:
		g.older.Put(selector, group)
	case errors.Is(err, ErrNoGroup):
		g.older.Forget(selector)
	}
	return group, err
}

// For returns the placement group of the class, nil when it asks for none. While
// EC2 does not answer, what it said within the last day holds.
func (g *Groups) For(ctx context.Context, class *awsv1.EC2NodeClass) (*instancetype.PlacementGroup, error) {
	selector := class.Spec.PlacementGroupSelector
	if selector == nil {
		return nil, nil
	}
	group, err := g.Of(ctx, *selector)
	if err == nil || errors.Is(err, ErrNoGroup) {
		return group, err
	}
	return g.older.Get(ctx, *selector, func(context.Context) (*instancetype.PlacementGroup, error) { return nil, err })
}

func (g *Groups) ask(ctx context.Context, selector awsv1.PlacementGroupSelector) (*instancetype.PlacementGroup, error) {
	input := &ec2.DescribePlacementGroupsInput{Filters: []types.Filter{client.Filter("state", string(types.PlacementGroupStateAvailable))}}
	if selector.ID != "" {
		input.GroupIds = []string{selector.ID}
	} else {
		input.GroupNames = []string{selector.Name}
	}
	out, err := g.api.DescribePlacementGroups(ctx, input)
	if err != nil && !unknown(client.Code(err)) {
		return nil, fmt.Errorf("describe placement group %s%s: %w", selector.ID, selector.Name, err)
	}
	if err != nil || len(out.PlacementGroups) == 0 {
		return nil, fmt.Errorf("placement group %s%s: %w", selector.ID, selector.Name, ErrNoGroup)
	}
	group := out.PlacementGroups[0]
	return &instancetype.PlacementGroup{
		ID:         aws.ToString(group.GroupId),
		Strategy:   string(group.Strategy),
		Partitions: int(aws.ToInt32(group.PartitionCount)),
	}, nil
}

// unknown reports whether EC2 says that there is no such group.
func unknown(code string) bool {
	return strings.HasPrefix(code, "InvalidPlacementGroup") && (strings.HasSuffix(code, ".Unknown") || strings.HasSuffix(code, ".NotFound"))
}
