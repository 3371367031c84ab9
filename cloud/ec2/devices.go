// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed devices.json
var devices []byte

// DeviceTables are what drivers for dynamic resource allocation publish on nodes.
type DeviceTables struct {
	Source string             `json:"source"` // from where, and how old, as far as is known
	Types  map[string]Devices `json:"types"`  // by name
}

// Devices are those of an instance type.
type Devices struct {
	GPUs *GPUs `json:"gpus"` // nil = none are known
	EFAs *EFAs `json:"efas"` // nil = none are known
}

// GPUs are the GPUs of NVIDIA, all of them the same but for where they are.
type GPUs struct {
	ProductName           string   `json:"productName"`
	Architecture          string   `json:"architecture"`
	Brand                 string   `json:"brand"`
	CUDAComputeCapability string   `json:"cudaComputeCapability"`
	Memory                string   `json:"memory"`    // a quantity
	PCIeRoots             []string `json:"pcieRoots"` // one for each
}

// EFAs are the interfaces of the Elastic Fabric Adapter.
type EFAs struct {
	PCISubsystem string   `json:"pciSubsystem"`
	RDMA         bool     `json:"rdma"`
	PCIeRoots    []string `json:"pcieRoots"` // one for each
	NUMANodes    []int64  `json:"numaNodes"` // one for each, or none is known
}

// DevicesOfTypes returns the tables. The result is the caller's.
func DevicesOfTypes() (*DeviceTables, error) {
	out := &DeviceTables{}
	if err := json.Unmarshal(devices, out); err != nil {
		return nil, fmt.Errorf("ec2 devices: %w", err)
	}
	return out, nil
}
