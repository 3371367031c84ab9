// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/batch"
)

// Settling is how long EC2 may take to show what it has started.
const Settling = 20 * time.Second

// Config configures Instances. All fields are required unless the comment says
// otherwise.
type Config struct {
	EC2     client.EC2
	Cluster string // its name
	Clock   clock.PassiveClock
	Metrics *Metrics
	Batches *batch.Metrics
	// ReservedCapacity says whether the feature gate is on.
	ReservedCapacity bool
	// Shifted reports whether traffic is shifted away from the zone with an ID.
	// Nothing is changed in such a zone, and its last known state is used. Nil
	// means there are no shifts.
	Shifted func(zoneID string) bool
	// Claims returns all NodeClaims, read from the API server.
	Claims func(context.Context) ([]Claim, error)
	Launch LaunchConfig
}

// Instances are those of one cluster. Safe for concurrent use.
type Instances struct {
	config   Config
	launches launches
	shared   singleflight.Group // of starting and listing

	describe  *batch.Batcher[string, *Instance]
	terminate *batch.Batcher[string, struct{}]
	fleets    *batch.Batcher[*item, *Instance]

	mu    sync.Mutex
	cache map[string]*Instance // by ID
}

// New returns the instances of a cluster. Start should be called when the
// process is the one that launches.
func New(c Config) *Instances {
	s := &Instances{config: c, cache: map[string]*Instance{}}
	s.launches.clock = c.Clock
	s.describe = batch.New(batch.Config[string, *Instance]{
		Name: "describe_instances", Idle: 100 * time.Millisecond, Most: time.Second, Items: 500,
		Call: s.describeAll, Metrics: c.Batches,
	})
	s.terminate = batch.New(batch.Config[string, struct{}]{
		Name: "terminate_instances", Idle: 100 * time.Millisecond, Most: time.Second, Items: 500,
		Call: s.terminateAll, Metrics: c.Batches,
	})
	s.fleets = batch.New(batch.Config[*item, *Instance]{
		Name: "create_fleet", Idle: 35 * time.Millisecond, Most: time.Second, Items: 1000,
		Key: func(i *item) string { return i.key }, Call: s.launchAll, Metrics: c.Batches,
	})
	return s
}

func notFound(id string) error {
	return &cloud.NotFoundError{Err: fmt.Errorf("EC2 instance %s", id)}
}

func (s *Instances) shifted(i *Instance) bool {
	return i != nil && s.config.Shifted != nil && s.config.Shifted(i.ZoneID)
}

// Get returns an instance as it was seen last; EC2 is asked only for one that
// it has not described yet. The error is a cloud.NotFoundError when it is gone.
func (s *Instances) Get(ctx context.Context, id string) (*Instance, error) {
	if known := s.known(id); known != nil && known.Described {
		return known, nil
	}
	return s.Read(ctx, id)
}

// Fresh reports whether the instance was launched a moment ago, so that EC2 may
// not show it yet.
func (s *Instances) Fresh(id string) bool { return s.launches.unseen(id) }

// Read is like Get, but asks EC2, except for zones with a zonal shift.
func (s *Instances) Read(ctx context.Context, id string) (*Instance, error) {
	known := s.known(id)
	if s.shifted(known) {
		return known, nil
	}
	found, err := s.describe.Do(ctx, id)
	switch {
	case err == nil:
		s.remember(found)
		return found, nil
	case !cloud.IsNotFound(err):
		return nil, fmt.Errorf("describe instance %s: %w", id, err)
	case known != nil && s.launches.unseen(id):
		return known, nil
	case s.launches.unseen(id):
		return nil, fmt.Errorf("EC2 does not show instance %s yet", id)
	}
	s.forget(id)
	return nil, err
}

func (s *Instances) known(id string) *Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache[id]
}

func (s *Instances) remember(i *Instance) {
	if i.Described {
		s.launches.saw(i.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[i.ID] = i
}

func (s *Instances) forget(id string) {
	s.launches.gone(id)
	s.mu.Lock()
	was := s.cache[id]
	delete(s.cache, id)
	s.mu.Unlock()
	s.ended(was)
}

// ended frees the place of a terminated instance in its reservation. Call it
// when the instance, which may be nil, is removed from the cache.
func (s *Instances) ended(was *Instance) {
	if was != nil && was.ReservationID != "" {
		s.config.Launch.Reservations.Ended(was.ReservationID)
	}
}

// List returns all instances of the cluster by ID, or an error: never a part of
// them. Those that EC2 does not show yet are among them. Open claims take what
// was started for them.
func (s *Instances) List(ctx context.Context) ([]*Instance, error) {
	if err := s.Start(ctx); err != nil {
		return nil, err
	}
	listing := s.shared.DoChan("list", func() (any, error) { return s.list(context.WithoutCancel(ctx)) })
	select {
	case answer := <-listing:
		list, _ := answer.Val.([]*Instance)
		return list, answer.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Instances) list(ctx context.Context) ([]*Instance, error) {
	began := s.config.Clock.Now()
	found, err := s.pages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list instances of cluster %s: %w", s.config.Cluster, err)
	}
	for id := range found {
		s.launches.saw(id)
	}
	var gone []*Instance
	s.mu.Lock()
	for id, known := range s.cache {
		switch _, ok := found[id]; {
		case ok:
		case s.launches.unseen(id) || s.launches.startedSince(id, began) || s.shifted(known):
			found[id] = known
		default:
			gone = append(gone, known)
		}
	}
	s.cache = maps.Clone(found)
	s.mu.Unlock()
	for _, was := range gone {
		s.ended(was)
	}
	list := slices.SortedFunc(maps.Values(found), func(a, b *Instance) int { return strings.Compare(a.ID, b.ID) })
	s.launches.settle(list, began)
	return list, nil
}

// pages reads all instances, by ID.
func (s *Instances) pages(ctx context.Context) (map[string]*Instance, error) {
	const most = 1000 // on a page
	in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(most), Filters: []types.Filter{
		{Name: aws.String("tag-key"), Values: []string{awsv1.NodePoolTagKey}},
		{Name: aws.String("tag-key"), Values: []string{awsv1.NodeClassTagKey}},
		{Name: aws.String("tag:" + awsv1.ClusterNameTagKey), Values: []string{s.config.Cluster}},
		stateFilter(),
	}}
	out := map[string]*Instance{}
	for {
		page, err := s.page(ctx, in)
		if err != nil {
			return nil, err
		}
		s.collect(page, out)
		if aws.ToString(page.NextToken) == "" {
			return out, nil
		}
		in.NextToken = page.NextToken
	}
}

// page reads one page, and again if EC2 has a fault of its own: starting over would
// cost all pages before it. It does not ask a throttling EC2 again; the SDK has
// done so, with delays.
func (s *Instances) page(ctx context.Context, in *ec2.DescribeInstancesInput) (page *ec2.DescribeInstancesOutput, err error) {
	const tries = 3
	for range tries {
		page, err = s.config.EC2.DescribeInstances(ctx, in)
		if err == nil || !client.ServerFault(err) || client.RateLimited(err) {
			break
		}
	}
	return page, err
}

func (s *Instances) collect(page *ec2.DescribeInstancesOutput, into map[string]*Instance) {
	for _, r := range page.Reservations {
		for i := range r.Instances {
			one := described(&r.Instances[i], s.config.ReservedCapacity)
			into[one.ID] = one
		}
	}
}

func stateFilter() types.Filter {
	return types.Filter{Name: aws.String("instance-state-name"), Values: living()}
}

// describeAll answers for many IDs with one call, or a few if EC2 rejects some of
// the IDs.
func (s *Instances) describeAll(ctx context.Context, ids []string) []batch.Answer[*Instance] {
	var mu sync.Mutex
	found := map[string]*Instance{}
	failed := apart(distinct(ids), func(ids []string) error {
		part, err := s.describeIDs(ctx, ids)
		mu.Lock()
		defer mu.Unlock()
		maps.Copy(found, part)
		return err
	}, aboutIDs)
	answers := make([]batch.Answer[*Instance], len(ids))
	for i, id := range ids {
		if answers[i].Value = found[id]; found[id] == nil {
			answers[i].Err = orNotFound(id, failed[id])
		}
	}
	return answers
}

// orNotFound returns why an instance is not in an answer: by the error, or as it
// has been terminated.
func orNotFound(id string, err error) error {
	if err != nil && !client.NotFound(err) {
		return err
	}
	return notFound(id)
}

func (s *Instances) describeIDs(ctx context.Context, ids []string) (map[string]*Instance, error) {
	out := map[string]*Instance{}
	in := &ec2.DescribeInstancesInput{InstanceIds: ids, Filters: []types.Filter{stateFilter()}}
	for {
		page, err := s.config.EC2.DescribeInstances(ctx, in)
		if err != nil {
			return nil, err
		}
		s.collect(page, out)
		if aws.ToString(page.NextToken) == "" {
			return out, nil
		}
		in.NextToken = page.NextToken
	}
}

// distinct returns the IDs sorted, each once.
func distinct(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }
