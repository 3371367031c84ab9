// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"maps"
	"slices"
	"time"

	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"

	"karpenter/cloud/azurevm"
)

// VM is a virtual machine, of an AKS machine or of its own, and what its kubelet is
// told.
type VM struct {
	ID, Name string // ARM ID and last part of it
	Machine  string
	SKU      azurevm.SKU
	Zone     string // number; "" = regional
	Spot     bool
	DiskGB   int64
	MaxPods  int64 // 0 = as AKS does by itself
	Labels   map[string]string
	Taints   []string // KEY=VALUE:EFFECT, or KEY:EFFECT
	Image    string   // version of the node image
	Running  bool     // false: it is being created or deleted, or is gone
	Evicted  bool     // its machine is still there
	Told     bool     // that it will be evicted
	Tags     map[string]string
	Created  time.Time
	Deleting bool
	Doom     *Refusal // why its creation fails; nil = it does not
	Failed   bool     // its creation
	// CustomData and Extensions are those of virtual machines that are made without
	// AKS; what their kubelets are told is in the data.
	CustomData string
	Extensions []string // in lower case, in no order
	// Identities are the ARM IDs of managed identities of such a virtual machine;
	// SystemIdentity says that it has one of its own besides.
	Identities     []string
	SystemIdentity bool
}

// VMs returns the virtual machines that there are.
func (c *Cloud) VMs() []VM {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked()
	var out []VM
	for _, key := range slices.Sorted(maps.Keys(c.machines)) {
		out = append(out, c.vmLocked(c.machines[key]))
	}
	for _, name := range slices.Sorted(maps.Keys(c.vms)) {
		out = append(out, c.own(c.vms[name]))
	}
	return out
}

func (c *Cloud) vmLocked(m *machine) VM {
	p := m.model.Properties
	vm := VM{
		ID: *p.ResourceID, Name: *p.Kubernetes.NodeName, Machine: *m.model.Name,
		Zone: m.place.Zone, Spot: m.place.Spot, Image: *p.NodeImageVersion, Labels: map[string]string{},
		Evicted: p.Status.VMState != nil && *p.Status.VMState == aks.VMStateDeleted,
		Tags:    map[string]string{}, Created: m.began, Deleting: m.deleting, Told: !m.evicted.IsZero(), Failed: *p.ProvisioningState == "Failed",
		Running: !m.deleting && *p.ProvisioningState == "Succeeded" && p.Status.VMState != nil && *p.Status.VMState == aks.VMStateRunning,
	}
	if m.doomed != nil {
		vm.Doom = &Refusal{Code: m.doomed.code, Message: m.doomed.message, Late: true}
	}
	for key, value := range p.Tags {
		vm.Tags[key] = *value
	}
	for _, sku := range c.config.SKUs {
		if sku.Name == m.place.Size {
			vm.SKU = sku
		}
	}
	if p.OperatingSystem.OSDiskSizeGB != nil {
		vm.DiskGB = int64(*p.OperatingSystem.OSDiskSizeGB)
	}
	if p.Kubernetes.MaxPods != nil {
		vm.MaxPods = int64(*p.Kubernetes.MaxPods)
	}
	for key, value := range p.Kubernetes.NodeLabels {
		vm.Labels[key] = *value
	}
	for _, taint := range slices.Concat(p.Kubernetes.NodeTaints, p.Kubernetes.NodeInitializationTaints) {
		vm.Taints = append(vm.Taints, *taint)
	}
	vm.Labels["kubernetes.azure.com/mode"] = "user"
	if p.Mode != nil && *p.Mode == aks.AgentPoolModeSystem {
		vm.Labels["kubernetes.azure.com/mode"] = "system"
	}
	return vm
}
