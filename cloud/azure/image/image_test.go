// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud/azure/image"
	"karpenter/model"
)

func class(family string, fips, trusted bool) *v1beta1.AKSNodeClass {
	c := &v1beta1.AKSNodeClass{}
	if family != "" {
		c.Spec.ImageFamily = &family
	}
	if fips {
		c.Spec.FIPSMode = new(v1beta1.FIPSModeFIPS)
	}
	if trusted {
		c.Spec.Security = &v1beta1.Security{TrustedLaunch: &v1beta1.TrustedLaunch{SecureBoot: new(true)}}
	}
	return c
}

// TestImageFamilies covers spec 71/17: families and their image definitions.
func TestImageFamilies(t *testing.T) {
	for _, c := range []struct {
		family        string
		fips, trusted bool
		kubernetes    string
		want          image.Family
		first         string
	}{
		{"", false, false, "1.33.4", image.Ubuntu2204, "2204gen2containerd"},
		{"Ubuntu", false, false, "1.33.4", image.Ubuntu2204, "2204gen2containerd"},
		{"Ubuntu", false, false, "1.34.0", image.Ubuntu2404, "2404gen2containerd"},
		{"Ubuntu", false, false, "v1.100.0", image.Ubuntu2404, "2404gen2containerd"},
		{"Ubuntu", false, false, "latest", image.Ubuntu2204, "2204gen2containerd"},
		{"Ubuntu2204", false, false, "1.36.0", image.Ubuntu2204, "2204gen2containerd"},
		{"Ubuntu2404", false, false, "1.30.0", image.Ubuntu2404, "2404gen2containerd"},
		{"AzureLinux", false, false, "1.31.9", image.AzureLinux2, "V2gen2"},
		{"AzureLinux", false, false, "1.32.0", image.AzureLinux3, "V3gen2"},
		{"AzureLinux", false, false, "", image.AzureLinux2, "V2gen2"},
		{"Ubuntu", true, false, "1.34.0", image.Ubuntu2004, "2004gen2fipscontainerd"},
		{"", true, false, "1.34.0", image.Ubuntu2004, "2004gen2fipscontainerd"},
		{"AzureLinux", true, false, "1.31.0", image.AzureLinux2, "V2gen2fips"},
		{"AzureLinux", true, false, "1.34.0", image.AzureLinux3, "V3gen2fips"},
		{"Ubuntu", false, true, "1.34.0", image.Ubuntu2204, "2204gen2TLcontainerd"},
		{"Ubuntu2404", false, true, "1.34.0", image.Ubuntu2404, "2404gen2TLcontainerd"},
		{"Ubuntu", true, true, "1.34.0", image.Ubuntu2204, "2204gen2fipsTLcontainerd"},
		{"Ubuntu2204", true, true, "1.34.0", image.Ubuntu2204, "2204gen2fipsTLcontainerd"},
		{"AzureLinux", false, true, "1.34.0", image.AzureLinux3, "V3gen2TL"},
		{"Ubuntu2404", true, false, "1.34.0", image.Ubuntu2404, ""},
	} {
		got := image.Of(class(c.family, c.fips, c.trusted), c.kubernetes)
		if got != (image.Wanted{Family: c.want, FIPS: c.fips, TrustedLaunch: c.trusted}) {
			t.Errorf("%+v: wants %+v", c, got)
		}
		definitions := got.Definitions()
		if c.first == "" && definitions != nil || c.first != "" && (len(definitions) == 0 || definitions[0].Name != c.first) {
			t.Errorf("%+v: definitions %+v", c, definitions)
		}
	}
}

// published returns the images of what is wanted, all of one version.
func published(w image.Wanted, version string) []v1beta1.NodeImage {
	var out []v1beta1.NodeImage
	for _, d := range w.Definitions() {
		out = append(out, d.Node(d.SharedID("sub", version)))
	}
	return out
}

// TestImageOfInstanceType covers spec 71/18: the first image that an instance type
// can boot.
func TestImageOfInstanceType(t *testing.T) {
	images := published(image.Wanted{Family: image.Ubuntu2204}, "1")
	fips := published(image.Wanted{Family: image.Ubuntu2004, FIPS: true}, "1")
	for _, c := range []struct {
		arch        string
		generations []string
		images      []v1beta1.NodeImage
		want        string
	}{
		{"amd64", []string{"1"}, images, "2204containerd"},
		{"amd64", []string{"1", "2"}, images, "2204gen2containerd"},
		{"amd64", []string{"2"}, images, "2204gen2containerd"},
		{"arm64", []string{"2"}, images, "2204gen2arm64containerd"},
		{"arm64", []string{"2"}, fips, ""},
	} {
		of := model.NewRequirements(
			model.NewRequirement(model.LabelArch, model.In, c.arch),
			model.NewRequirement(v1beta1.SKUHyperVGenerationLabelKey, model.In, c.generations...))
		got, err := image.Choose(c.images, "Standard_X", of)
		if c.want == "" {
			if err == nil || err.Error() != "no compatible images found for instance type Standard_X" {
				t.Errorf("%s %v: %s, %v", c.arch, c.generations, got.ID, err)
			}
			continue
		}
		if err != nil || !strings.Contains(got.ID, "/images/"+c.want+"/") {
			t.Errorf("%s %v: %s, %v", c.arch, c.generations, got.ID, err)
		}
	}
}

// TestNewestImage covers spec 71/20: the newest by date in the community gallery,
// by version in the shared gallery.
func TestNewestImage(t *testing.T) {
	day := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	if got := image.NewestPublished([]image.Published{{"202601.01.0", day}, {"202509.9.0", day.AddDate(0, 1, 0)}, {"202607.10.0", day.AddDate(0, -1, 0)}}); got != "202509.9.0" {
		t.Errorf("newest by date is %s", got)
	}
	if got := image.NewestPublished(nil); got != "" {
		t.Errorf("newest of none is %q", got)
	}
	for newer, older := range map[string]string{"202509.10.1": "202509.9.0", "202509.9.0": "202509.9", "202510.1.0": "202509.30.5"} {
		for _, order := range [][]string{{newer, older}, {older, newer}} {
			got := image.NewestShared([]image.Shared{
				{"AKSUbuntu", "2204gen2containerd", order[0]},
				{"AKSUbuntu", "2204gen2containerd", order[1]},
				{"AKSWindows", "windows-2022-containerd", "999"},
				{"AKSAzureLinux", "V3gen2", "1"},
			})
			if want := map[string]string{"2204gen2containerd": newer, "V3gen2": "1"}; !maps.Equal(got, want) {
				t.Errorf("of %v the newest are %v", order, got)
			}
		}
	}
}

// TestKeepImages covers spec 71/21: outside of the maintenance window, versions
// stay and definitions follow.
func TestKeepImages(t *testing.T) {
	ids := func(images []v1beta1.NodeImage) []string {
		var out []string
		for _, i := range images {
			_, rest, _ := strings.Cut(i.ID, "/images/")
			out = append(out, strings.Replace(rest, "/versions/", " ", 1))
		}
		return out
	}
	all := image.Wanted{Family: image.Ubuntu2204}
	stored, newest := published(all, "1"), published(all, "2")
	stored = append(stored[1:], published(image.Wanted{Family: image.AzureLinux3}, "1")...)
	got := ids(image.Keep(stored, newest))
	if want := []string{"2204gen2containerd 2", "2204containerd 1", "2204gen2arm64containerd 1"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
	if got := ids(image.Keep(nil, newest)); !slices.Equal(got, ids(newest)) {
		t.Errorf("of nothing, kept %q", got)
	}
}

// TestMaintenanceWindow covers the window of spec 71/21.
func TestMaintenanceWindow(t *testing.T) {
	const start, end = "aksManagedNodeOSUpgradeSchedule-start", "aksManagedNodeOSUpgradeSchedule-end"
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	for _, c := range []struct {
		data map[string]string
		open bool
		err  bool
	}{
		{nil, true, false},
		{map[string]string{"other": "x"}, true, false},
		{map[string]string{start: "", end: ""}, true, false},
		{map[string]string{start: at(-time.Hour), end: at(time.Hour)}, true, false},
		{map[string]string{start: at(time.Hour), end: at(2 * time.Hour)}, false, false},
		{map[string]string{start: at(-2 * time.Hour), end: at(-time.Hour)}, false, false},
		{map[string]string{start: at(0), end: at(time.Hour)}, false, false},
		{map[string]string{start: at(-time.Hour), end: at(0)}, false, false},
		{map[string]string{start: at(-time.Hour)}, false, true},
		{map[string]string{end: at(time.Hour)}, false, true},
		{map[string]string{start: "yesterday", end: at(time.Hour)}, false, true},
	} {
		open, err := image.WindowOpen(c.data, now)
		if open != c.open || (err != nil) != c.err {
			t.Errorf("%v: open %t, %v", c.data, open, err)
		}
	}
}

// TestNodeImageVersion covers spec 71/22.
func TestNodeImageVersion(t *testing.T) {
	got, err := image.NodeImageVersion("/subscriptions/s/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/2204gen2containerd/versions/2022.10.03")
	if got != "AKSUbuntu-2204gen2containerd-2022.10.03" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	for _, d := range (image.Wanted{Family: image.AzureLinux3}).Definitions() {
		got, err := image.NodeImageVersion(d.SharedID("s", "202607.10.0"))
		if got != "AKSAzureLinux-"+d.Name+"-202607.10.0" || err != nil {
			t.Errorf("%s: %s, %v", d.Name, got, err)
		}
		if got, err := image.NodeImageVersion(d.CommunityID("1")); err == nil {
			t.Errorf("a community image is %s", got)
		}
	}
	for _, id := range []string{"", "/galleries/", "/galleries/AKSUbuntu/images//versions/1", "/galleries/g/images/d/versions/v/more"} {
		if got, err := image.NodeImageVersion(id); err == nil {
			t.Errorf("%q is %s", id, got)
		}
	}
}
