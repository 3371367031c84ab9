// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/client"
)

// pageSize is how many templates EC2 returns at once, at most.
const pageSize = 200

// Maintain deletes templates that no one has wanted for a minute. The first call
// that can also takes those in that earlier controllers have left. To be called
// every Period on the leader.
func (t *Templates) Maintain(ctx context.Context) error {
	return errors.Join(t.hydrate(ctx), t.expire(ctx))
}

// hydrate learns once of the templates there are.
func (t *Templates) hydrate(ctx context.Context) error {
	t.mu.Lock()
	hydrated := t.hydrated
	t.mu.Unlock()
	if hydrated {
		return nil
	}
	found, err := t.list(ctx, filter("tag:"+awsv1.ClusterNameTagKey, t.config.Cluster.Name))
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hydrated = true
	for _, each := range found {
		name := *each.LaunchTemplateName
		if _, ok := t.known[name]; !ok && t.attempts[name] == nil {
			t.known[name] = known{id: *each.LaunchTemplateId, expires: t.config.Clock.Now().Add(lasting)}
		}
	}
	return nil
}

// expire deletes what is over.
func (t *Templates) expire(ctx context.Context) error {
	var errs []error
	for _, name := range t.over() {
		mine, was := t.beginDeletion(name)
		if mine == nil {
			continue
		}
		err := t.delete(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String(was.id)})
		if err != nil {
			errs = append(errs, fmt.Errorf("deleting launch template %s: %w", name, err))
		}
		t.endDeletion(name, mine, was, err)
	}
	return errors.Join(errs...)
}

// over lists the templates that are, by name.
func (t *Templates) over() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.config.Clock.Now()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(t.known)) {
		if !t.known[name].expires.After(now) {
			out = append(out, name)
		}
	}
	return out
}

// beginDeletion begins to delete a template, unless it was wanted meanwhile.
func (t *Templates) beginDeletion(name string) (mine *attempt, was known) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.known[name]
	if !ok || k.expires.After(t.config.Clock.Now()) || t.attempts[name] != nil {
		return nil, known{}
	}
	mine = &attempt{done: make(chan struct{})}
	t.attempts[name] = mine
	delete(t.known, name)
	return mine, k
}

// endDeletion ends it. What could not be deleted is deleted another time; until
// then it is not known whether it is there.
func (t *Templates) endDeletion(name string, mine *attempt, was known, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		was.doubtful = true
		t.known[name] = was
	}
	delete(t.attempts, name)
	close(mine.done)
}

// Forget notes that templates, by name, may not be there any more. It deletes
// nothing.
func (t *Templates) Forget(names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		delete(t.known, name)
	}
}

// DeleteAll deletes the templates of a class that is no more.
func (t *Templates) DeleteAll(ctx context.Context, class string) error {
	found, err := t.list(ctx,
		filter("tag:"+awsv1.ClusterNameTagKey, t.config.Cluster.Name), filter("tag:"+awsv1.NodeClassTagKey, class))
	if err != nil {
		return err
	}
	var errs []error
	for _, each := range found {
		name := *each.LaunchTemplateName
		t.Forget([]string{name})
		if err := t.delete(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: each.LaunchTemplateName}); err != nil {
			errs = append(errs, fmt.Errorf("deleting launch template %s: %w", name, err))
		}
	}
	t.config.Metrics.forget(class)
	return errors.Join(errs...)
}

// delete deletes a template that may be gone.
func (t *Templates) delete(ctx context.Context, in *ec2.DeleteLaunchTemplateInput) error {
	if _, err := t.config.EC2.DeleteLaunchTemplate(ctx, in); !client.NotFound(err) {
		return err
	}
	return nil
}

func (t *Templates) list(ctx context.Context, filters ...types.Filter) ([]types.LaunchTemplate, error) {
	var out []types.LaunchTemplate
	for in := (&ec2.DescribeLaunchTemplatesInput{Filters: filters, MaxResults: aws.Int32(pageSize)}); ; {
		page, err := t.config.EC2.DescribeLaunchTemplates(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("listing launch templates: %w", err)
		}
		out = append(out, page.LaunchTemplates...)
		if in.NextToken = page.NextToken; aws.ToString(in.NextToken) == "" {
			return out, nil
		}
	}
}

func filter(name, value string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: []string{value}}
}
