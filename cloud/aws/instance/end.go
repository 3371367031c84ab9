// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"karpenter/cloud"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/batch"
)

// End terminates an instance. Nil means that the termination is in progress;
// the error is a cloud.NotFoundError if the instance is gone.
func (s *Instances) End(ctx context.Context, id string) error {
	i, err := s.Read(ctx, id)
	if err != nil {
		return err
	}
	if s.shifted(i) {
		return fmt.Errorf("instance %s is in zone %s, which a zonal shift leads traffic away from: skipping termination", id, i.Zone)
	}
	if i.Ending() {
		return nil
	}
	_, err = s.terminate.Do(ctx, id)
	switch {
	case err == nil:
		ending := *i
		ending.State = types.InstanceStateNameShuttingDown
		s.remember(&ending)
		return nil
	case !cloud.IsNotFound(err):
		s.config.Metrics.endFailed(i)
		return fmt.Errorf("terminate instance %s: %w", id, err)
	case s.launches.unseen(id):
		return nil // to be tried again
	}
	s.forget(id)
	return err
}

// terminateAll ends many instances with one call, or a few if EC2 rejects some of
// them. Instances that EC2 leaves alive are tried once more, each alone.
func (s *Instances) terminateAll(ctx context.Context, ids []string) []batch.Answer[struct{}] {
	var mu sync.Mutex
	ended := map[string]bool{}
	call := func(ids []string) error {
		part, err := s.terminateIDs(ctx, ids)
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(ended, part)
		return err
	}
	all := distinct(ids)
	failed := apart(all, call, func(error) bool { return true })
	alive := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return ended[id] || failed[id] != nil })
	oneByOne(alive, call, failed)
	answers := make([]batch.Answer[struct{}], len(ids))
	for i, id := range ids {
		answers[i].Err = refusal(id, ended[id], failed[id])
	}
	return answers
}

// refusal returns why an instance was not terminated, or nil if it was.
func refusal(id string, ended bool, err error) error {
	switch {
	case client.NotFound(err):
		return notFound(id)
	case err == nil && !ended:
		return fmt.Errorf("EC2 was asked to terminate instance %s and does not", id)
	}
	return err
}

// terminateIDs returns which of the instances end.
func (s *Instances) terminateIDs(ctx context.Context, ids []string) (map[string]bool, error) {
	out, err := s.config.EC2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids})
	if err != nil {
		return nil, err
	}
	ended := map[string]bool{}
	for _, change := range out.TerminatingInstances {
		if now := change.CurrentState; now != nil {
			ended[aws.ToString(change.InstanceId)] =
				now.Name == types.InstanceStateNameShuttingDown || now.Name == types.InstanceStateNameTerminated
		}
	}
	return ended, nil
}

// Tag sets tags of an instance. The controller's usual permissions allow Name,
// karpenter.sh/nodeclaim and eks:eks-cluster-name. The error is a
// cloud.NotFoundError when the instance is gone.
func (s *Instances) Tag(ctx context.Context, id string, tags map[string]string) error {
	known := s.known(id)
	if s.shifted(known) {
		return fmt.Errorf("instance %s is in zone %s, which a zonal shift leads traffic away from: skipping tagging", id, known.Zone)
	}
	_, err := s.config.EC2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: ec2Tags(tags)})
	if client.NotFound(err) {
		return notFound(id)
	}
	if err != nil {
		return fmt.Errorf("tag instance %s: %w", id, err)
	}
	s.tagged(id, tags)
	return nil
}

// tagged updates what is known of the instance.
func (s *Instances) tagged(id string, tags map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.cache[id]
	if !ok {
		return
	}
	now := *known
	now.Tags = maps.Clone(known.Tags)
	maps.Copy(now.Tags, tags)
	s.cache[id] = &now
}

// ec2Tags returns tags as EC2 takes them, sorted by key.
func ec2Tags(tags map[string]string) []types.Tag {
	var out []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return out
}
