// SPDX-License-Identifier: Apache-2.0

package image

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/azure/v1beta1"
	"karpenter/model"
)

// The shared galleries of AKS.
const (
	ubuntuGallery     = "AKSUbuntu"
	azureLinuxGallery = "AKSAzureLinux"
)

// CommunityGallery returns the public name of the community gallery that holds
// the definition.
func (d Definition) CommunityGallery() string {
	if d.Gallery() == azureLinuxGallery {
		return "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b"
	}
	return "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2"
}

// sharedGroup is the resource group of the definition's shared gallery.
func (d Definition) sharedGroup() string {
	if d.Gallery() == azureLinuxGallery {
		return "AKS-AzureLinux"
	}
	return "AKS-Ubuntu"
}

// CommunityID returns the ID of a version in the community gallery.
func (d Definition) CommunityID(version string) string {
	return fmt.Sprintf("/CommunityGalleries/%s/images/%s/versions/%s", d.CommunityGallery(), d.Name, version)
}

// SharedID returns the ID of a version in the shared gallery, which belongs to
// the subscription.
func (d Definition) SharedID(subscription, version string) string {
	return fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Compute/galleries/%s/images/%s/versions/%s",
		subscription, d.sharedGroup(), d.Gallery(), d.Name, version)
}

// Node returns the image of the ID as the status of a class lists it.
func (d Definition) Node(id string) v1beta1.NodeImage {
	return v1beta1.NodeImage{ID: id, Requirements: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{d.Arch}},
		{Key: v1beta1.SKUHyperVGenerationLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{d.Generation}},
	}}
}

// Published is a version in a community gallery.
type Published struct {
	Version string
	Date    time.Time
}

// NewestPublished returns the version that was published last, or "".
func NewestPublished(versions []Published) string {
	if len(versions) == 0 {
		return ""
	}
	return slices.MaxFunc(versions, func(a, b Published) int { return a.Date.Compare(b.Date) }).Version
}

// Shared is a version in a shared gallery, as AKS lists it.
type Shared struct {
	OS, SKU, Version string
}

// NewestShared returns the newest version of each definition by its name.
func NewestShared(versions []Shared) map[string]string {
	newest := map[string]string{}
	for _, v := range versions {
		if v.OS != ubuntuGallery && v.OS != azureLinuxGallery {
			continue
		}
		if old, ok := newest[v.SKU]; !ok || compareVersions(v.Version, old) > 0 {
			newest[v.SKU] = v.Version
		}
	}
	return newest
}

// compareVersions compares by the numbers between dots. Of two versions that
// begin alike, the one with more numbers is newer.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.Atoi(as[i])
		y, errY := strconv.Atoi(bs[i])
		c := cmp.Compare(x, y)
		if errX != nil || errY != nil {
			c = strings.Compare(as[i], bs[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

// Keep returns the newest images with the versions of stored ones where both are
// of the same definition. The order is that of the newest.
func Keep(stored, newest []v1beta1.NodeImage) []v1beta1.NodeImage {
	old := map[string]v1beta1.NodeImage{}
	for _, image := range stored {
		old[definition(image.ID)] = image
	}
	out := slices.Clone(newest)
	for i := range out {
		if image, ok := old[definition(out[i].ID)]; ok {
			out[i].ID = image.ID
		}
	}
	return out
}

// definition is the ID without its version.
func definition(id string) string {
	before, _, _ := strings.Cut(id, "/versions/")
	return before
}

// DefinitionOf returns the name of the definition of an image by its ID, or by what AKS
// calls it; "" if that is of neither form.
func DefinitionOf(image string) string {
	if _, path, ok := strings.Cut(image, "/images/"); ok {
		name, _, _ := strings.Cut(path, "/")
		return name
	}
	const inside = 3 // gallery, definition, version
	if parts := strings.Split(image, "-"); len(parts) == inside {
		return parts[1]
	}
	return ""
}

// NodeImageVersion returns what the AKS machine API calls the image of a shared
// gallery, such as AKSUbuntu-2204gen2containerd-202607.10.0.
func NodeImageVersion(id string) (string, error) {
	_, path, shared := strings.Cut(id, "/galleries/")
	parts := strings.Split(path, "/")
	if !shared || len(parts) != 5 || parts[1] != "images" || parts[3] != "versions" || slices.Contains(parts, "") {
		return "", fmt.Errorf("image %s is not in a shared gallery, so an AKS machine cannot boot it; set USE_SIG to true", id)
	}
	return parts[0] + "-" + parts[2] + "-" + parts[4], nil
}

// Choose returns the first image that boots instance types with the
// requirements.
func Choose(images []v1beta1.NodeImage, instanceType string, requirements model.Requirements) (v1beta1.NodeImage, error) {
	for _, image := range images {
		demand := model.NewRequirements()
		for _, r := range image.Requirements {
			demand = demand.And(model.NewRequirement(r.Key, model.Operator(r.Operator), r.Values...))
		}
		if _, ok := requirements.Intersects(demand); ok {
			return image, nil
		}
	}
	return v1beta1.NodeImage{}, fmt.Errorf("no compatible images found for instance type %s", instanceType)
}
