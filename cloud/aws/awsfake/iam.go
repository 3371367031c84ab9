// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// iamAPI is Identity and Access Management.
type iamAPI struct{ a *AWS }

// identities are roles and instance profiles, by name.
type identities struct {
	roles    map[string]types.Role
	profiles map[string]*types.InstanceProfile
}

func (i *identities) start() {
	i.roles, i.profiles = map[string]types.Role{}, map[string]*types.InstanceProfile{}
}

// AddRole adds a role for instances. The path begins and ends with a slash.
func (a *AWS) AddRole(name, path string) { a.locked(func(time.Time) { a.addRole(name, path) }) }

// RemoveRole removes a role, also from the profiles it is in.
func (a *AWS) RemoveRole(name string) {
	a.locked(func(time.Time) {
		delete(a.iam.roles, name)
		for _, p := range a.iam.profiles {
			p.Roles = without(p.Roles, name)
		}
	})
}

// AddInstanceProfile adds a profile with a role, as users make them for
// themselves.
func (a *AWS) AddInstanceProfile(name, role string) error {
	err := fmt.Errorf("awsfake: there is no role %q", role)
	a.locked(func(now time.Time) {
		if r, ok := a.iam.roles[role]; ok {
			a.addProfile(name, "/", nil, now).Roles = []types.Role{r}
			err = nil
		}
	})
	return err
}

func (a *AWS) addProfile(name, path string, tags []types.Tag, now time.Time) *types.InstanceProfile {
	made := &types.InstanceProfile{
		InstanceProfileName: &name, Path: &path, Arn: aws.String(a.arn("iam", "", "instance-profile"+path+name)),
		InstanceProfileId: aws.String(a.id("AIPA")), CreateDate: &now, Roles: []types.Role{}, Tags: copied(tags),
	}
	a.iam.profiles[name] = made
	return made
}

func without(roles []types.Role, name string) []types.Role {
	return slices.DeleteFunc(slices.Clone(roles), func(r types.Role) bool { return *r.RoleName == name })
}

func (a *AWS) addRole(name, path string) {
	now := a.clock.Now()
	a.iam.roles[name] = types.Role{
		RoleName: &name, Path: &path, Arn: aws.String(a.arn("iam", "", "role"+path+name)), RoleId: aws.String(a.id("AROA")), CreateDate: &now,
		AssumeRolePolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`),
	}
}

func (a *AWS) profile(name *string) (*types.InstanceProfile, error) {
	if p := a.iam.profiles[aws.ToString(name)]; p != nil {
		return p, nil
	}
	return nil, noSuch("Instance Profile", aws.ToString(name))
}

func noSuch(what, name string) error {
	return &types.NoSuchEntityException{Message: aws.String(what + " " + name + " cannot be found.")}
}

// GetInstanceProfile returns a profile.
func (s iamAPI) GetInstanceProfile(ctx context.Context, in *iam.GetInstanceProfileInput, _ ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error) {
	return answer(ctx, s.a, "GetInstanceProfile", in, func(time.Time) (*iam.GetInstanceProfileOutput, error) {
		p, err := s.a.profile(in.InstanceProfileName)
		if err != nil {
			return nil, err
		}
		return &iam.GetInstanceProfileOutput{InstanceProfile: copied(p)}, nil
	})
}

// ListInstanceProfiles returns the profiles below a path, without their tags.
func (s iamAPI) ListInstanceProfiles(ctx context.Context, in *iam.ListInstanceProfilesInput, _ ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error) {
	return answer(ctx, s.a, "ListInstanceProfiles", in, func(time.Time) (*iam.ListInstanceProfilesOutput, error) {
		var found []types.InstanceProfile
		for _, name := range slices.Sorted(maps.Keys(s.a.iam.profiles)) {
			if p := s.a.iam.profiles[name]; strings.HasPrefix(*p.Path, aws.ToString(in.PathPrefix)) {
				listed := copied(*p)
				listed.Tags = nil
				found = append(found, listed)
			}
		}
		part, next, err := page(found, pages{1, 1000, 100}, in.MaxItems, in.Marker)
		if err != nil {
			return nil, err
		}
		return &iam.ListInstanceProfilesOutput{InstanceProfiles: slices.Clone(part), Marker: next, IsTruncated: next != nil}, nil
	})
}

func checkProfile(in *iam.CreateInstanceProfileInput) error {
	for _, check := range []struct{ value, field, pattern string }{
		{aws.ToString(in.InstanceProfileName), "instanceProfileName", `^[\w+=,.@-]{1,128}$`},
		{*pathOf(in), "path", `^(/|/[!-\x7e]{0,510}/)$`},
	} {
		if ok, err := regexp.MatchString(check.pattern, check.value); err != nil || !ok {
			return refuse("ValidationError", "The specified value for %s is invalid. It must match %s", check.field, check.pattern)
		}
	}
	if len(in.Tags) > 50 {
		return refuse("LimitExceeded", "The number of tags has reached the maximum limit.")
	}
	return nil
}

func pathOf(in *iam.CreateInstanceProfileInput) *string {
	if in.Path == nil {
		return aws.String("/")
	}
	return aws.String(*in.Path)
}

// CreateInstanceProfile makes a profile without a role.
func (s iamAPI) CreateInstanceProfile(ctx context.Context, in *iam.CreateInstanceProfileInput, _ ...func(*iam.Options)) (*iam.CreateInstanceProfileOutput, error) {
	return answer(ctx, s.a, "CreateInstanceProfile", in, func(now time.Time) (*iam.CreateInstanceProfileOutput, error) {
		if err := checkProfile(in); err != nil {
			return nil, err
		}
		name := *in.InstanceProfileName
		if s.a.iam.profiles[name] != nil {
			return nil, &types.EntityAlreadyExistsException{Message: aws.String("Instance Profile " + name + " already exists.")}
		}
		made := s.a.addProfile(name, *pathOf(in), in.Tags, now)
		return &iam.CreateInstanceProfileOutput{InstanceProfile: copied(made)}, nil
	})
}

// DeleteInstanceProfile deletes a profile that holds no role.
func (s iamAPI) DeleteInstanceProfile(ctx context.Context, in *iam.DeleteInstanceProfileInput, _ ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error) {
	return answer(ctx, s.a, "DeleteInstanceProfile", in, func(time.Time) (*iam.DeleteInstanceProfileOutput, error) {
		p, err := s.a.profile(in.InstanceProfileName)
		if err != nil {
			return nil, err
		}
		if len(p.Roles) > 0 {
			return nil, &types.DeleteConflictException{Message: aws.String("Cannot delete entity, must remove roles from instance profile first.")}
		}
		delete(s.a.iam.profiles, *in.InstanceProfileName)
		return &iam.DeleteInstanceProfileOutput{}, nil
	})
}

// AddRoleToInstanceProfile gives a profile its one role.
func (s iamAPI) AddRoleToInstanceProfile(ctx context.Context, in *iam.AddRoleToInstanceProfileInput, _ ...func(*iam.Options)) (*iam.AddRoleToInstanceProfileOutput, error) {
	return answer(ctx, s.a, "AddRoleToInstanceProfile", in, func(time.Time) (*iam.AddRoleToInstanceProfileOutput, error) {
		p, err := s.a.profile(in.InstanceProfileName)
		if err != nil {
			return nil, err
		}
		role, ok := s.a.iam.roles[aws.ToString(in.RoleName)]
		if !ok {
			return nil, &types.NoSuchEntityException{Message: aws.String("The role with name " + aws.ToString(in.RoleName) + " cannot be found.")}
		}
		if len(p.Roles) > 0 {
			return nil, &types.LimitExceededException{Message: aws.String("Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")}
		}
		p.Roles = []types.Role{role}
		return &iam.AddRoleToInstanceProfileOutput{}, nil
	})
}

// RemoveRoleFromInstanceProfile takes the role out of a profile.
func (s iamAPI) RemoveRoleFromInstanceProfile(ctx context.Context, in *iam.RemoveRoleFromInstanceProfileInput, _ ...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
	return answer(ctx, s.a, "RemoveRoleFromInstanceProfile", in, func(time.Time) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
		p, err := s.a.profile(in.InstanceProfileName)
		if err != nil {
			return nil, err
		}
		left := without(p.Roles, aws.ToString(in.RoleName))
		if len(left) == len(p.Roles) {
			return nil, &types.NoSuchEntityException{Message: aws.String("The role with name " + aws.ToString(in.RoleName) + " cannot be found.")}
		}
		p.Roles = left
		return &iam.RemoveRoleFromInstanceProfileOutput{}, nil
	})
}

// tagsOfProfile are IAM's tags as EC2 would have them.
func tagsOfProfile(list []types.Tag) []ec2types.Tag {
	out := make([]ec2types.Tag, len(list))
	for i, t := range list {
		out[i] = ec2types.Tag{Key: t.Key, Value: t.Value}
	}
	return out
}
