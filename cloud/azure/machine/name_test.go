// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"karpenter/cloud/azure/machine"
)

// TestName covers spec 71/46: names of machines.
func TestName(t *testing.T) {
	for claim, want := range map[string]string{
		"default-a1b2c":                                "default-a1b2c",
		strings.Repeat("a", 28) + "-a1b2c":             strings.Repeat("a", 28) + "-a1b2c",
		"123456789-123456789-123456789-a1b2c":          "123456789-123456789-12zc32rh-a1b2c",
		"a-very-long-nodepool-name-for-gpu-work-x7k2p": "a-very-long-nodepool-nj8cmxr-x7k2p",
	} {
		if got, err := machine.Name(claim); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", claim, got, err, want)
		}
	}
	seen := map[string]string{}
	for i := range 2000 {
		claim := fmt.Sprintf("a-pool-with-a-name-that-is-far-too-long-%d-a1b2c", i)
		name, err := machine.Name(claim)
		if err != nil || len(name) > 34 || seen[name] != "" {
			t.Fatalf("%s and %s: %q, %v", claim, seen[name], name, err)
		}
		seen[name] = claim
	}
	for _, claim := range []string{strings.Repeat("a", 35), "a-" + strings.Repeat("b", 40)} {
		if got, err := machine.Name(claim); err == nil {
			t.Errorf("%s is shortened to %s", claim, got)
		}
	}
}

// TestIDs covers the names of spec 71 §8.2: of virtual machines and providers.
func TestIDs(t *testing.T) {
	for vm, want := range map[string]string{
		"aks-machines-default-a1b2c-12345678-vm": "default-a1b2c",
		"aks-machines-a-12345678-vm":             "a",
		"aks-machines-12345678-vm":               "",
		"aks-other-default-a1b2c-12345678-vm":    "",
		"aks-default-a1b2c":                      "",
		"aks-machines-default-a1b2c-12345678":    "",
	} {
		if got, ok := machine.NameOfVM("machines", vm); got != want || ok != (want != "") {
			t.Errorf("%s is of machine %q, %t", vm, got, ok)
		}
	}
	const id = "/subscriptions/S/resourceGroups/MC_Group_EastUS/providers/Microsoft.Compute/virtualMachines/aks-machines-default-a1b2c-12345678-vm"
	provider := machine.ProviderID(id)
	if provider != "azure:///subscriptions/S/resourceGroups/mc_group_eastus/providers/Microsoft.Compute/virtualMachines/aks-machines-default-a1b2c-12345678-vm" {
		t.Errorf("provider ID %s", provider)
	}
	if vm, ok := machine.VMName(provider); !ok || vm != "aks-machines-default-a1b2c-12345678-vm" {
		t.Errorf("virtual machine %s", vm)
	}
	for _, other := range []string{"", "aws:///us-east-1a/i-1", "azure:///subscriptions/S", strings.Replace(provider, "virtualMachines", "disks", 1), id} {
		if vm, ok := machine.VMName(other); ok {
			t.Errorf("%q is of %s", other, vm)
		}
	}
}
