// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// Region is where all zones are.
const Region = "sim-1"

// Zones returns the zones of the default types.
func Zones() []string { return []string{"sim-1a", "sim-1b", "sim-1c"} }

// Types returns a small catalogue: families c (2 GiB per core) and m (4 GiB),
// of 2 to 16 cores, in every zone, on demand and at 40 % of that price as spot.
// Prices differ a little between zones, so that one is cheapest.
func Types() []*cloud.InstanceType {
	var out []*cloud.InstanceType
	for _, family := range []struct {
		name       string
		gib        int64
		milliCents int64 // per core and hour
	}{{"c", 2, 4250}, {"m", 4, 4800}} {
		for _, cores := range []int64{2, 4, 8, 16} {
			name := fmt.Sprintf("%s-%dx", family.name, cores)
			out = append(out, instanceType(name, cores, cores*family.gib, model.Price(cores*family.milliCents)*model.Dollar/100_000))
		}
	}
	return out
}

func instanceType(name string, cores, gib int64, price model.Price) *cloud.InstanceType {
	var offerings []cloud.Offering
	for i, zone := range Zones() {
		local := price + price*model.Price(i)/100
		offerings = append(offerings,
			offering(zone, v1.CapacityTypeOnDemand, local),
			offering(zone, v1.CapacityTypeSpot, local*2/5))
	}
	pin := func(key string, values ...string) model.Requirement {
		return model.NewRequirement(key, model.In, values...)
	}
	return &cloud.InstanceType{
		Name: name,
		Requirements: model.NewRequirements(
			pin(corev1.LabelInstanceTypeStable, name),
			pin(corev1.LabelArchStable, v1.ArchitectureAmd64),
			pin(corev1.LabelOSStable, string(corev1.Linux)),
			pin(corev1.LabelTopologyRegion, Region),
			model.NewRequirement(corev1.LabelWindowsBuild, model.DoesNotExist),
			pin(corev1.LabelTopologyZone, Zones()...),
			pin(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand, v1.CapacityTypeSpot),
		),
		Offerings: offerings,
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewQuantity(cores, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(gib<<30, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(30, resource.DecimalSI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(20<<30, resource.BinarySI),
		},
		Overhead: cloud.Overhead{KubeReserved: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("256Mi"),
		}},
	}
}

func offering(zone, capacityType string, price model.Price) cloud.Offering {
	return cloud.Offering{
		Requirements: model.NewRequirements(
			model.NewRequirement(corev1.LabelTopologyZone, model.In, zone),
			model.NewRequirement(v1.CapacityTypeLabelKey, model.In, capacityType),
		),
		Price:     price,
		Available: true,
	}
}
