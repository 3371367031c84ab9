// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud/azure/azurefake"
)

// counted is what launches count in TestLaunchMetrics.
const counted = `
# HELP karpenter_instance_vm_create_start_total Number of instances that were requested of Azure. Labeled by image definition, size, zone, capacity type and NodePool.
# TYPE karpenter_instance_vm_create_start_total counter
karpenter_instance_vm_create_start_total{capacity_type="on-demand",image="2204gen2containerd",nodepool="default",size="Standard_D4s_v3",zone="eastus-3"} 1
karpenter_instance_vm_create_start_total{capacity_type="spot",image="2204gen2containerd",nodepool="default",size="Standard_D4s_v3",zone="eastus-1"} 1
karpenter_instance_vm_create_start_total{capacity_type="spot",image="2204gen2containerd",nodepool="default",size="Standard_D4s_v3",zone="eastus-2"} 1
# HELP karpenter_instance_vm_create_failure_total Number of requested instances that Azure did not make. Labeled as the requests, by the phase (sync, async) and by Azure's error code.
# TYPE karpenter_instance_vm_create_failure_total counter
karpenter_instance_vm_create_failure_total{capacity_type="spot",error_code="SkuNotAvailable",image="2204gen2containerd",nodepool="default",phase="sync",size="Standard_D4s_v3",zone="eastus-1"} 1
karpenter_instance_vm_create_failure_total{capacity_type="spot",error_code="ZonalAllocationFailed",image="2204gen2containerd",nodepool="default",phase="async",size="Standard_D4s_v3",zone="eastus-2"} 1
# HELP karpenter_image_selection_error_count Number of launches without an image for the size. Labeled by image family.
# TYPE karpenter_image_selection_error_count counter
karpenter_image_selection_error_count{family="Ubuntu2204"} 1
`

// TestLaunchMetrics: launches are counted in both modes, with the definition of their image; those
// that Azure refuses and those that fail later, too; and sizes without an image.
func TestLaunchMetrics(t *testing.T) {
	for mode, of := range map[string]func(*testing.T) *region{
		"AKS machines": newRegion,
		"VMs":          func(t *testing.T) *region { return newOwn(t) },
	} {
		t.Run(mode, func(t *testing.T) {
			r := of(t)
			r.azure.Script(place("Standard_D4s_v3", "eastus-2", "spot"), azurefake.Refusal{Code: "ZonalAllocationFailed", Late: true})
			r.launch(r.claim("a", d4s("eastus-2", "spot")...))
			r.clock.Step(azurefake.CreationTime)
			must(t, r.CheckLaunches(t.Context()))
			r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "SkuNotAvailable"})
			if _, err := r.Create(t.Context(), r.claim("b", d4s("eastus-1", "spot")...)); err == nil {
				t.Error("what Azure refuses is launched")
			}
			r.launch(r.claim("c", d4s("eastus-3", "on-demand")...))
			r.class(func(c *v1beta1.AKSNodeClass) { c.Status.Images = c.Status.Images[2:] }) // that of arm64
			if _, err := r.Create(t.Context(), r.claim("d", d4s("eastus-3", "on-demand")...)); err == nil {
				t.Error("a size without an image is launched")
			}
			if err := testutil.GatherAndCompare(r.registry, strings.NewReader(counted)); err != nil {
				t.Error(err)
			}
		})
	}
}
