// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	apitypes "k8s.io/apimachinery/pkg/types"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/ec2"
)

// spec 65/123: whose images are asked for.
func TestQueries(t *testing.T) {
	fake, images, _, _ := setup()
	fake.parameters["/mine"] = "ami-2"
	if _, err := images.List(t.Context(), class(
		awsv1.AMISelectorTerm{ID: "ami-1"}, awsv1.AMISelectorTerm{Name: "web-*"}, awsv1.AMISelectorTerm{SSMParameter: "/mine"},
		awsv1.AMISelectorTerm{Name: "db", Owner: "123456789012"}, awsv1.AMISelectorTerm{Tags: map[string]string{"team": "a", "any": "*"}},
		awsv1.AMISelectorTerm{Tags: map[string]string{"team": "b"}, Owner: "self", Name: "x"}, awsv1.AMISelectorTerm{ID: "ami-1"},
	)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, in := range fake.described {
		text := fmt.Sprint(in.Owners)
		for _, f := range in.Filters {
			text += fmt.Sprintf(" %s=%v", *f.Name, f.Values)
		}
		if !*in.IncludeDeprecated || *in.MaxResults != 1000 {
			t.Errorf("%s without deprecated images, or by %d", text, *in.MaxResults)
		}
		got = append(got, text)
	}
	if diff := cmp.Diff([]string{
		"[] image-id=[ami-1 ami-2] state=[available]",
		"[self amazon] name=[web-*] state=[available]",
		"[123456789012] name=[db] state=[available]",
		"[] tag-key=[any] tag:team=[a] state=[available]",
		"[self] name=[x] tag:team=[b] state=[available]",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// spec 65/124: parameters of users' own.
func TestOwnParameters(t *testing.T) {
	fake, images, _, _ := setup()
	fake.images = []types.Image{ami("1", "x86_64", "10-01", false)}
	fake.parameters = map[string]string{"/text": "hello", "/ami": "ami-1"}
	terms := func(names ...string) *awsv1.EC2NodeClass {
		var out []awsv1.AMISelectorTerm
		for _, name := range names {
			out = append(out, awsv1.AMISelectorTerm{SSMParameter: name})
		}
		c := class(out...)
		c.Generation = int64(len(names))
		return c
	}
	if got, err := images.List(t.Context(), terms("/text", "/missing", "/ami")); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", show(got), err)
	}
	if got, err := images.List(t.Context(), terms("/text", "/missing")); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", show(got), err)
	}
	fake.refused["/secret"] = "AccessDeniedException"
	if _, err := images.List(t.Context(), terms("/secret")); err == nil {
		t.Error("no error when access is denied")
	}
}

func TestImagesAreCached(t *testing.T) {
	fake, images, clock, kubernetes := setup()
	fake.images = []types.Image{ami("1", "x86_64", "10-01", false)}
	fake.parameters["/mine"] = "ami-1"
	c := class(awsv1.AMISelectorTerm{SSMParameter: "/mine"})
	for _, step := range []struct {
		name                 string
		change               func()
		parameters, searches int
	}{
		{"at first", func() {}, 1, 1},
		{"again", func() {}, 1, 1},
		{"spec 65/126 the spec has changed", func() { c.Generation++ }, 1, 2},
		{"the cluster was upgraded", func() { *kubernetes = "1.34" }, 1, 3},
		{"after a minute", func() { clock.SetTime(clock.Now().Add(time.Minute)) }, 1, 4},
		{"after five", func() { clock.SetTime(clock.Now().Add(4 * time.Minute)) }, 2, 5},
		{"another class", func() { c.UID = "other" }, 2, 6},
	} {
		step.change()
		got, err := images.List(t.Context(), c)
		if err != nil || len(got) != 1 || len(fake.asked) != step.parameters || len(fake.described) != step.searches {
			t.Errorf("%s: %v, %v, %d parameters and %d searches, want %d and %d",
				step.name, show(got), err, len(fake.asked), len(fake.described), step.parameters, step.searches)
		}
		got[0].ID = "changed by the caller"
	}
}

// spec 65/125: an image behind a parameter that follows releases is deprecated.
func TestInvalidate(t *testing.T) {
	fake, images, clock, _ := setup()
	const latest = "/aws/service/bottlerocket/aws-k8s-1.33/x86_64/latest/image_id"
	const pinned = "/aws/service/bottlerocket/aws-k8s-1.33/x86_64/1.20.0/image_id"
	fake.parameters = map[string]string{latest: "ami-1", pinned: "ami-1"}
	fake.images = []types.Image{ami("1", "x86_64", "10-01", false), ami("2", "x86_64", "10-30", false)}
	list := func() string {
		var ids string
		for _, name := range []string{"bottlerocket@latest", "bottlerocket@1.20.0"} {
			c := alias(name)
			c.UID = apitypes.UID(name)
			got, err := images.List(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			ids += " " + got[0].ID
		}
		return ids
	}
	if got := list(); got != " ami-1 ami-1" {
		t.Fatal(got)
	}
	fake.parameters = map[string]string{latest: "ami-2", pinned: "ami-2"}
	for _, step := range []struct {
		deprecated bool
		want       string
	}{{false, " ami-1 ami-1"}, {true, " ami-2 ami-1"}} {
		if step.deprecated {
			fake.images[0].DeprecationTime = aws.String("2026-10-20T00:00:00.000Z")
		}
		clock.SetTime(clock.Now().Add(image.InvalidationPeriod))
		if err := images.Invalidate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := list(); got != step.want {
			t.Errorf("deprecated %t: %s, want%s", step.deprecated, got, step.want)
		}
	}
}

func TestImageForInstanceType(t *testing.T) {
	fake, images, _, _ := setup()
	fake.images = []types.Image{
		ami("standard", "x86_64", "10-01", false), ami("arm", "arm64", "10-01", false),
		ami("nvidia", "x86_64", "10-01", false), ami("neuron", "x86_64", "10-01", false),
	}
	for path, id := range map[string]string{
		"x86_64/standard": "ami-standard", "arm64/standard": "ami-arm", "x86_64/nvidia": "ami-nvidia", "x86_64/neuron": "ami-neuron",
	} {
		fake.parameters["/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/"+path+"/recommended/image_id"] = id
	}
	c := alias("al2023@latest")
	var err error
	if c.Status.AMIs, err = images.List(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	descriptions, err := ec2.Descriptions()
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]*cloud.InstanceType{}
	for i := range descriptions {
		d := &descriptions[i]
		types[d.InstanceType] = instancetype.New(&instancetype.Facts{Description: *d}, &instancetype.Class{Family: c.AMIFamily()}, &instancetype.Cluster{})
	}
	for name, want := range map[string]string{
		"m5.large": "ami-standard", "m6g.large": "ami-arm", "g4dn.xlarge": "ami-nvidia", "inf2.xlarge": "ami-neuron",
		"trn1.2xlarge": "ami-neuron", "g5g.xlarge": "", // arm64 with a GPU: its image is missing
	} {
		got, ok := image.For(c, types[name])
		if got.ID != want || ok != (want != "") {
			t.Errorf("%s boots from %q, want %q", name, got.ID, want)
		}
	}
	// The first that suits: the newest, when several do.
	c.Status.AMIs = []awsv1.AMI{{ID: "ami-new"}, {ID: "ami-old"}}
	if got, _ := image.For(c, types["m5.large"]); got.ID != "ami-new" {
		t.Errorf("m5.large boots from %s", got.ID)
	}
}
