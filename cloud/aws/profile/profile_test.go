// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/smithy-go"
	"github.com/cockroachdb/datadriven"
	apitypes "k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/profile"
)

// account is an IAM with roles "role-1" and "role-2", which writes down what it
// is asked. It lists all profiles, whatever the path, as some emulators do.
type account struct {
	clock    *clocktesting.FakePassiveClock
	profiles map[string]*types.InstanceProfile
	said     []string
	fails    map[string]error // by call, until cleared
	hidden   bool             // reads do not show what was made
}

func code(code, message string) error { return &smithy.GenericAPIError{Code: code, Message: message} }

func (a *account) call(name string, args ...*string) error {
	texts := []string{name}
	for _, arg := range args {
		texts = append(texts, aws.ToString(arg))
	}
	a.said = append(a.said, strings.Join(texts, " "))
	return a.fails[name]
}

func (a *account) find(name *string) (*types.InstanceProfile, error) {
	if p, ok := a.profiles[*name]; ok {
		return p, nil
	}
	return nil, code("NoSuchEntity", "Instance Profile "+*name+" cannot be found.")
}

func (a *account) GetInstanceProfile(_ context.Context, in *iam.GetInstanceProfileInput, _ ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error) {
	if err := a.call("GetInstanceProfile", in.InstanceProfileName); err != nil {
		return nil, err
	}
	p, err := a.find(in.InstanceProfileName)
	if err == nil && a.hidden {
		return nil, code("NoSuchEntity", "not yet")
	}
	return &iam.GetInstanceProfileOutput{InstanceProfile: p}, err
}

func (a *account) ListInstanceProfiles(_ context.Context, in *iam.ListInstanceProfilesInput, _ ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error) {
	if err := a.call("ListInstanceProfiles", in.PathPrefix); err != nil {
		return nil, err
	}
	out := &iam.ListInstanceProfilesOutput{}
	for _, name := range slices.Sorted(maps.Keys(a.profiles)) {
		out.InstanceProfiles = append(out.InstanceProfiles, *a.profiles[name])
	}
	return out, nil
}

func (a *account) CreateInstanceProfile(_ context.Context, in *iam.CreateInstanceProfileInput, _ ...func(*iam.Options)) (*iam.CreateInstanceProfileOutput, error) {
	var tags []string
	for _, tag := range in.Tags {
		tags = append(tags, *tag.Key+"="+*tag.Value)
	}
	if err := a.call("CreateInstanceProfile", in.InstanceProfileName, in.Path, aws.String(strings.Join(tags, ","))); err != nil {
		return nil, err
	}
	if _, err := a.find(in.InstanceProfileName); err == nil {
		return nil, code("EntityAlreadyExists", "it exists")
	}
	p := &types.InstanceProfile{InstanceProfileName: in.InstanceProfileName, Path: in.Path, CreateDate: aws.Time(a.clock.Now())}
	a.profiles[*in.InstanceProfileName] = p
	return &iam.CreateInstanceProfileOutput{InstanceProfile: p}, nil
}

func (a *account) DeleteInstanceProfile(_ context.Context, in *iam.DeleteInstanceProfileInput, _ ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error) {
	if err := a.call("DeleteInstanceProfile", in.InstanceProfileName); err != nil {
		return nil, err
	}
	p, err := a.find(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if len(p.Roles) > 0 {
		return nil, code("DeleteConflict", "it has a role")
	}
	delete(a.profiles, *in.InstanceProfileName)
	return nil, nil
}

func (a *account) AddRoleToInstanceProfile(_ context.Context, in *iam.AddRoleToInstanceProfileInput, _ ...func(*iam.Options)) (*iam.AddRoleToInstanceProfileOutput, error) {
	if err := a.call("AddRoleToInstanceProfile", in.InstanceProfileName, in.RoleName); err != nil {
		return nil, err
	}
	p, err := a.find(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"role-1", "role-2"}, *in.RoleName) {
		return nil, code("NoSuchEntity", "The role with name "+*in.RoleName+" cannot be found.")
	}
	if len(p.Roles) > 0 {
		return nil, code("LimitExceeded", "it has a role")
	}
	p.Roles = []types.Role{{RoleName: in.RoleName}}
	return nil, nil
}

func (a *account) RemoveRoleFromInstanceProfile(_ context.Context, in *iam.RemoveRoleFromInstanceProfileInput, _ ...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
	if err := a.call("RemoveRoleFromInstanceProfile", in.InstanceProfileName, in.RoleName); err != nil {
		return nil, err
	}
	p, err := a.find(in.InstanceProfileName)
	if err != nil {
		return nil, err
	}
	p.Roles = nil
	return nil, nil
}

// TestProfiles tells stories of one class. Commands, one a line: "ensure
// {spec}" makes its profile and stores the name in its status, unless that
// fails; "collect [used…]" and "delete" what no one needs; "restart" begins a
// new process; "advance 1h"; "foreign NAME PATH ROLE" is one that someone else
// made; "give p1 ROLE" what someone does to it; "fail CALL CODE" and "mend CALL"; "hide" and "show" what was made.
// Names of profiles that were made become p1, p2, … in the transcript.
func TestProfiles(t *testing.T) {
	datadriven.RunTest(t, "testdata/profiles", func(t *testing.T, d *datadriven.TestData) string {
		s := newStory(t)
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			line = strings.TrimSpace(line)
			fmt.Fprintln(&out, line)
			for _, said := range s.do(line) {
				fmt.Fprintf(&out, "  %s\n", said)
			}
		}
		text := out.String()
		for i, name := range s.made {
			text = strings.ReplaceAll(text, name, fmt.Sprintf("p%d", i+1))
		}
		return text
	})
}

type story struct {
	t        *testing.T
	iam      *account
	class    *awsv1.EC2NodeClass
	profiles *profile.Profiles
	made     []string
}

func newStory(t *testing.T) *story {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	s := &story{t: t, iam: &account{clock: clock, profiles: map[string]*types.InstanceProfile{}, fails: map[string]error{}}, class: &awsv1.EC2NodeClass{}}
	s.class.Name, s.class.UID = "default", apitypes.UID("uid-1")
	s.restart()
	return s
}

func (s *story) restart() {
	s.profiles = profile.New(profile.Config{IAM: s.iam, Clock: s.iam.clock, Region: "eu-west-1", ClusterName: "prod"})
}

func (s *story) do(line string) []string {
	word, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	s.iam.said = nil
	var err error
	switch word {
	case "ensure":
		s.class.Spec = awsv1.EC2NodeClassSpec{}
		if err := yaml.UnmarshalStrict([]byte(rest), &s.class.Spec); err != nil {
			s.t.Fatal(err)
		}
		var name string
		if name, err = s.profiles.Ensure(s.t.Context(), s.class); err == nil {
			s.class.Status.InstanceProfile = name
			s.iam.said = append(s.iam.said, "-> "+name)
		}
	case "collect":
		used := map[string]bool{s.class.Status.InstanceProfile: true}
		for _, name := range words {
			used[s.made[name[1]-'1']] = true
		}
		var gone []string
		gone, err = s.profiles.Collect(s.t.Context(), used)
		s.iam.said = append(s.iam.said, fmt.Sprintf("-> gone: %v", gone))
	case "delete":
		err = s.profiles.Delete(s.t.Context(), s.class)
		slices.Sort(s.iam.said)
		s.iam.said = append(s.iam.said, fmt.Sprintf("-> left: %v", slices.Sorted(maps.Keys(s.iam.profiles))))
	case "foreign":
		s.iam.profiles[words[0]] = &types.InstanceProfile{InstanceProfileName: &words[0], Path: &words[1], Roles: []types.Role{{RoleName: &words[2]}}}
		s.class.Status.InstanceProfile = words[0]
	case "give":
		s.iam.profiles[s.made[words[0][1]-'1']].Roles = []types.Role{{RoleName: &words[1]}}
	case "advance":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		s.iam.clock.SetTime(s.iam.clock.Now().Add(d))
	case "restart":
		s.restart()
	case "fail":
		s.iam.fails[words[0]] = code(words[1], "")
	case "mend":
		delete(s.iam.fails, words[0])
	case "hide", "show":
		s.iam.hidden = word == "hide"
	case "without":
		s.iam.said = []string{cmp.Or(s.profiles.Without(), "nothing is refused")}
	default:
		s.t.Fatalf("unknown command %q", line)
	}
	if err != nil {
		s.iam.said = append(s.iam.said, strings.Split("error: "+err.Error(), "\n")...)
	}
	for name := range s.iam.profiles {
		if !slices.Contains(s.made, name) && strings.HasPrefix(name, "prod_") {
			s.made = append(s.made, name)
		}
	}
	return s.iam.said
}

// TestDeletedClassWithInvalidProfileName: a class whose legacy profile could not have had a name at all
// is deleted all the same.
func TestDeletedClassWithInvalidProfileName(t *testing.T) {
	s := newStory(t)
	s.profiles = profile.New(profile.Config{IAM: s.iam, Clock: s.iam.clock, Region: "eu-west-1", ClusterName: strings.Repeat("x", 120)})
	if err := s.profiles.Delete(t.Context(), s.class); err != nil || len(s.iam.said) != 1 {
		t.Errorf("%v, asked %q", err, s.iam.said)
	}
	s.iam.fails["ListInstanceProfiles"] = errors.New("down")
	if err := s.profiles.Delete(t.Context(), s.class); !errors.Is(err, s.iam.fails["ListInstanceProfiles"]) {
		t.Errorf("the failure is not told: %v", err)
	}
}
