// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"slices"
	"strings"
	"testing"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azurevm"
)

// TestUsableSizes covers spec 71/23: which sizes are used at all, for every size
// that the data judge.
func TestUsableSizes(t *testing.T) {
	registry := gpus(t)
	used, left := 0, 0
	for _, s := range sizes(t) {
		for region := range s.Regions {
			sku, _ := s.In(region)
			if s.MemoryGiB == 0 || sku.Restricted {
				continue
			}
			_, err := instancetype.NewFacts(sku, registry)
			if (err == nil) != (len(s.Excluded) == 0) {
				t.Errorf("%s in %s: %v, but the data exclude it for %v", s.Name, region, err, s.Excluded)
			}
			if err == nil {
				used++
			} else {
				left++
			}
		}
	}
	if used < 4000 || left < 1000 {
		t.Errorf("%d sizes are used, %d are not", used, left)
	}
	for _, name := range []string{
		"Standard_B1s", "Standard_DC4s_v3", "Standard_EC4as_v5", "Standard_E4-2s_v3", "Standard_NP10s", "Standard_NV16as_v4",
		"Standard_F1s", "Basic_A3", "Standard_E64is_v3", "Standard_M832is-208_16_v3",
	} {
		if facts, err := instancetype.NewFacts(azurevm.SKU{Name: name, VCPUs: 4, MemoryGiB: 16, Arch: "amd64", GPUs: gpuCount(t, name)}, registry); err == nil {
			t.Errorf("%s is used: %+v", name, facts)
		}
	}
	for _, c := range []struct {
		vCPUs int64
		gib   float64
		ok    bool
	}{{2, 3.5, true}, {1, 3.5, false}, {2, 3.49, false}, {2, 1, false}} {
		_, err := instancetype.NewFacts(azurevm.SKU{Name: "Standard_B2ts_v2", VCPUs: c.vCPUs, MemoryGiB: c.gib, Arch: "amd64"}, registry)
		if (err == nil) != c.ok {
			t.Errorf("%d vCPUs, %v GiB: %v", c.vCPUs, c.gib, err)
		}
	}
}

func gpuCount(t *testing.T, name string) int64 {
	t.Helper()
	for _, s := range sizes(t) {
		if s.Name == name {
			return s.GPUs
		}
	}
	return 0
}

// TestRestrictions covers spec 71/24: a restricted location hides a size, a
// restricted zone the offerings there.
func TestRestrictions(t *testing.T) {
	sku := skuOf(t, "Standard_D4s_v3")
	sku.Restricted = true
	if _, err := instancetype.NewFacts(sku, gpus(t)); err == nil {
		t.Error("a size that the subscription cannot use is used")
	}
	sku.Restricted, sku.RestrictedZones = false, []string{"1"}
	want := []string{"0 on-demand", "0 spot", "eastus-2 on-demand", "eastus-2 spot", "eastus-3 on-demand", "eastus-3 spot"}
	if got := places(typeOf(t, sku)); !slices.Equal(got, want) {
		t.Errorf("with zone 1 restricted, offerings are %q", got)
	}
}

// TestSupported covers spec 71/31 and 71/32: which sizes a class can launch.
func TestSupported(t *testing.T) {
	ubuntu := func(c *v1beta1.AKSNodeClass) {}
	linux := func(c *v1beta1.AKSNodeClass) { c.Spec.ImageFamily = new("AzureLinux") }
	none := func(c *v1beta1.AKSNodeClass) { c.Spec.GPU = &v1beta1.GPU{Mode: new(v1beta1.GPUModeNone)} }
	driver := func(c *v1beta1.AKSNodeClass) { c.Spec.GPU = &v1beta1.GPU{Mode: new(v1beta1.GPUModeDriver)} }
	encrypted := func(c *v1beta1.AKSNodeClass) { c.Spec.Security = &v1beta1.Security{EncryptionAtHost: new(true)} }
	streaming := func(c *v1beta1.AKSNodeClass) {
		c.Spec.ArtifactStreaming = &v1beta1.ArtifactStreaming{Enabled: new(true)}
	}
	dns := func(c *v1beta1.AKSNodeClass) { c.Status.LocalDNSState = new(v1beta1.LocalDNSStateEnabled) }
	noDNS := func(c *v1beta1.AKSNodeClass) { c.Status.LocalDNSState = new(v1beta1.LocalDNSStateDisabled) }
	trusted := func(c *v1beta1.AKSNodeClass) {
		c.Spec.Security = &v1beta1.Security{TrustedLaunch: &v1beta1.TrustedLaunch{VTPM: new(true)}}
	}
	fips := func(c *v1beta1.AKSNodeClass) { c.Spec.FIPSMode = new(v1beta1.FIPSModeFIPS) }
	for _, c := range []struct {
		size       string
		change     func(*v1beta1.AKSNodeClass)
		kubernetes string
		want       bool
	}{
		{"Standard_NC6s_v2", ubuntu, "1.33.0", true},
		{"Standard_NC6s_v2", linux, "1.33.0", false},
		{"Standard_NV48s_v3", ubuntu, "1.33.0", true},
		{"Standard_NV48s_v3", linux, "1.33.0", false},
		{"Standard_NC4as_T4_v3", linux, "1.31.0", true},
		{"Standard_NC4as_T4_v3", linux, "1.33.0", true},
		{"Standard_NC24ads_A100_v4", linux, "1.33.0", true},
		{"Standard_NC24ads_A100_v4", linux, "1.31.0", false}, // Azure Linux 2
		{"Standard_ND96isr_MI300X_v5", ubuntu, "1.33.0", false},
		{"Standard_ND96isr_MI300X_v5", driver, "1.33.0", false},
		{"Standard_ND96isr_MI300X_v5", none, "1.33.0", true},
		{"Standard_NV24ads_V710_v5", driver, "1.33.0", false},
		{"Standard_NV24ads_V710_v5", none, "1.33.0", true},
		{"Standard_NC24ads_A100_v4", none, "1.33.0", true},
		{"Standard_A2_v2", encrypted, "1.33.0", false},
		{"Standard_D4s_v3", encrypted, "1.33.0", true},
		{"Standard_D16plds_v5", streaming, "1.33.0", false},
		{"Standard_D16plds_v5", ubuntu, "1.33.0", true},
		{"Standard_D4s_v3", streaming, "1.33.0", true},
		{"Standard_D2s_v3", dns, "1.33.0", false},
		{"Standard_D2s_v3", noDNS, "1.33.0", true},
		{"Standard_D4s_v3", dns, "1.33.0", true},
		{"Standard_D16plds_v5", trusted, "1.33.0", false}, // TrustedLaunchDisabled
		{"Standard_A2_v2", trusted, "1.33.0", false},      // generation 1 only
		{"Standard_D4s_v3", trusted, "1.33.0", true},
		{"Standard_D16plds_v5", fips, "1.33.0", false}, // there is no image
		{"Standard_D4s_v3", fips, "1.33.0", true},
	} {
		if got := instancetype.Supported(factsOf(t, skuOf(t, c.size)), class(c.change, c.kubernetes)); got != c.want {
			t.Errorf("%s with Kubernetes %s, %+v: supported %t", c.size, c.kubernetes, class(c.change, c.kubernetes), got)
		}
	}
	rtx := 0
	for _, s := range sizes(t) {
		if !strings.Contains(s.Name, "RTXPRO6000") || s.GPUManufacturer == "" {
			continue
		}
		rtx++
		facts := factsOf(t, azurevm.SKU{Name: s.Name, VCPUs: 8, MemoryGiB: 32, Arch: "amd64", GPUs: 1, HyperVGenerations: []string{"V2"}})
		if instancetype.Supported(facts, class(linux, "1.33.0")) || !instancetype.Supported(facts, class(ubuntu, "1.33.0")) {
			t.Errorf("%s is not for Ubuntu only", s.Name)
		}
	}
	if rtx != 9 {
		t.Errorf("%d sizes with RTX PRO", rtx)
	}
}
