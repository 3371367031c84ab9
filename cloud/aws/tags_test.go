// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/profile"
	"karpenter/model"
)

// documentedTags returns the table of docs/aws-permissions.md: the resources that
// get a tag, by its key. It leaves out the tags that CreateTags sets.
func documentedTags(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/aws-permissions.md")
	must(t, err)
	_, section, _ := strings.Cut(string(text), "## Tags that policies must allow\n")
	out := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(.+?)` \\| .*? \\| (.+?) \\| (.+?) \\|$").FindAllStringSubmatch(section, -1) {
		if !strings.HasPrefix(row[3], "CreateTags") {
			out[row[1]] = slices.Sorted(strings.SplitSeq(row[2], ", "))
		}
	}
	return out
}

// TestTagsAreDocumented launches instances for 30 claims at once, on spot, and
// holds the tags in the calls to the table for those who write tag policies.
func TestTagsAreDocumented(t *testing.T) {
	r := newRegion(t, nil)
	var mu sync.Mutex
	seen := map[string]map[string]bool{}
	note := func(key string, on string) {
		mu.Lock()
		defer mu.Unlock()
		key = regexp.MustCompile(`^`+awsv1.LaunchTagPrefix+`\d+$`).ReplaceAllString(key, awsv1.LaunchTagPrefix+"N")
		key = strings.Replace(key, awsv1.ClusterTagPrefix+"cluster", awsv1.ClusterTagPrefix+"CLUSTER", 1)
		if seen[key] == nil {
			seen[key] = map[string]bool{}
		}
		seen[key][on] = true
	}
	for _, operation := range []string{"CreateFleet", "CreateLaunchTemplate", "CreateInstanceProfile"} {
		r.aws.Fail(operation, awsfake.Failure{When: func(in any) bool {
			eachTag(in, note)
			return false
		}})
	}
	var wg sync.WaitGroup
	for i := range 30 {
		claim := r.claim(fmt.Sprint("claim-", i), in(model.LabelCapacityType, model.Spot))
		wg.Go(func() {
			if _, err := r.Create(t.Context(), claim); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	class := r.getClass()
	class.Spec.InstanceProfile, class.Spec.Role = nil, "KarpenterNodeRole-cluster"
	class.Status.InstanceProfile = ""
	profiles := profile.New(profile.Config{IAM: r.services.IAM, Clock: r.clock, Region: r.aws.Config().Region, ClusterName: r.aws.Config().Cluster})
	_, err := profiles.Ensure(t.Context(), class)
	must(t, err)
	got := map[string][]string{}
	for key, on := range seen {
		got[key] = slices.Sorted(maps.Keys(on))
	}
	check(t, "docs/aws-permissions.md", got, documentedTags(t))
}

// eachTag calls note for each tag in the input of a call, with the resource that
// gets it.
func eachTag(in any, note func(key, on string)) {
	list := func(on string, tags []ec2types.Tag) {
		for _, tag := range tags {
			note(awssdk.ToString(tag.Key), on)
		}
	}
	switch in := in.(type) {
	case *ec2.CreateFleetInput:
		for _, spec := range in.TagSpecifications {
			list(string(spec.ResourceType), spec.Tags)
		}
	case *ec2.CreateLaunchTemplateInput:
		for _, spec := range in.TagSpecifications {
			list(string(spec.ResourceType), spec.Tags)
		}
		for _, spec := range in.LaunchTemplateData.TagSpecifications {
			list(string(spec.ResourceType), spec.Tags)
		}
	case *iam.CreateInstanceProfileInput:
		for _, tag := range in.Tags {
			note(awssdk.ToString(tag.Key), "instance-profile")
		}
	}
}
