// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"karpenter/api/azure/v1beta1"
	karpenterv1 "karpenter/api/v1"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azurevm"
)

// TestEveryTypeDefinesAllLabels: every size that is used defines every well-known
// label that types define, with values that labels can have.
func TestEveryTypeDefinesAllLabels(t *testing.T) {
	keys := karpenterv1.DefaultLabels().With(v1beta1.Labels()).WellKnown.Clone()
	keys.Delete(karpenterv1.NodePoolLabelKey, v1beta1.NodeClassLabelKey, "node.kubernetes.io/windows-build")
	known := v1beta1.Labels().KnownValues
	checked := 0
	for _, sku := range azurevm.Offered(sizes(t), "eastus") {
		facts, err := instancetype.NewFacts(sku, gpus(t))
		if err != nil {
			continue
		}
		checked++
		it := instancetype.New(facts, class(nil, "1.33.4"), eastus(), &instancetype.Market{})
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			r, ok := it.Requirements.Get(key)
			if !ok {
				t.Errorf("%s does not define %s", sku.Name, key)
			}
			for _, value := range r.Values {
				if faults := validation.IsValidLabelValue(value); faults != nil {
					t.Errorf("%s: %s=%q: %v", sku.Name, key, value, faults)
				}
				if all, closed := known[key]; closed && !all.Has(value) {
					t.Errorf("%s: %s=%s is not a known value", sku.Name, key, value)
				}
			}
		}
	}
	if checked < 900 {
		t.Errorf("%d sizes checked", checked)
	}
}

// TestNameLabels covers spec 71/33.
func TestNameLabels(t *testing.T) {
	for _, c := range []struct{ size, key, want string }{
		{"Standard_A2_v2", v1beta1.SKUVersionLabelKey, "2"},
		{"Standard_B2s", v1beta1.SKUVersionLabelKey, "1"},
		{"Standard_NC24ads_A100_v4", v1beta1.SKUSeriesLabelKey, "NCads_v4"},
		{"Standard_NC24ads_A100_v4", v1beta1.SKUFamilyLabelKey, "N"},
		{"Standard_NC24ads_A100_v4", v1beta1.SKUNameLabelKey, "Standard_NC24ads_A100_v4"},
		{"Standard_D4s_v3", v1beta1.SKUCPULabelKey, "4"},
		{"Standard_D4s_v3", v1beta1.AKSCPULabelKey, "4"},
		{"Standard_D4s_v3", v1beta1.SKUPremiumStorageLabelKey, "true"},
		{"Standard_A2_v2", v1beta1.SKUPremiumStorageLabelKey, "false"},
		{"Standard_A2_v2", v1beta1.SKUHyperVGenerationLabelKey, "1"},
		{"Standard_D16plds_v5", "kubernetes.io/arch", "arm64"},
	} {
		if got := label(typeOf(t, skuOf(t, c.size)), c.key); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %s is %v, want %s", c.size, c.key, got, c.want)
		}
	}
	linux := func(c *v1beta1.AKSNodeClass) {
		c.Spec.ImageFamily, c.Spec.FIPSMode = new("AzureLinux"), new(v1beta1.FIPSModeFIPS)
	}
	it := instancetype.New(factsOf(t, skuOf(t, "Standard_D4s_v3")), class(linux, "1.33.4"), eastus(), &instancetype.Market{})
	if got := label(it, v1beta1.AKSOSSKULabelKey); !slices.Equal(got, []string{"AzureLinux"}) {
		t.Errorf("os-sku is %v", got)
	}
	if got := label(it, v1beta1.AKSFIPSEnabledLabelKey); !slices.Equal(got, []string{"true"}) {
		t.Errorf("fips_enabled is %v", got)
	}
}

// TestNameLabel: names of resource groups and subnets as label values.
func TestNameLabel(t *testing.T) {
	for group, want := range map[string]string{
		"MC_shop_prod_eastus":           "MC_shop_prod_eastus",
		"group(1)":                      "group-1-z",
		"group_":                        "group_z",
		"(group) of nodes":              "group--of-nodes",
		"größe":                         "gr--e",
		strings.Repeat("a", 63):         strings.Repeat("a", 63),
		strings.Repeat("a", 80):         strings.Repeat("a", 63),
		strings.Repeat("a", 62) + "_bb": strings.Repeat("a", 62) + "z",
		strings.Repeat("a", 61) + "_":   strings.Repeat("a", 61) + "_z",
		"":                              "",
	} {
		if got := instancetype.NameLabel(group); got != want {
			t.Errorf("%s is %s, want %s", group, got, want)
		}
	}
}
