// SPDX-License-Identifier: Apache-2.0

package client

import (
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"karpenter/cloud/azurevm"
)

// virtualMachines is the type of SKUs that are VM sizes.
const virtualMachines = "virtualMachines"

// skuOf returns the size as Azure describes it for the region. What Azure does not
// say, or not as a number where there must be one, is unknown.
func skuOf(in *armcompute.ResourceSKU, region string) azurevm.SKU {
	has := capabilities(in.Capabilities)
	out := azurevm.SKU{
		Name:   text(in.Name),
		Family: text(in.Family),
		VCPUs:  has.integer("vCPUs"),
		Arch:   "amd64",
		GPUs:   has.integer("GPUs"),

		AcceleratedNetworking: has.truth("AcceleratedNetworkingEnabled"),
		PremiumIO:             has.truth("PremiumIO"),
		LowPriority:           has.truth("LowPriorityCapable"),
		EncryptionAtHost:      has.truth("EncryptionAtHostSupported"),
		TrustedLaunchDisabled: has.truth("TrustedLaunchDisabled"),
		HyperVGenerations:     has.list("HyperVGenerations"),
		DataDisks:             has.integer("MaxDataDiskCount"),

		EphemeralOSDisk:   has.truth("EphemeralOSDiskSupported"),
		Placements:        has.list("SupportedEphemeralOSDiskPlacements"),
		NVMeDiskMiB:       has.integer("NvmeDiskSizeInMiB"),
		CachedDiskBytes:   has.integer("CachedDiskBytes"),
		ResourceVolumeMiB: has.integer("MaxResourceVolumeMB"), // MiB, in spite of its name
		UltraSSD:          has.truth("UltraSSDAvailable"),
	}
	out.MemoryGiB, _ = strconv.ParseFloat(has["memorygb"], 64) // GiB, in spite of its name
	if strings.EqualFold(has["cpuarchitecturetype"], "Arm64") {
		out.Arch = "arm64"
	}
	for _, at := range in.LocationInfo {
		if at != nil && strings.EqualFold(text(at.Location), region) {
			out.Zones = append(out.Zones, texts(at.Zones)...)
			out.UltraSSDZones = append(out.UltraSSDZones, ultraZones(at)...)
		}
	}
	slices.Sort(out.Zones)
	for _, r := range in.Restrictions {
		restrict(&out, r, region)
	}
	return out
}

// ultraZones returns the zones in which ultra disks work.
func ultraZones(at *armcompute.ResourceSKULocationInfo) []string {
	var out []string
	for _, detail := range at.ZoneDetails {
		if detail != nil && capabilities(detail.Capabilities).truth("UltraSSDAvailable") {
			out = append(out, texts(detail.Name)...)
		}
	}
	return out
}

// restrict notes where the subscription cannot use the size.
func restrict(sku *azurevm.SKU, r *armcompute.ResourceSKURestrictions, region string) {
	if r == nil || r.Type == nil {
		return
	}
	here := func(names []*string) bool {
		return slices.ContainsFunc(names, func(n *string) bool { return strings.EqualFold(text(n), region) })
	}
	of := r.RestrictionInfo
	switch *r.Type {
	case armcompute.ResourceSKURestrictionsTypeLocation:
		sku.Restricted = sku.Restricted || here(r.Values) || of != nil && here(of.Locations)
	case armcompute.ResourceSKURestrictionsTypeZone:
		if of != nil {
			sku.RestrictedZones = append(sku.RestrictedZones, texts(of.Zones)...)
		}
	}
}

// named is capabilities by their name in lower case.
type named map[string]string

func capabilities(list []*armcompute.ResourceSKUCapabilities) named {
	out := named{}
	for _, c := range list {
		if c != nil {
			out[strings.ToLower(text(c.Name))] = text(c.Value)
		}
	}
	return out
}

func (n named) integer(name string) int64 {
	value, _ := strconv.ParseInt(n[strings.ToLower(name)], 10, 64)
	return value
}

func (n named) truth(name string) bool { return strings.EqualFold(n[strings.ToLower(name)], "True") }

// list returns nil if the capability is not there.
func (n named) list(name string) []string {
	value, ok := n[strings.ToLower(name)]
	if !ok {
		return nil
	}
	return strings.Split(value, ",")
}

func texts(list []*string) []string {
	var out []string
	for _, s := range list {
		out = append(out, text(s))
	}
	return out
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
