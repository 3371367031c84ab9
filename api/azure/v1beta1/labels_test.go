// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/azure/v1beta1"
	karpenterv1 "karpenter/api/v1"
)

// TestWellKnownLabels compares the well-known labels with those that spec 71 §2.1
// lists.
func TestWellKnownLabels(t *testing.T) {
	want := []string{
		"karpenter.azure.com/aksnodeclass",
		"karpenter.azure.com/placement-scope",
		"karpenter.azure.com/sku-cpu",
		"karpenter.azure.com/sku-family",
		"karpenter.azure.com/sku-gpu-count",
		"karpenter.azure.com/sku-gpu-manufacturer",
		"karpenter.azure.com/sku-gpu-name",
		"karpenter.azure.com/sku-memory",
		"karpenter.azure.com/sku-name",
		"karpenter.azure.com/sku-networking-accelerated",
		"karpenter.azure.com/sku-series",
		"karpenter.azure.com/sku-storage-ephemeralos-maxsize",
		"karpenter.azure.com/sku-storage-premium-capable",
		"karpenter.azure.com/sku-storage-ultra-ssd",
		"karpenter.azure.com/sku-version",
		"kubernetes.azure.com/cluster",
		"kubernetes.azure.com/fips_enabled",
		"kubernetes.azure.com/mode",
		"kubernetes.azure.com/os-sku",
		"kubernetes.azure.com/priority",
		"kubernetes.azure.com/scalesetpriority",
		"kubernetes.azure.com/sku-cpu",
		"kubernetes.azure.com/sku-memory",
	}
	if got := slices.Sorted(maps.Keys(v1beta1.Labels().WellKnown)); !slices.Equal(got, want) {
		t.Errorf("well-known labels are\n%q, want\n%q", got, want)
	}
	if got := karpenterv1.NodeClassLabelKey(v1beta1.GroupVersion().WithKind(v1beta1.Kind).GroupKind()); got != v1beta1.NodeClassLabelKey {
		t.Errorf("nodes carry their class under %s, not %s", got, v1beta1.NodeClassLabelKey)
	}
}

// TestLabels: what users may ask for, under which names.
func TestLabels(t *testing.T) {
	labels := karpenterv1.DefaultLabels().With(v1beta1.Labels())
	for key, ok := range map[string]bool{
		v1beta1.SKUCPULabelKey:              true,
		v1beta1.PlacementScopeLabelKey:      true,
		v1beta1.SKUHyperVGenerationLabelKey: false,
		"karpenter.azure.com/sku-colour":    false,
		"sub.karpenter.azure.com/sku-cpu":   false,
		"kubernetes.azure.com/agentpool":    true,
		"agentpool":                         true,
	} {
		if err := labels.CheckRestricted(key); (err == nil) != ok {
			t.Errorf("%s: %v", key, err)
		}
	}
	if key, zone := labels.Canonical(v1beta1.DiskZoneLabelKey, ""); key != corev1.LabelTopologyZone || zone != "0" {
		t.Errorf("the zone of a regional volume is %s=%q", key, zone)
	}
	if key, zone := labels.Canonical(v1beta1.DiskZoneLabelKey, "eastus-2"); key != corev1.LabelTopologyZone || zone != "eastus-2" {
		t.Errorf("the zone of a zonal volume is %s=%q", key, zone)
	}
	for _, c := range []struct {
		key    string
		values []string
		ok     bool
	}{
		{karpenterv1.CapacityTypeLabelKey, []string{"spot", "on-demand"}, true},
		{karpenterv1.CapacityTypeLabelKey, []string{"reserved"}, false},
		{v1beta1.SKUGPUManufacturerLabelKey, []string{"intel"}, false},
		{v1beta1.PlacementScopeLabelKey, []string{"regional"}, true},
		{v1beta1.PlacementScopeLabelKey, []string{"zone"}, false},
		{v1beta1.AKSModeLabelKey, []string{"system"}, true},
		{v1beta1.AKSPriorityLabelKey, []string{"on-demand"}, false},
		{v1beta1.AKSOSSKULabelKey, []string{"Windows"}, false},
	} {
		requirement := karpenterv1.NodeSelectorRequirementWithMinValues{Key: c.key, Operator: corev1.NodeSelectorOpIn, Values: c.values}
		if err := karpenterv1.ValidateRequirement(requirement, labels); (err == nil) != c.ok {
			t.Errorf("%s in %v: %v", c.key, c.values, err)
		}
	}
}

// TestOSSKU: the label of an image family.
func TestOSSKU(t *testing.T) {
	for family, want := range map[string]string{
		"": "Ubuntu", "Ubuntu": "Ubuntu", "Ubuntu2204": "Ubuntu", "Ubuntu2404": "Ubuntu",
		"AzureLinux": "AzureLinux", "Flatcar": "Flatcar",
	} {
		if got := v1beta1.OSSKU(family); got != want {
			t.Errorf("family %q has os-sku %s, want %s", family, got, want)
		}
	}
}
