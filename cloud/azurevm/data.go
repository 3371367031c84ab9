// SPDX-License-Identifier: Apache-2.0

package azurevm

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

//go:embed sizes.json.gz
var sizes []byte

// Size is what is known of a VM size in all regions.
type Size struct {
	Name      string  `json:"name"`
	Family    string  `json:"family"` // of quotas; "" = unknown
	VCPUs     int64   `json:"vCPUs"`
	MemoryGiB float64 `json:"memoryGiB"` // 0 = unknown
	Arch      string  `json:"arch"`
	GPUs      int64   `json:"gpus"`

	GPUManufacturer string   `json:"gpuManufacturer"` // "" = AKS does not support its GPUs
	GPUOS           []string `json:"gpuOS"`           // operating systems that AKS supports its GPUs on
	GPUDriver       string   `json:"gpuDriver"`       // cuda-lts, cuda, grid, grid-v20; "" = AKS installs none

	Known    string            `json:"known"` // day from which AKS knew it; "" = it does not
	Observed capabilities      `json:"caps"`
	Derived  capabilities      `json:"derived"`
	Regions  map[string]Region `json:"regions"`
	Excluded []string          `json:"excluded"` // why Karpenter cannot use it
}

// Region is what is known of a size in a region.
type Region struct {
	Zones              []string      `json:"zones"`
	Observed           string        `json:"observed"` // day of the answer; "" = the zones are assumed
	UltraSSDZones      []string      `json:"ultraSSDZones"`
	Restrictions       []Restriction `json:"restrictions"`
	LowPriorityCapable *bool         `json:"LowPriorityCapable"` // nil = as elsewhere
}

// Restriction says that a subscription could not use a size.
type Restriction struct {
	Type  string   `json:"type"` // Location or Zone
	Zones []string `json:"zones"`
}

// capabilities are those of the SKU API. Nil and zero stand for unknown.
type capabilities struct {
	AcceleratedNetworkingEnabled          *bool
	PremiumIO                             *bool
	LowPriorityCapable                    *bool
	EncryptionAtHostSupported             *bool
	TrustedLaunchDisabled                 *bool
	EphemeralOSDiskSupported              *bool
	UltraSSDAvailable                     *bool
	HyperVGenerations                     []string
	SupportedEphemeralOSDiskPlacements    []string
	NvmeDiskSizeInMiB, CachedDiskBytes    int64
	MaxResourceVolumeMB, MaxDataDiskCount int64
}

// Sizes returns the sizes, sorted by name. The result is the caller's.
func Sizes() ([]Size, error) {
	var out []Size
	if err := decode(sizes, &out); err != nil {
		return nil, fmt.Errorf("azure VM sizes: %w", err)
	}
	return out, nil
}

func decode(packed []byte, into any) error {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// assumedDataDisks is how many data disks a size of which nothing is known takes.
const assumedDataDisks = 32

// In returns the size as it is offered in the region. It is not ok if the region
// does not offer it, as far as is known.
func (s *Size) In(region string) (sku SKU, ok bool) {
	r, ok := s.Regions[region]
	if !ok {
		return SKU{}, false
	}
	sku = SKU{
		Name:                  s.Name,
		Family:                s.Family,
		VCPUs:                 s.VCPUs,
		MemoryGiB:             s.MemoryGiB,
		Arch:                  s.Arch,
		GPUs:                  s.GPUs,
		AcceleratedNetworking: s.is(func(c *capabilities) *bool { return c.AcceleratedNetworkingEnabled }),
		PremiumIO:             s.is(func(c *capabilities) *bool { return c.PremiumIO }),
		LowPriority:           s.is(func(c *capabilities) *bool { return c.LowPriorityCapable }),
		EncryptionAtHost:      s.is(func(c *capabilities) *bool { return c.EncryptionAtHostSupported }),
		TrustedLaunchDisabled: s.is(func(c *capabilities) *bool { return c.TrustedLaunchDisabled }),
		EphemeralOSDisk:       s.is(func(c *capabilities) *bool { return c.EphemeralOSDiskSupported }),
		UltraSSD:              s.is(func(c *capabilities) *bool { return c.UltraSSDAvailable }),
		HyperVGenerations:     either(s.Observed.HyperVGenerations, s.Derived.HyperVGenerations),
		Placements:            either(s.Observed.SupportedEphemeralOSDiskPlacements, s.Derived.SupportedEphemeralOSDiskPlacements),
		NVMeDiskMiB:           max(s.Observed.NvmeDiskSizeInMiB, s.Derived.NvmeDiskSizeInMiB),
		CachedDiskBytes:       max(s.Observed.CachedDiskBytes, s.Derived.CachedDiskBytes),
		ResourceVolumeMiB:     max(s.Observed.MaxResourceVolumeMB, s.Derived.MaxResourceVolumeMB),
		DataDisks:             max(s.Observed.MaxDataDiskCount, s.Derived.MaxDataDiskCount),
		Zones:                 slices.Clone(r.Zones),
		UltraSSDZones:         slices.Clone(r.UltraSSDZones),
	}
	if sku.DataDisks == 0 {
		sku.DataDisks = assumedDataDisks
	}
	if r.LowPriorityCapable != nil {
		sku.LowPriority = *r.LowPriorityCapable
	}
	for _, restriction := range r.Restrictions {
		switch restriction.Type {
		case "Location":
			sku.Restricted = true
		case "Zone":
			sku.RestrictedZones = append(sku.RestrictedZones, restriction.Zones...)
		}
	}
	return sku, true
}

// is reads a capability, which is false unless something says that it is true.
func (s *Size) is(of func(*capabilities) *bool) bool {
	for _, c := range []*capabilities{&s.Observed, &s.Derived} {
		if b := of(c); b != nil {
			return *b
		}
	}
	return false
}

func either(a, b []string) []string {
	if a == nil {
		a = b
	}
	return slices.Clone(a)
}

// GPU is what AKS supports of the GPUs of a size.
type GPU struct {
	Manufacturer string   // nvidia, amd
	OS           []string // ubuntu, azurelinux (version 2), azurelinux3, windows
	Driver       string   // "" = AKS installs none
}

// GPUs is the sizes whose GPUs AKS supports, by name as key makes it.
type GPUs map[string]GPU

// Registry returns the sizes whose GPUs AKS supports.
func Registry(sizes []Size) GPUs {
	out := GPUs{}
	for i := range sizes {
		if s := &sizes[i]; s.GPUManufacturer != "" {
			out[key(s.Name)] = GPU{Manufacturer: s.GPUManufacturer, OS: s.GPUOS, Driver: s.GPUDriver}
		}
	}
	return out
}

// Of returns what is supported of the GPUs of a size.
func (g GPUs) Of(size string) (gpu GPU, ok bool) {
	gpu, ok = g[key(size)]
	return gpu, ok
}

// key is the name of a size in lower case, without the mark of a promotion.
func key(size string) string { return strings.TrimSuffix(strings.ToLower(size), "_promo") }

// Offered returns the SKUs of a region, by name in order.
func Offered(sizes []Size, region string) []SKU {
	var out []SKU
	for i := range sizes {
		if sku, ok := sizes[i].In(region); ok {
			out = append(out, sku)
		}
	}
	return out
}

// Regions returns the regions whose SKUs are known, sorted.
func Regions(sizes []Size) []string {
	found := map[string]bool{}
	for i := range sizes {
		for region := range sizes[i].Regions {
			found[region] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
