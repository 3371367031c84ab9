// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed catalogue.json
var catalogue []byte

// Type is what is known of an instance type. Pointers and zero counts mark
// what does not apply or is not known.
type Type struct {
	Name       string `json:"name"`
	Family     string `json:"family"`
	Size       string `json:"size"`
	Category   string `json:"category"`
	Generation int    `json:"generation"`

	Arch            string `json:"arch"`
	CPU             int64  `json:"cpu"`
	CPUManufacturer string `json:"cpuManufacturer"`
	ClockMHz        int64  `json:"clockMHz"`  // sustained
	MemoryMiB       int64  `json:"memoryMiB"` // as advertised
	Hypervisor      string `json:"hypervisor"`
	Metal           bool   `json:"metal"`
	Flex            bool   `json:"flex"`

	NetworkMbps         int64 `json:"netMbps"` // baseline
	EBSMbps             int64 `json:"ebsMbps"` // maximum, where optimised by default
	EncryptionInTransit bool  `json:"encInTransit"`
	NVMeGB              int64 `json:"nvmeGB"` // local disks, in total

	GPU         *Device `json:"gpu"`
	Accelerator *Device `json:"accelerator"`

	ENIs        int64   `json:"enis"` // over all network cards
	IPv4PerENI  int64   `json:"ipv4PerEni"`
	CardENIs    []int64 `json:"cardEnis"` // by card; nil for a single card
	DefaultCard int     `json:"defaultCard"`
	Trunking    bool    `json:"trunking"`
	BranchENIs  int64   `json:"branchEnis"`

	Capacity    Capacity           `json:"capacity"`
	Allocatable *Allocatable       `json:"allocatable"` // as published; nil for retired types
	OnDemand    map[string]float64 `json:"-"`           // region → price per hour, from the price tables
	Source      string             `json:"source"`      // version a retired type is from
}

// Device is the GPU or accelerator of a type.
type Device struct {
	Name         string `json:"name"`
	Manufacturer string `json:"manufacturer"`
	Count        int64  `json:"count"`     // 0 for fractions of a GPU
	MemoryMiB    int64  `json:"memoryMiB"` // of each; 0 = unknown
}

// Capacity is what a node of a type has. Extended holds the resources with a
// domain in their name.
type Capacity struct {
	CPU          int64
	MemoryMiB    int64
	EphemeralGiB int64
	Pods         int64
	Extended     map[string]int64
}

// UnmarshalJSON reads the flat object of the catalogue.
func (c *Capacity) UnmarshalJSON(data []byte) error {
	flat := map[string]int64{}
	if err := json.Unmarshal(data, &flat); err != nil {
		return err
	}
	for name, field := range map[string]*int64{
		"cpu": &c.CPU, "memoryMiB": &c.MemoryMiB, "ephemeralGiB": &c.EphemeralGiB, "pods": &c.Pods,
	} {
		*field = flat[name]
		delete(flat, name)
	}
	c.Extended = flat
	return nil
}

// Allocatable is what pods can use of a node of a type.
type Allocatable struct {
	CPUMilli     int64 `json:"cpuMilli"`
	MemoryMiB    int64 `json:"memoryMiB"`
	EphemeralGiB int64 `json:"ephemeralGiB"`
}

// Types returns the catalogue, sorted by name. The result is the caller's.
func Types() ([]Type, error) {
	var out []Type
	if err := json.Unmarshal(catalogue, &out); err != nil {
		return nil, fmt.Errorf("ec2 catalogue: %w", err)
	}
	tables, err := PriceTables()
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].OnDemand = map[string]float64{}
		for _, table := range tables {
			if price, ok := table.OnDemand[out[i].Name]; ok {
				out[i].OnDemand[table.Region] = price
			}
		}
	}
	return out, nil
}

// Regions returns the regions with a price table, sorted.
func Regions() ([]string, error) {
	tables, err := PriceTables()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, table := range tables {
		out = append(out, table.Region)
	}
	return out, nil
}

// Reserved returns what pods can't use of the capacity: the reservations of
// the kubelet, which grow with processors and pods, and the thresholds at
// which it evicts (100 MiB of memory, a tenth of the disk).
func (c Capacity) Reserved() Allocatable {
	const (
		evictionMiB   = 100
		kubeletGiB    = 1
		diskPartInUse = 10
		memoryPerPod  = 11
		memoryPerNode = 255
	)
	return Allocatable{
		CPUMilli:     reservedCPU(c.CPU),
		MemoryMiB:    memoryPerPod*c.Pods + memoryPerNode + evictionMiB,
		EphemeralGiB: kubeletGiB + (c.EphemeralGiB+diskPartInUse-1)/diskPartInUse,
	}
}

// reservedCPU is, in millicores, 6 % of the first processor, 1 % of the second,
// 0.5 % of the next two and 0.25 % of the rest, each cut to whole millicores.
func reservedCPU(cpus int64) int64 {
	var reserved int64
	for _, bracket := range []struct{ from, to, perTenThousand int64 }{
		{0, 1, 600}, {1, 2, 100}, {2, 4, 50}, {4, cpus, 25},
	} {
		if n := min(cpus, bracket.to) - bracket.from; n > 0 {
			reserved += n * 1000 * bracket.perTenThousand / 10_000
		}
	}
	return reserved
}
