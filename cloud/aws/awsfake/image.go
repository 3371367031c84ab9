// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// The accounts that publish machine images for EKS.
const (
	eksImages          = "602401143452"
	bottlerocketImages = "092701018921"
	windowsImages      = "801119661308"
)

// Image describes a machine image to be added.
type Image struct {
	Name         string
	Architecture types.ArchitectureValues // default x86_64
	Owner        string                   // account; default the user's own
	Platform     types.PlatformValues     // empty is Linux
	RootDevice   string                   // default /dev/xvda
	Created      time.Time                // default now
	Deprecated   time.Time                // zero is never
	Tags         []types.Tag
}

// AddImage adds a machine image and returns its ID.
func (a *AWS) AddImage(i Image) (id string) {
	a.locked(func(now time.Time) { id = a.addImage(i, now) })
	return id
}

// DeprecateImage sets when an image is deprecated from.
func (a *AWS) DeprecateImage(id string, at time.Time) {
	a.locked(func(time.Time) {
		if i := a.image(id); i != nil {
			i.DeprecationTime = aws.String(stamp(at))
		}
	})
}

// RemoveImage deregisters an image.
func (a *AWS) RemoveImage(id string) {
	a.locked(func(time.Time) {
		a.images = slices.DeleteFunc(a.images, func(i *types.Image) bool { return *i.ImageId == id })
	})
}

// stamp is a time as EC2 writes it into texts.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (a *AWS) image(id string) *types.Image {
	for _, i := range a.images {
		if *i.ImageId == id {
			return i
		}
	}
	return nil
}

func (a *AWS) addImage(i Image, now time.Time) string {
	id := a.id("ami")
	if i.Created.IsZero() {
		i.Created = now
	}
	image := &types.Image{
		ImageId: &id, Name: &i.Name, Description: &i.Name, Architecture: i.Architecture, OwnerId: &i.Owner, Platform: i.Platform, State: types.ImageStateAvailable,
		CreationDate: aws.String(stamp(i.Created)), RootDeviceName: &i.RootDevice, RootDeviceType: types.DeviceTypeEbs, Tags: cloneTags(i.Tags),
		VirtualizationType: types.VirtualizationTypeHvm, ImageType: types.ImageTypeValuesMachine, Public: aws.Bool(i.Owner != ""), EnaSupport: aws.Bool(true),
		Hypervisor: types.HypervisorTypeXen, PlatformDetails: aws.String("Linux/UNIX"),
	}
	if i.Architecture == "" {
		image.Architecture = types.ArchitectureValuesX8664
	}
	if i.RootDevice == "" {
		image.RootDeviceName = aws.String("/dev/xvda")
	}
	switch i.Owner {
	case "":
		image.OwnerId = &a.config.Account
	case eksImages, bottlerocketImages, windowsImages:
		image.ImageOwnerAlias = aws.String("amazon")
	}
	image.ImageLocation = aws.String(*image.OwnerId + "/" + i.Name)
	if i.Platform == types.PlatformValuesWindows {
		image.PlatformDetails = aws.String("Windows")
	}
	if !i.Deprecated.IsZero() {
		image.DeprecationTime = aws.String(stamp(i.Deprecated))
	}
	a.images = append(a.images, image)
	return id
}

var imageFilters = resources[*types.Image]{
	tags: func(i *types.Image) []types.Tag { return i.Tags },
	fields: fields[*types.Image]{
		"image-id":            pointer(func(i *types.Image) *string { return i.ImageId }),
		"name":                pointer(func(i *types.Image) *string { return i.Name }),
		"description":         pointer(func(i *types.Image) *string { return i.Description }),
		"owner-id":            pointer(func(i *types.Image) *string { return i.OwnerId }),
		"owner-alias":         pointer(func(i *types.Image) *string { return i.ImageOwnerAlias }),
		"creation-date":       pointer(func(i *types.Image) *string { return i.CreationDate }),
		"architecture":        one(func(i *types.Image) types.ArchitectureValues { return i.Architecture }),
		"state":               one(func(i *types.Image) types.ImageState { return i.State }),
		"platform":            one(func(i *types.Image) types.PlatformValues { return i.Platform }),
		"virtualization-type": one(func(i *types.Image) types.VirtualizationType { return i.VirtualizationType }),
		"is-public":           one(func(i *types.Image) string { return strconv.FormatBool(aws.ToBool(i.Public)) }),
	},
}

// DescribeImages describes machine images. Deprecated ones of other accounts are
// left out unless asked for.
func (e ec2API) DescribeImages(ctx context.Context, in *ec2.DescribeImagesInput, _ ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	return answer(ctx, e.a, "DescribeImages", in, func(now time.Time) (*ec2.DescribeImagesOutput, error) {
		if err := dryRun(in.DryRun); err != nil {
			return nil, err
		}
		for _, id := range in.ImageIds {
			if !strings.HasPrefix(id, "ami-") {
				return nil, refuse("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
			}
		}
		found, missing := byID(e.a.images, in.ImageIds, func(i *types.Image) string { return *i.ImageId })
		if len(missing) > 0 {
			return nil, refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", strings.Join(missing, ", "))
		}
		found, err := imageFilters.pick(found, in.Filters)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(slices.Clone(found), func(i *types.Image) bool {
			return !e.a.ownedBy(i, in.Owners) || !aws.ToBool(in.IncludeDeprecated) && *i.OwnerId != e.a.config.Account && deprecated(i, now)
		})
		part, next, err := page(found, pages{1, 1000, 0}, in.MaxResults, in.NextToken)
		if err != nil {
			return nil, err
		}
		out := &ec2.DescribeImagesOutput{NextToken: next}
		for _, i := range part {
			out.Images = append(out.Images, copied(*i))
		}
		return out, nil
	})
}

func (a *AWS) ownedBy(i *types.Image, owners []string) bool {
	return len(owners) == 0 || slices.ContainsFunc(owners, func(owner string) bool {
		return owner == *i.OwnerId || owner == aws.ToString(i.ImageOwnerAlias) || owner == "self" && *i.OwnerId == a.config.Account
	})
}

func deprecated(i *types.Image, now time.Time) bool {
	at, err := time.Parse("2006-01-02T15:04:05.000Z", aws.ToString(i.DeprecationTime))
	return err == nil && !at.After(now)
}

// ReleaseImages publishes the images of EKS for a version of Kubernetes as of a
// date, under their names and SSM parameters: AL2 (up to 1.32), AL2023,
// Bottlerocket and Windows (2025 from 1.35 on). The "recommended" and "latest"
// parameters move on to them.
func (a *AWS) ReleaseImages(kubernetes string, date time.Time, bottlerocket string) error {
	major, minor, ok := strings.Cut(kubernetes, ".")
	number, err := strconv.Atoi(minor)
	if !ok || major != "1" || err != nil {
		return fmt.Errorf("awsfake: Kubernetes version %q is not like 1.33", kubernetes)
	}
	a.locked(func(now time.Time) {
		defer a.record(now, a.ids, "ReleaseImages", newImages{kubernetes, date, bottlerocket})
		for _, r := range releases(kubernetes, number, date.UTC(), strings.TrimPrefix(bottlerocket, "v")) {
			id := a.addImage(Image{Name: r.name, Architecture: r.arch, Owner: r.owner, Platform: r.platform, RootDevice: r.root, Created: date}, date)
			for _, name := range r.parameters {
				a.setParameter(name, id, date)
			}
		}
	})
	return nil
}

// release is an image to be published and the parameters that lead to it.
type release struct {
	name       string
	arch       types.ArchitectureValues
	owner      string
	platform   types.PlatformValues
	root       string
	parameters []string
}

func releases(kubernetes string, minor int, date time.Time, bottlerocket string) []release {
	var out []release
	day := date.Format("v20060102")
	eks := func(arch types.ArchitectureValues, folder, name string) {
		at := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/%s/", kubernetes, folder)
		out = append(out, release{name: name, arch: arch, owner: eksImages, parameters: []string{at + "recommended/image_id", at + name + "/image_id"}})
	}
	const x86, arm = types.ArchitectureValuesX8664, types.ArchitectureValuesArm64
	if minor <= 32 {
		eks(x86, "amazon-linux-2", "amazon-eks-node-"+kubernetes+"-"+day)
		eks(arm, "amazon-linux-2-arm64", "amazon-eks-arm64-node-"+kubernetes+"-"+day)
		eks(x86, "amazon-linux-2-gpu", "amazon-eks-gpu-node-"+kubernetes+"-"+day)
	}
	for _, v := range []struct {
		arch    types.ArchitectureValues
		variant string
	}{{x86, "standard"}, {x86, "nvidia"}, {x86, "neuron"}, {arm, "standard"}, {arm, "nvidia"}} {
		eks(v.arch, fmt.Sprintf("amazon-linux-2023/%s/%s", v.arch, v.variant), fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", v.arch, v.variant, kubernetes, day))
	}
	for _, variant := range []string{"", "-nvidia"} {
		for _, arch := range []types.ArchitectureValues{x86, arm} {
			at := fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/", kubernetes, variant, arch)
			out = append(out, release{
				name: fmt.Sprintf("bottlerocket-aws-k8s-%s%s-%s-v%s-%08x", kubernetes, variant, arch, bottlerocket, uint32(date.Unix())), arch: arch,
				owner: bottlerocketImages, parameters: []string{at + "latest/image_id", at + bottlerocket + "/image_id"},
			})
		}
	}
	for _, year := range []int{2019, 2022, 2025} {
		if year == 2025 && minor < 35 {
			continue
		}
		name := fmt.Sprintf("Windows_Server-%d-English-Core-EKS_Optimized-%s", year, kubernetes)
		out = append(out, release{
			name: name + date.Format("-2006.01.02"), arch: x86, owner: windowsImages, platform: types.PlatformValuesWindows, root: "/dev/sda1",
			parameters: []string{"/aws/service/ami-windows-latest/" + name + "/image_id"},
		})
	}
	return out
}
