// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
)

// pageSize is how many images DescribeImages returns at most at once.
const pageSize = 1000

// queries returns the calls that find the images: those with the IDs, and those
// of the terms with names and tags. Other terms must have become IDs.
func queries(ids []string, terms []awsv1.AMISelectorTerm) []*ec2.DescribeImagesInput {
	var out []*ec2.DescribeImagesInput
	if len(ids) > 0 {
		out = append(out, query(nil, filter("image-id", ids...)))
	}
	for _, term := range terms {
		if term.ID != "" || term.SSMParameter != "" || term.Alias != "" {
			continue
		}
		var owners []string
		var filters []types.Filter
		if term.Owner != "" {
			owners = []string{term.Owner}
		}
		if term.Name != "" {
			filters = append(filters, filter("name", term.Name))
			if owners == nil {
				owners = []string{"self", "amazon"}
			}
		}
		out = append(out, query(owners, append(filters, tagFilters(term.Tags)...)...))
	}
	return out
}

func query(owners []string, filters ...types.Filter) *ec2.DescribeImagesInput {
	return &ec2.DescribeImagesInput{
		Owners: owners, Filters: append(filters, filter("state", "available")),
		IncludeDeprecated: aws.Bool(true), MaxResults: aws.Int32(pageSize),
	}
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// tagFilters select what has all the tags; "*" stands for any value.
func tagFilters(tags map[string]string) []types.Filter {
	var out []types.Filter
	for key, value := range tags {
		if value == "*" {
			out = append(out, filter("tag-key", key))
		} else {
			out = append(out, filter("tag:"+key, value))
		}
	}
	slices.SortFunc(out, func(a, b types.Filter) int { return strings.Compare(*a.Name+a.Values[0], *b.Name+b.Values[0]) })
	return out
}

// candidate is an image with one of its uses.
type candidate struct {
	awsv1.AMI
	created time.Time
}

// candidates returns the image with each of its uses; none for an architecture
// that Kubernetes has no nodes of. Without uses any type of the architecture
// boots from it.
func candidates(i *types.Image, uses [][]corev1.NodeSelectorRequirement, now time.Time) []candidate {
	arch, ok := map[types.ArchitectureValues]string{
		types.ArchitectureValuesX8664: "amd64", types.ArchitectureValuesArm64: "arm64",
	}[i.Architecture]
	if !ok {
		return nil
	}
	if len(uses) == 0 {
		uses = [][]corev1.NodeSelectorRequirement{nil}
	}
	ends := parse(i.DeprecationTime)
	var out []candidate
	for _, use := range uses {
		demand := append(slices.Clone(use), in(corev1.LabelArchStable, arch))
		slices.SortFunc(demand, func(a, b corev1.NodeSelectorRequirement) int {
			return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), strings.Compare(a.Key, b.Key))
		})
		out = append(out, candidate{
			AMI: awsv1.AMI{
				ID: aws.ToString(i.ImageId), Name: aws.ToString(i.Name), Requirements: demand,
				Deprecated: !ends.IsZero() && !ends.After(now),
			},
			created: parse(i.CreationDate),
		})
	}
	return out
}

// parse reads a time of EC2's; zero when there is none.
func parse(text *string) time.Time {
	t, err := time.Parse(time.RFC3339, aws.ToString(text))
	if err != nil {
		return time.Time{}
	}
	return t
}

// choose keeps the best of the candidates with the same use, and returns them as
// in a node class's status: the newest first.
func choose(all []candidate) []awsv1.AMI {
	best := map[string]candidate{}
	for _, c := range all {
		key := fmt.Sprint(c.Requirements)
		if known, ok := best[key]; !ok || better(&c, &known) {
			best[key] = c
		}
	}
	var kept []candidate
	for _, c := range best {
		kept = append(kept, c)
	}
	slices.SortFunc(kept, func(a, b candidate) int {
		return cmp.Or(b.created.Compare(a.created), strings.Compare(a.ID, b.ID),
			strings.Compare(fmt.Sprint(a.Requirements), fmt.Sprint(b.Requirements)))
	})
	var out []awsv1.AMI
	for _, c := range kept {
		out = append(out, c.AMI)
	}
	return out
}

func better(a, b *candidate) bool {
	if a.Deprecated != b.Deprecated {
		return b.Deprecated
	}
	return cmp.Or(a.created.Compare(b.created), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) > 0
}
