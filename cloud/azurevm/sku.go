// SPDX-License-Identifier: Apache-2.0

package azurevm

// SKU is a VM size as it is offered in one region. The fields are those of the
// Compute Resource SKUs API, in Go's types.
type SKU struct {
	Name      string  // Standard_D4s_v5
	Family    string  // of quotas; "" = unknown
	VCPUs     int64   // 0 = unknown
	MemoryGiB float64 // 0 = unknown
	Arch      string  // as Kubernetes names it: amd64, arm64
	GPUs      int64

	AcceleratedNetworking bool
	PremiumIO             bool
	LowPriority           bool // can be spot
	EncryptionAtHost      bool
	TrustedLaunchDisabled bool
	HyperVGenerations     []string // "V1", "V2"
	DataDisks             int64    // how many can be attached; 0 = unknown

	EphemeralOSDisk   bool
	Placements        []string // of ephemeral OS disks; nil = Azure does not say
	NVMeDiskMiB       int64
	CachedDiskBytes   int64
	ResourceVolumeMiB int64

	Zones           []string // numbers of the zones that offer it
	RestrictedZones []string // of Zones, those that the subscription cannot use
	Restricted      bool     // the subscription cannot use it in the region
	UltraSSD        bool     // ultra disks work outside of zones
	UltraSSDZones   []string // zones in which ultra disks work
}
