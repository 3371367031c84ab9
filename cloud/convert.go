// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
)

// Types returns the types as decisions see them, in the order given, with
// quantities as vectors on the axis and offerings by zone and capacity type. An
// offering with resources of its own has no place in the model yet: it is
// passed on as unavailable, so that it prices nodes but is not planned.
func Types(axis *model.Axis, types []*InstanceType) []*model.InstanceType {
	out := make([]*model.InstanceType, len(types))
	for i, t := range types {
		out[i] = &model.InstanceType{
			Name:         t.Name,
			Requirements: t.Requirements,
			Capacity:     vector(axis, t.Capacity).With(model.Nodes, 1),
			Allocatable:  vector(axis, t.Allocatable()),
			Offerings:    offerings(t.Offerings),
			VolumeLimits: volumeLimits(t.VolumeAttachmentLimits),
			Devices:      devicePools(t.DevicePools),
		}
	}
	return out
}

func volumeLimits(of map[string]int) []model.VolumeLimit {
	var out []model.VolumeLimit
	for _, driver := range slices.Sorted(maps.Keys(of)) {
		out = append(out, model.VolumeLimit{Driver: driver, Most: of[driver]})
	}
	return out
}

func offerings(in []Offering) []model.Offering {
	sorted := slices.Clone(in)
	slices.SortStableFunc(sorted, func(a, b Offering) int { return compareOfferings(&a, &b) })
	out := make([]model.Offering, len(sorted))
	for i, o := range sorted {
		out[i] = model.Offering{
			Zone:            o.Zone(),
			CapacityType:    o.CapacityType(),
			ReservationID:   o.ReservationID,
			ReservationLeft: o.ReservationCapacity,
			Requirements:    o.Requirements,
			Price:           o.Price,
			Available:       o.Available && o.CapacityOverride == nil && o.OverheadOverride == nil,
			Full:            o.Full && o.CapacityOverride == nil && o.OverheadOverride == nil,
		}
	}
	return out
}

// vector returns list on the axis. Names are added to the axis in
// alphabetical order, so that equal lists number it equally.
func vector(axis *model.Axis, list corev1.ResourceList) model.Resources {
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	out := make(model.Resources, model.Nodes+1)
	for _, name := range names {
		q, i := list[corev1.ResourceName(name)], axis.Index(name)
		v := q.Value()
		if i == model.CPU {
			v = q.MilliValue()
		}
		out = out.With(i, v)
	}
	return out
}
