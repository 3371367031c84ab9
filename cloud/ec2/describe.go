// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

//go:embed described.json
var described []byte

// Description is what EC2's DescribeInstanceTypes answers about a type, as far
// as someone here asks. Names, nesting and spelling of values are EC2's.
// Pointers are nil where EC2 says nothing; all else is then empty or zero.
type Description struct {
	InstanceType                  string
	SupportedUsageClasses         []string // "on-demand", "spot", "capacity-block"
	Hypervisor                    string   // "nitro" or "xen"; empty on bare metal
	BareMetal                     bool
	BurstablePerformanceSupported bool
	ProcessorInfo                 ProcessorInfo
	VCpuInfo                      VCpuInfo
	MemoryInfo                    MemoryInfo
	InstanceStorageInfo           *InstanceStorageInfo // nil without local disks
	EbsInfo                       EbsInfo
	NetworkInfo                   NetworkInfo
	GpuInfo                       GpuInfo
	InferenceAcceleratorInfo      InferenceAcceleratorInfo
	NeuronInfo                    NeuronInfo
	PlacementGroupInfo            PlacementGroupInfo
	NitroEnclavesSupport          string // "supported" or "unsupported"
}

// ProcessorInfo is about the processor.
type ProcessorInfo struct {
	Manufacturer             string
	SupportedArchitectures   []string // "x86_64", "arm64", "i386"
	SustainedClockSpeedInGhz float64  // 0 = unknown
	SupportedFeatures        []string
}

// VCpuInfo is about virtual processors.
type VCpuInfo struct{ DefaultVCpus int64 }

// MemoryInfo is about the memory of a type or of one device.
type MemoryInfo struct{ SizeInMiB int64 }

// InstanceStorageInfo is about local disks.
type InstanceStorageInfo struct {
	TotalSizeInGB int64
	NvmeSupport   string // "required", "supported" or "unsupported"
}

// EbsInfo is about the connection to disks.
type EbsInfo struct {
	EbsOptimizedSupport string // "default", "supported" or "unsupported"
	EbsOptimizedInfo    struct{ MaximumBandwidthInMbps int64 }
}

// NetworkInfo is about network cards and their interfaces.
type NetworkInfo struct {
	EnaSupport                   string // "required", "supported" or "unsupported"
	Ipv4AddressesPerInterface    int64
	DefaultNetworkCardIndex      int
	EncryptionInTransitSupported bool
	NetworkPerformance           string // "10 Gigabit", "Up to 5 Gigabit", "Moderate"
	EfaInfo                      struct{ MaximumEfaInterfaces int64 }
	NetworkCards                 []NetworkCard
}

// NetworkCard is one network card.
type NetworkCard struct {
	NetworkCardIndex         int
	MaximumNetworkInterfaces int64
	BaselineBandwidthInGbps  float64 // 0 = unknown
}

// BaselineMbps returns the network bandwidth that a type has for as long as it
// likes, 0 when EC2 does not say. EC2 gives it for each card. Where a type has
// several, the text about all of them counts, if it names a bandwidth without "Up
// to": each card of some types can use all of it.
func (n *NetworkInfo) BaselineMbps() int64 {
	var sum float64
	for _, card := range n.NetworkCards {
		sum += card.BaselineBandwidthInGbps
	}
	if len(n.NetworkCards) > 1 {
		if number, ok := strings.CutSuffix(n.NetworkPerformance, " Gigabit"); ok {
			if gbps, err := strconv.ParseFloat(number, 64); err == nil {
				sum = gbps
			}
		}
	}
	return int64(math.Round(sum * 1000))
}

// GpuInfo lists GPUs.
type GpuInfo struct{ Gpus []DeviceInfo }

// InferenceAcceleratorInfo lists inference accelerators.
type InferenceAcceleratorInfo struct{ Accelerators []DeviceInfo }

// DeviceInfo is a kind of GPU or accelerator.
type DeviceInfo struct {
	Name         string
	Manufacturer string
	Count        int64 // 0 for fractions of a GPU
	MemoryInfo   MemoryInfo
}

// NeuronInfo lists Neuron devices.
type NeuronInfo struct{ NeuronDevices []NeuronDevice }

// NeuronDevice is a kind of Neuron device.
type NeuronDevice struct {
	Name     string
	Count    int64
	CoreInfo struct{ Count int64 } // of each device
}

// PlacementGroupInfo is about placement groups.
type PlacementGroupInfo struct{ SupportedStrategies []string }

// Descriptions returns what EC2 answers about each type, sorted by name. The
// result is the caller's.
func Descriptions() ([]Description, error) {
	record, err := ParseRecord(described)
	if err != nil {
		return nil, err
	}
	return record.Types, nil
}

// Record is a file of descriptions.
type Record struct {
	Source string        `json:"source"`
	Date   string        `json:"date"` // 2006-01-02
	Types  []Description `json:"types"`
}

// ParseRecord reads a file of descriptions.
func ParseRecord(text []byte) (*Record, error) {
	out := &Record{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("ec2 descriptions: %w", err)
	}
	return out, nil
}
