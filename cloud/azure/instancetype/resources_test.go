// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azurevm"
)

func quantity(t *testing.T, list corev1.ResourceList, name corev1.ResourceName, want string) {
	t.Helper()
	if got := list[name]; got.Cmp(resource.MustParse(want)) != 0 {
		t.Errorf("%s is %s, want %s", name, got.String(), want)
	}
}

// TestResources covers spec 71/27: what a node of D2s_v3 has and what is reserved.
func TestResources(t *testing.T) {
	sku := skuOf(t, "Standard_D2s_v3")
	it := typeOf(t, sku)
	const gib = 1 << 30
	memory := resource.NewQuantity(8*gib-int64(math.Ceil(8*gib*0.075)), resource.BinarySI)
	quantity(t, it.Capacity, "cpu", "2")
	quantity(t, it.Capacity, "memory", memory.String())
	quantity(t, it.Capacity, "ephemeral-storage", "128G")
	quantity(t, it.Capacity, "pods", "250")
	quantity(t, it.Capacity, "nvidia.com/gpu", "0")
	quantity(t, it.Overhead.KubeReserved, "cpu", "100m")
	quantity(t, it.Overhead.KubeReserved, "memory", "1843Mi")
	quantity(t, it.Overhead.SystemReserved, "memory", "0")
	quantity(t, it.Overhead.EvictionThreshold, "memory", "750Mi")
	quantity(t, it.Allocatable(), "cpu", "1900m")
	quantity(t, it.Allocatable(), "ephemeral-storage", "128G")
	if got := it.VolumeAttachmentLimits["disk.csi.azure.com"]; got != 4 {
		t.Errorf("%d disks can be attached", got)
	}
	maxPods := func(c *v1beta1.AKSNodeClass) { c.Spec.MaxPods = new(int32(42)) }
	for _, c := range []struct {
		plugin, mode string
		change       func(*v1beta1.AKSNodeClass)
		want         int64
	}{
		{"azure", "overlay", nil, 250},
		{"azure", "", nil, 30},
		{"none", "", nil, 250},
		{"kubenet", "", nil, 110},
		{"azure", "", maxPods, 42},
		{"azure", "overlay", maxPods, 42},
	} {
		cluster := eastus()
		cluster.NetworkPlugin, cluster.NetworkPluginMode = c.plugin, c.mode
		if got := instancetype.MaxPods(class(c.change, "1.33.4"), cluster); got != c.want {
			t.Errorf("%s %s: %d pods, want %d", c.plugin, c.mode, got, c.want)
		}
	}
}

// TestKubeReserved covers spec 71/28: the table of what AKS reserves.
func TestKubeReserved(t *testing.T) {
	reserved := func(vCPUs int64, gib float64) corev1.ResourceList {
		return typeOf(t, azurevm.SKU{Name: "Standard_D2s_v3", VCPUs: vCPUs, MemoryGiB: gib, Arch: "amd64"}).Overhead.KubeReserved
	}
	for vCPUs, want := range map[int64]string{2: "100m", 4: "140m", 8: "180m", 16: "260m", 64: "740m"} {
		quantity(t, reserved(vCPUs, 8), "cpu", want)
	}
	for gib, want := range map[float64]string{4: "1024Mi", 8: "1843Mi", 16: "2662Mi", 32: "3645Mi", 64: "5611Mi", 128: "9543Mi", 256: "12165Mi", 3.5: "896Mi"} {
		quantity(t, reserved(2, gib), "memory", want)
	}
	for vCPUs := int64(2); vCPUs < 500; vCPUs++ {
		less, more := reserved(vCPUs, float64(vCPUs+2)), reserved(vCPUs+1, float64(vCPUs+3))
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			a, b := less[name], more[name]
			if a.Cmp(b) >= 0 {
				t.Errorf("a larger size than %d reserves no more %s", vCPUs, name)
			}
		}
	}
}

// TestEphemeralDisk covers spec 71/29.
func TestEphemeralDisk(t *testing.T) {
	for size, want := range map[string]struct {
		gb        int64
		placement string
	}{
		"Standard_D64s_v3":         {1717, instancetype.CacheDisk},
		"Standard_D128ds_v6":       {7559, instancetype.NVMeDisk},
		"Standard_D16plds_v5":      {429, instancetype.CacheDisk},
		"Standard_NC24ads_A100_v4": {274, instancetype.CacheDisk},
		"Standard_D2as_v6":         {0, ""},
	} {
		facts := factsOf(t, skuOf(t, size))
		if gb, placement := instancetype.EphemeralDisk(facts); gb != want.gb || placement != want.placement {
			t.Errorf("%s: %d GB on %s, want %d on %s", size, gb, placement, want.gb, want.placement)
		}
		it := typeOf(t, skuOf(t, size))
		if r, ok := it.Requirements.Get(v1beta1.SKUEphemeralOSMaxSizeLabelKey); !ok || (want.gb == 0) != (len(r.Values) == 0) {
			t.Errorf("%s: label %v", size, r)
		}
	}
	listed := azurevm.SKU{Name: "Standard_D4ds_v5", VCPUs: 4, MemoryGiB: 16, Arch: "amd64", EphemeralOSDisk: true,
		CachedDiskBytes: 100e9, ResourceVolumeMiB: 150_000, Placements: []string{"ResourceDisk"}}
	if gb, placement := instancetype.EphemeralDisk(factsOf(t, listed)); gb != 157 || placement != instancetype.ResourceDisk {
		t.Errorf("without a cache disk among the placements: %d GB on %s", gb, placement)
	}
}

// TestGPUs covers spec 71/30.
func TestGPUs(t *testing.T) {
	labels := func(it *cloud.InstanceType) string {
		out := ""
		for _, key := range []string{v1beta1.SKUGPUNameLabelKey, v1beta1.SKUGPUManufacturerLabelKey, v1beta1.SKUGPUCountLabelKey} {
			r, ok := it.Requirements.Get(key)
			if !ok {
				t.Errorf("%s does not define %s", it.Name, key)
			}
			for _, v := range r.Values {
				out += v + " "
			}
		}
		return out
	}
	a100 := typeOf(t, skuOf(t, "Standard_NC24ads_A100_v4"))
	if got := labels(a100); got != "A100 nvidia 1 " {
		t.Errorf("A100 has %q", got)
	}
	quantity(t, a100.Capacity, "nvidia.com/gpu", "1")
	quantity(t, a100.Capacity, "amd.com/gpu", "0")
	plain := typeOf(t, skuOf(t, "Standard_D4s_v3"))
	if got := labels(plain); got != "0 " {
		t.Errorf("a size without GPUs has %q", got)
	}
	amd := typeOf(t, skuOf(t, "Standard_ND96isr_MI300X_v5"))
	quantity(t, amd.Capacity, "amd.com/gpu", "8")
	quantity(t, amd.Capacity, "nvidia.com/gpu", "0")
}

// TestFractionalMemory covers spec 71/34.
func TestFractionalMemory(t *testing.T) {
	cluster := eastus()
	cluster.MemoryOverhead = 0
	facts := factsOf(t, azurevm.SKU{Name: "Standard_A2_v2", VCPUs: 2, MemoryGiB: 3.5, Arch: "amd64"})
	it := instancetype.New(facts, class(nil, "1.33.4"), cluster, &instancetype.Market{})
	quantity(t, it.Capacity, "memory", "3Gi")
	for _, key := range []string{v1beta1.SKUMemoryLabelKey, v1beta1.AKSMemoryLabelKey} {
		if got := label(it, key); len(got) != 1 || got[0] != "3584" {
			t.Errorf("%s is %v", key, got)
		}
	}
}
