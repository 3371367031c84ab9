// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"k8s.io/utils/clock"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/answers"
	"karpenter/cloud/aws/client"
)

const (
	// ttl is how long IAM's word on a profile holds.
	ttl = 15 * time.Minute
	// protection is how long a profile is kept after it was last in use.
	protection = time.Hour
	// regret is how long a missing role is cached before IAM is asked again.
	regret = time.Minute
	// regionTagKey is the tag with the region.
	regionTagKey = "topology.kubernetes.io/region"
)

// Config is what Profiles are made with. All fields are required.
type Config struct {
	IAM         client.IAM
	Clock       clock.PassiveClock
	Region      string
	ClusterName string
}

// Profiles are the instance profiles of the cluster. They may be used
// concurrently, but for one class at a time.
type Profiles struct {
	Config
	known *answers.Cache[string, *types.InstanceProfile] // by name; nil = there is none

	mu        sync.Mutex
	protected map[string]time.Time // until when, by name
	missing   map[string]missing   // by role
	refused   string               // the code by which IAM refuses to list profiles; "" = it did not
}

// missing is a role that does not exist.
type missing struct {
	err   error
	until time.Time
}

// New returns Profiles.
func New(config Config) *Profiles {
	return &Profiles{
		Config: config, known: answers.New[string, *types.InstanceProfile](config.Clock, ttl),
		protected: map[string]time.Time{}, missing: map[string]missing{},
	}
}

// Ensure returns the name of the profile for the nodes of the class: the one it
// names itself, or one that has its role, which is made if there is none.
func (p *Profiles) Ensure(ctx context.Context, class *awsv1.EC2NodeClass) (string, error) {
	old := class.Status.InstanceProfile
	if own := class.Spec.InstanceProfile; own != nil {
		if old != "" && old != *own {
			p.protect(old)
		}
		return *own, nil
	}
	role := baseName(class.Spec.Role)
	if old != "" {
		profile, err := p.get(ctx, old)
		if err != nil {
			return "", err
		}
		if roleOf(profile) == role {
			return old, nil
		}
		p.protect(old)
	}
	name := p.name(class, role)
	p.protect(name)
	profile, err := p.get(ctx, name)
	if err != nil {
		return "", err
	}
	if roleOf(profile) == role {
		return name, nil
	}
	return name, p.make(ctx, class, profile, role)
}

// make creates the profile, if it does not exist, and adds the role. If the
// role cannot be added, make deletes the profile again.
func (p *Profiles) make(ctx context.Context, class *awsv1.EC2NodeClass, profile *types.InstanceProfile, role string) error {
	if err := p.missingRole(role); err != nil {
		return err
	}
	name := p.name(class, role)
	p.known.Forget(name)
	made := false
	if profile == nil {
		var err error
		if profile, made, err = p.create(ctx, class, name); err != nil {
			return err
		}
	}
	if err := p.assign(ctx, name, profile, role); err != nil {
		if made {
			err = errors.Join(err, p.delete(ctx, name))
		}
		return err
	}
	p.known.Put(name, &types.InstanceProfile{InstanceProfileName: &name, Roles: []types.Role{{RoleName: &role}}})
	return nil
}

// create creates the profile; made is false when there is one that IAM did not
// show a moment ago.
func (p *Profiles) create(ctx context.Context, class *awsv1.EC2NodeClass, name string) (profile *types.InstanceProfile, made bool, err error) {
	out, err := p.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
		InstanceProfileName: &name, Path: aws.String(p.path(class)), Tags: p.tags(class),
	})
	if err == nil {
		return out.InstanceProfile, true, nil
	}
	if client.AlreadyExists(err) {
		if profile, err := p.read(ctx, name); profile != nil || err != nil {
			return profile, false, err
		}
	}
	return nil, false, fmt.Errorf("create instance profile %s: %w", name, err)
}

// assign makes the role the profile's only one.
func (p *Profiles) assign(ctx context.Context, name string, profile *types.InstanceProfile, role string) error {
	switch other := roleOf(profile); other {
	case role:
		return nil
	case "":
	default:
		if err := p.removeRole(ctx, name, other); err != nil {
			return err
		}
	}
	_, err := p.IAM.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &role})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("add role %s to instance profile %s: %w", role, name, err)
	if client.Code(err) == "NoSuchEntity" && strings.Contains(strings.ToLower(client.Message(err)), "role") {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.missing[role] = missing{err, p.Clock.Now().Add(regret)}
	}
	return err
}

// missingRole returns why the role cannot be given, if that was found out just
// now.
func (p *Profiles) missingRole(role string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.Clock.Now()
	maps.DeleteFunc(p.missing, func(_ string, m missing) bool { return !m.until.After(now) })
	return p.missing[role].err
}

// get returns the profile, nil when there is none.
func (p *Profiles) get(ctx context.Context, name string) (*types.InstanceProfile, error) {
	return p.known.Get(ctx, name, func(ctx context.Context) (*types.InstanceProfile, error) { return p.read(ctx, name) })
}

func (p *Profiles) read(ctx context.Context, name string) (*types.InstanceProfile, error) {
	out, err := p.IAM.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if client.NotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get instance profile %s: %w", name, err)
	}
	return out.InstanceProfile, nil
}

// Missing drops the cached profile, so that IAM is asked again, because EC2
// does not know it.
func (p *Profiles) Missing(name string) { p.known.Forget(name) }

// delete takes the profile's role away and deletes it; that it is not there is
// fine.
func (p *Profiles) delete(ctx context.Context, name string) error {
	p.known.Forget(name)
	profile, err := p.read(ctx, name)
	if profile == nil || err != nil {
		return err
	}
	for _, role := range profile.Roles {
		if err := p.removeRole(ctx, name, aws.ToString(role.RoleName)); err != nil {
			return err
		}
	}
	_, err = p.IAM.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
	if err != nil && !client.NotFound(err) {
		return fmt.Errorf("delete instance profile %s: %w", name, err)
	}
	return nil
}

func (p *Profiles) removeRole(ctx context.Context, name, role string) error {
	_, err := p.IAM.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: &role})
	if err != nil && !client.NotFound(err) {
		return fmt.Errorf("remove role %s from instance profile %s: %w", role, name, err)
	}
	return nil
}

func (p *Profiles) tags(class *awsv1.EC2NodeClass) []types.Tag {
	all := maps.Clone(class.Spec.Tags)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, map[string]string{
		awsv1.ClusterTagPrefix + p.ClusterName: "owned",
		awsv1.ClusterNameTagKey:                p.ClusterName,
		awsv1.NodeClassTagKey:                  class.Name,
		regionTagKey:                           p.Region,
	})
	var out []types.Tag
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(all[key])})
	}
	return out
}

// roleOf returns the role a profile gives, "" when there is none.
func roleOf(profile *types.InstanceProfile) string {
	if profile == nil || len(profile.Roles) == 0 {
		return ""
	}
	return aws.ToString(profile.Roles[0].RoleName)
}

// baseName is a role without its path, as IAM wants it.
func baseName(role string) string { return role[strings.LastIndex(role, "/")+1:] }
