// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/image"
)

// fakeAWS has parameters and images, and remembers what it was asked.
type fakeAWS struct {
	parameters map[string]string
	refused    map[string]string // parameter → code of the error
	images     []types.Image
	asked      []string // parameters
	described  []*ec2.DescribeImagesInput
}

func (f *fakeAWS) GetParameter(_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	f.asked = append(f.asked, *in.Name)
	if code := f.refused[*in.Name]; code != "" {
		return nil, &smithy.GenericAPIError{Code: code}
	}
	value, ok := f.parameters[*in.Name]
	if !ok {
		return nil, &ssmtypes.ParameterNotFound{}
	}
	return &ssm.GetParameterOutput{Parameter: &ssmtypes.Parameter{Value: &value}}, nil
}

// DescribeImages honors image IDs and names, and answers one image a page.
func (f *fakeAWS) DescribeImages(_ context.Context, in *ec2.DescribeImagesInput, _ ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	if in.NextToken == nil {
		f.described = append(f.described, in)
	}
	var found []types.Image
	for _, i := range f.images {
		if !slices.ContainsFunc(in.Filters, func(filter types.Filter) bool {
			return *filter.Name == "image-id" && !slices.Contains(filter.Values, *i.ImageId) ||
				*filter.Name == "name" && !slices.Contains(filter.Values, *i.Name)
		}) {
			found = append(found, i)
		}
	}
	page := 0
	if in.NextToken != nil {
		if _, err := fmt.Sscan(*in.NextToken, &page); err != nil {
			return nil, err
		}
	}
	out := &ec2.DescribeImagesOutput{}
	if page < len(found) {
		out.Images = found[page : page+1]
	}
	if page+1 < len(found) {
		out.NextToken = aws.String(fmt.Sprint(page + 1))
	}
	return out, nil
}

// ami is an image made on a day of 2026, with "deprecated" from the day it was
// made on.
func ami(id, arch, created string, deprecated bool) types.Image {
	i := types.Image{
		ImageId: aws.String("ami-" + id), Name: aws.String("name-" + id),
		Architecture: types.ArchitectureValues(arch), CreationDate: aws.String("2026-" + created + "T00:00:00.000Z"),
	}
	if deprecated {
		i.DeprecationTime = i.CreationDate
	}
	return i
}

func setup() (*fakeAWS, *image.Images, *clocktesting.FakePassiveClock, *string) {
	fake := &fakeAWS{parameters: map[string]string{}, refused: map[string]string{}}
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	kubernetes := "1.33"
	images := image.New(image.Config{
		EC2: fake, SSM: fake, Kubernetes: func() string { return kubernetes }, Refresh: time.Minute, Clock: clock,
	})
	return fake, images, clock, &kubernetes
}

func class(terms ...awsv1.AMISelectorTerm) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{AMISelectorTerms: terms}}
	c.Name, c.UID, c.Generation = "default", "uid", 1
	return c
}

func alias(text string) *awsv1.EC2NodeClass { return class(awsv1.AMISelectorTerm{Alias: text}) }

// show prints images as "id requirements", keys without their domains.
func show(amis []awsv1.AMI) []string {
	var out []string
	for _, a := range amis {
		text := strings.TrimPrefix(a.ID, "ami-")
		for _, r := range a.Requirements {
			text += fmt.Sprintf(" %s %s %s;", r.Key[strings.LastIndex(r.Key, "/")+1:], r.Operator, strings.Join(r.Values, ","))
		}
		text = strings.TrimSuffix(strings.ReplaceAll(text, " ;", ";"), ";")
		if a.Deprecated {
			text += " deprecated"
		}
		out = append(out, text)
	}
	return out
}

func TestParameters(t *testing.T) {
	for _, c := range []struct {
		alias, kubernetes string
		want              []string // names; those that may change end in "*"
	}{
		{"al2@latest", "1.32", []string{
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id*",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id*",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id*",
		}},
		{"al2@v20240807", "1.30", []string{
			"/aws/service/eks/optimized-ami/1.30/amazon-linux-2/amazon-eks-node-1.30-v20240807/image_id",
			"/aws/service/eks/optimized-ami/1.30/amazon-linux-2-arm64/amazon-eks-arm64-node-1.30-v20240807/image_id",
			"/aws/service/eks/optimized-ami/1.30/amazon-linux-2-gpu/amazon-eks-gpu-node-1.30-v20240807/image_id",
		}},
		{"al2023@latest", "1.33", []string{
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id*",
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/standard/recommended/image_id*",
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/nvidia/recommended/image_id*",
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/nvidia/recommended/image_id*",
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/neuron/recommended/image_id*",
		}},
		{"al2023@v20240807", "1.33", []string{
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.33-v20240807/image_id",
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.33-v20240807/image_id",
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.33-v20240807/image_id",
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.33-v20240807/image_id",
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.33-v20240807/image_id",
		}},
		{"bottlerocket@v1.20.3", "1.31", []string{
			"/aws/service/bottlerocket/aws-k8s-1.31/x86_64/1.20.3/image_id", "/aws/service/bottlerocket/aws-k8s-1.31/arm64/1.20.3/image_id",
			"/aws/service/bottlerocket/aws-k8s-1.31-nvidia/x86_64/1.20.3/image_id", "/aws/service/bottlerocket/aws-k8s-1.31-nvidia/arm64/1.20.3/image_id",
		}},
		{"bottlerocket@latest", "1.31", []string{
			"/aws/service/bottlerocket/aws-k8s-1.31/x86_64/latest/image_id*", "/aws/service/bottlerocket/aws-k8s-1.31/arm64/latest/image_id*",
			"/aws/service/bottlerocket/aws-k8s-1.31-nvidia/x86_64/latest/image_id*", "/aws/service/bottlerocket/aws-k8s-1.31-nvidia/arm64/latest/image_id*",
		}},
		{"windows2022@latest", "1.31", []string{"/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.31/image_id*"}},
	} {
		parsed, _ := alias(c.alias).Alias()
		parameters, err := image.Parameters(parsed, c.kubernetes)
		var got []string
		for _, p := range parameters {
			name := p.Name
			if p.Mutable {
				name += "*"
			}
			got = append(got, name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", c.alias, err, diff)
		}
	}
	if _, err := image.Parameters(awsv1.Alias{Family: awsv1.AMIFamilyAL2}, "new"); err == nil {
		t.Error("no error for a version that is none")
	}
}

// spec 65/119: aliases that have no images for the cluster's version.
func TestUnsupportedAlias(t *testing.T) {
	for _, c := range []struct {
		alias, kubernetes string
		unsupported       bool
	}{
		{"al2@latest", "1.32", false}, {"al2@latest", "1.33", true}, {"al2@v20240807", "1.34", true},
		{"al2023@latest", "1.33", false}, {"windows2025@latest", "1.34", true}, {"windows2025@latest", "1.35", false},
	} {
		fake, images, _, kubernetes := setup()
		*kubernetes = c.kubernetes
		_, err := images.List(t.Context(), alias(c.alias))
		unsupported, is := errors.AsType[*image.UnsupportedAliasError](err)
		if is != c.unsupported || is && (len(fake.asked) > 0 || !strings.Contains(unsupported.Error(), c.alias)) {
			t.Errorf("%s on %s: %v", c.alias, c.kubernetes, err)
		}
	}
}

func TestAliases(t *testing.T) {
	const eks = "/aws/service/eks/optimized-ami/"
	for _, c := range []struct {
		name, alias, kubernetes string
		parameters              map[string]string
		want                    []string
		fails                   string
	}{
		{"spec 65/120 one is missing", "al2023@latest", "1.33", map[string]string{
			eks + "1.33/amazon-linux-2023/x86_64/standard/recommended/image_id": "ami-x",
			eks + "1.33/amazon-linux-2023/arm64/standard/recommended/image_id":  "ami-a",
			eks + "1.33/amazon-linux-2023/x86_64/neuron/recommended/image_id":   "ami-n",
		}, []string{
			"n arch In amd64; instance-accelerator-count Exists",
			"a arch In arm64; instance-gpu-count DoesNotExist; instance-accelerator-count DoesNotExist",
			"x arch In amd64; instance-gpu-count DoesNotExist; instance-accelerator-count DoesNotExist",
		}, ""},
		{"spec 65/120 all are missing", "al2023@v20240807", "1.33", nil, nil, "failed to discover any AMIs for alias (alias=al2023@v20240807)"},
		{"spec 65/121 one image for both kinds of devices", "al2@latest", "1.32", map[string]string{
			eks + "1.32/amazon-linux-2-gpu/recommended/image_id": "ami-x",
		}, []string{"x arch In amd64; instance-accelerator-count Exists", "x arch In amd64; instance-gpu-count Exists"}, ""},
		{"bottlerocket's standard image drives Neuron", "bottlerocket@latest", "1.33", map[string]string{
			"/aws/service/bottlerocket/aws-k8s-1.33/x86_64/latest/image_id":       "ami-x",
			"/aws/service/bottlerocket/aws-k8s-1.33-nvidia/arm64/latest/image_id": "ami-a",
		}, []string{
			"a arch In arm64; instance-gpu-count Exists", "x arch In amd64; instance-accelerator-count Exists",
			"x arch In amd64; instance-gpu-count DoesNotExist; instance-accelerator-count DoesNotExist",
		}, ""},
		{"Windows", "windows2019@latest", "1.33", map[string]string{
			"/aws/service/ami-windows-latest/Windows_Server-2019-English-Core-EKS_Optimized-1.33/image_id": "ami-x",
		}, []string{"x os In windows; arch In amd64; windows-build In 10.0.17763"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake, images, _, kubernetes := setup()
			fake.parameters, *kubernetes = c.parameters, c.kubernetes
			fake.images = []types.Image{
				ami("x", "x86_64", "10-01", false), ami("a", "arm64", "10-02", false), ami("n", "x86_64", "10-03", false),
				ami("other", "x86_64", "10-09", false),
			}
			got, err := images.List(t.Context(), alias(c.alias))
			if diff := cmp.Diff(c.want, show(got)); diff != "" {
				t.Error(diff)
			}
			if c.fails != "" != (err != nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("error %v, want %q", err, c.fails)
			}
		})
	}
}

// A parameter that can't be read now may be there: without it types would seem
// to have no image. So that is an error, and the next call asks again.
func TestParameterThatCannotBeRead(t *testing.T) {
	fake, images, _, _ := setup()
	const x86 = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id"
	const arm = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/arm64/standard/recommended/image_id"
	fake.parameters[x86], fake.parameters[arm] = "ami-x", "ami-a"
	fake.images = []types.Image{ami("x", "x86_64", "10-01", false), ami("a", "arm64", "10-02", false)}
	fake.refused[arm] = "ThrottlingException"
	if got, err := images.List(t.Context(), alias("al2023@latest")); err == nil || len(got) > 0 {
		t.Errorf("got %v, %v", show(got), err)
	}
	fake.refused = nil
	if got, err := images.List(t.Context(), alias("al2023@latest")); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", show(got), err)
	}
}

// spec 65/122: of images with the same requirements one is kept.
func TestSelection(t *testing.T) {
	for _, c := range []struct {
		name   string
		images []types.Image
		want   []string
	}{
		{"the newer", []types.Image{ami("1", "x86_64", "10-02", false), ami("2", "x86_64", "10-01", false)}, []string{"1 arch In amd64"}},
		{"one that is not deprecated", []types.Image{ami("1", "x86_64", "10-02", true), ami("2", "x86_64", "10-01", false)}, []string{"2 arch In amd64"}},
		{"the newer of two deprecated", []types.Image{ami("1", "x86_64", "10-01", true), ami("2", "x86_64", "10-02", true)}, []string{"2 arch In amd64 deprecated"}},
		{"the greater name", []types.Image{ami("2", "x86_64", "10-01", false), ami("1", "x86_64", "10-01", false)}, []string{"2 arch In amd64"}},
		{"one without a date is the oldest", []types.Image{
			{ImageId: aws.String("ami-9"), Name: aws.String("z"), Architecture: "x86_64"}, ami("1", "x86_64", "10-01", false),
		}, []string{"1 arch In amd64"}},
		{"one for each architecture, the newest first", []types.Image{
			ami("1", "x86_64", "10-01", false), ami("2", "arm64", "10-02", false), ami("3", "i386", "10-03", false),
		}, []string{"2 arch In arm64", "1 arch In amd64"}},
		{"by ID on the same day", []types.Image{ami("2", "x86_64", "10-01", false), ami("1", "arm64", "10-01", false)}, []string{"1 arch In arm64", "2 arch In amd64"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake, images, _, _ := setup()
			fake.images = c.images
			got, err := images.List(t.Context(), class(awsv1.AMISelectorTerm{Tags: map[string]string{"team": "a"}}))
			if diff := cmp.Diff(c.want, show(got)); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestNoImages(t *testing.T) {
	_, images, _, _ := setup()
	if got, err := images.List(t.Context(), class(awsv1.AMISelectorTerm{ID: "ami-1"})); err != nil || got != nil {
		t.Errorf("%v, %v", show(got), err)
	}
}
