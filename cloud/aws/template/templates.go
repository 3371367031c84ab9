// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/userdata"
)

const (
	// lasting is how long a template is kept after it was last wanted.
	lasting = time.Minute
	// Period is how often Maintain is to be called.
	Period = 10 * time.Second
	// parallel is how many templates of one launch are made at once.
	parallel = 8
)

// Config is what Templates work with.
type Config struct {
	EC2     EC2
	Clock   clock.PassiveClock
	Metrics *Metrics
	Region  string
	Cluster userdata.Cluster // without the CIDR
	// CIDR tells the addresses of Services, which only nodes of AL2023 must know;
	// see ServiceCIDR.
	CIDR func(context.Context) (string, error)
	// ReservedCapacity is the feature gate of this name. Without it, EC2 decides
	// whether an instance takes a place in an open reservation.
	ReservedCapacity bool
}

// EC2 is the part of it that has to do with launch templates.
type EC2 interface {
	DescribeLaunchTemplates(context.Context, *ec2.DescribeLaunchTemplatesInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error)
	CreateLaunchTemplate(context.Context, *ec2.CreateLaunchTemplateInput, ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error)
	DeleteLaunchTemplate(context.Context, *ec2.DeleteLaunchTemplateInput, ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error)
}

// Templates are the launch templates of a cluster. It may be used concurrently;
// no lock is held while EC2 is called.
type Templates struct {
	config Config

	mu       sync.Mutex
	hydrated bool
	known    map[string]known    // by name
	attempts map[string]*attempt // by name, under way
}

// known is a template in EC2.
type known struct {
	id      string
	expires time.Time
	// doubtful is set when it is not known whether it is still there.
	doubtful bool
}

// attempt is one to make a template or to delete it. done is closed at its end.
type attempt struct {
	done chan struct{}
	err  error // of making it
}

// New returns Templates that know of none yet.
func New(config Config) *Templates {
	return &Templates{config: config, known: map[string]known{}, attempts: map[string]*attempt{}}
}

// Ensure returns the templates for a launch, and creates the missing ones.
// Errors: NodeClassNotReady if the data that nodes need to join is not known;
// any other error comes from EC2, or names what the class lacks.
func (t *Templates) Ensure(ctx context.Context, want *Want) ([]Template, error) {
	drafts, err := t.drafts(ctx, want)
	if err != nil {
		return nil, err
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	var out []Template
	for _, d := range drafts {
		out = append(out, d.Template)
		group.Go(func() error { return t.ensure(within, d) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

// drafts works out the templates for a launch. Variants that come to the same
// are one.
func (t *Templates) drafts(ctx context.Context, want *Want) ([]*draft, error) {
	groups, err := variants(want)
	if err != nil {
		return nil, err
	}
	cidr := ""
	if want.Class.AMIFamily() == awsv1.AMIFamilyAL2023 {
		if cidr, err = t.config.CIDR(ctx); err != nil {
			return nil, &cloud.NodeClassNotReadyError{Err: fmt.Errorf("finding the cluster's service CIDR: %w", err)}
		}
	}
	var out []*draft
	byName := map[string]*draft{}
	for _, v := range groups {
		d, err := (&content{config: &t.config, want: want, variant: v, cidr: cidr}).draft()
		if err != nil {
			return nil, err
		}
		if same := byName[d.Name]; same != nil {
			same.Candidates = append(same.Candidates, d.Candidates...)
			continue
		}
		byName[d.Name] = d
		out = append(out, d)
	}
	return out, nil
}

// ensure returns when the template is in EC2.
func (t *Templates) ensure(ctx context.Context, d *draft) error {
	for {
		mine, others := t.begin(d.Name)
		switch {
		case mine != nil:
			id, err := t.make(ctx, d)
			t.end(d.Name, mine, id, err)
			return err
		case others == nil:
			return nil
		}
		select {
		case <-others.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if others.err != nil && !errors.Is(others.err, context.Canceled) && !errors.Is(others.err, context.DeadlineExceeded) {
			return others.err
		}
	}
}

// begin begins an attempt to make the template, or returns that of others; both
// are nil when it is there, and it is kept for longer.
func (t *Templates) begin(name string) (mine, others *attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := t.attempts[name]; a != nil {
		return nil, a
	}
	if k, ok := t.known[name]; ok && !k.doubtful {
		k.expires = t.config.Clock.Now().Add(lasting)
		t.known[name] = k
		return nil, nil
	}
	mine = &attempt{done: make(chan struct{})}
	t.attempts[name] = mine
	return mine, nil
}

func (t *Templates) end(name string, mine *attempt, id string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.known[name] = known{id: id, expires: t.config.Clock.Now().Add(lasting)}
	}
	mine.err = err
	delete(t.attempts, name)
	close(mine.done)
}

// make finds the template in EC2 or creates it, and returns its ID.
func (t *Templates) make(ctx context.Context, d *draft) (id string, err error) {
	if id, err = t.find(ctx, d.Name); id != "" || err != nil {
		return id, err
	}
	t.note(ctx, d)
	made, err := t.config.EC2.CreateLaunchTemplate(ctx, d.input)
	if client.Code(err) == "InvalidLaunchTemplateName.AlreadyExistsException" {
		return t.find(ctx, d.Name) // another controller was faster
	}
	if err != nil {
		return "", fmt.Errorf("creating launch template %s: %w", d.Name, err)
	}
	return *made.LaunchTemplate.LaunchTemplateId, nil
}

// find returns the ID of the template, "" when there is none.
func (t *Templates) find(ctx context.Context, name string) (string, error) {
	out, err := t.config.EC2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name}})
	if client.NotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("describing launch template %s: %w", name, err)
	}
	switch len(out.LaunchTemplates) {
	case 0:
		return "", nil
	case 1:
		return *out.LaunchTemplates[0].LaunchTemplateId, nil
	}
	return "", fmt.Errorf("EC2 has %d launch templates named %s", len(out.LaunchTemplates), name)
}

// note measures the user data, and logs what its author should know.
func (t *Templates) note(ctx context.Context, d *draft) {
	logger := log.FromContext(ctx).WithValues("EC2NodeClass", d.class, "launch-template", d.Name)
	size := len(d.userData.Text)
	t.config.Metrics.userData(d.class, size)
	if size >= userdata.MaxBytes*9/10 {
		logger.Info("user data is close to the limit of EC2, or beyond it", "bytes", size, "limit", userdata.MaxBytes)
	}
	if len(d.userData.Dropped) > 0 {
		logger.Info("ignoring unknown settings in user data", "settings", d.userData.Dropped)
	}
}
