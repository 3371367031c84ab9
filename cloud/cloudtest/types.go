// SPDX-License-Identifier: Apache-2.0

package cloudtest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// Region is the region of the types made by Type.
const Region = "test-region"

// Type returns an amd64 Linux instance type with the capacity, 110 pods, 20Gi
// of disk and no overhead. Capacity is what model prints: cpu and memory
// quantities.
func Type(name, cpu, memory string, offerings ...cloud.Offering) *cloud.InstanceType {
	var zones, capacityTypes []string
	for _, o := range offerings {
		zones = append(zones, o.Zone())
		capacityTypes = append(capacityTypes, o.CapacityType())
	}
	return &cloud.InstanceType{
		Name: name,
		Requirements: model.NewRequirements(
			model.NewRequirement(corev1.LabelInstanceTypeStable, model.In, name),
			model.NewRequirement(corev1.LabelArchStable, model.In, v1.ArchitectureAmd64),
			model.NewRequirement(corev1.LabelOSStable, model.In, string(corev1.Linux)),
			model.NewRequirement(corev1.LabelTopologyRegion, model.In, Region),
			model.NewRequirement(corev1.LabelWindowsBuild, model.DoesNotExist),
			model.NewRequirement(corev1.LabelTopologyZone, model.In, zones...),
			model.NewRequirement(v1.CapacityTypeLabelKey, model.In, capacityTypes...),
		),
		Offerings: offerings,
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse(cpu),
			corev1.ResourceMemory:           resource.MustParse(memory),
			corev1.ResourcePods:             resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
		},
	}
}

// Offering returns an available offering at a price in dollars per hour.
func Offering(zone, capacityType string, dollars float64) cloud.Offering {
	return cloud.Offering{
		Requirements: model.NewRequirements(
			model.NewRequirement(corev1.LabelTopologyZone, model.In, zone),
			model.NewRequirement(v1.CapacityTypeLabelKey, model.In, capacityType),
		),
		Price:     model.Price(dollars * float64(model.Dollar)),
		Available: true,
	}
}

// DefaultTypes returns the types a Fake starts with: small, medium and large,
// each in test-zone-1 to 3, on demand and at 70 % of that price as spot.
func DefaultTypes() []*cloud.InstanceType {
	var out []*cloud.InstanceType
	for _, t := range []struct {
		name, cpu, memory string
		dollars           float64
	}{
		{"small-instance-type", "2", "4Gi", 0.08},
		{"default-instance-type", "4", "16Gi", 0.2},
		{"large-instance-type", "16", "64Gi", 0.8},
	} {
		var offerings []cloud.Offering
		for _, zone := range []string{"test-zone-1", "test-zone-2", "test-zone-3"} {
			offerings = append(offerings,
				Offering(zone, v1.CapacityTypeOnDemand, t.dollars),
				Offering(zone, v1.CapacityTypeSpot, t.dollars*0.7))
		}
		out = append(out, Type(t.name, t.cpu, t.memory, offerings...))
	}
	return out
}
