// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"karpenter/cloud/azure/machine"
)

// billingExtension is the name of the extension by which AKS bills virtual machines.
const billingExtension = "computeAksLinuxBilling"

// running is the state of a virtual machine that has been created.
const running machine.State = "Succeeded"

// Bill adds the extension for AKS' bill to the virtual machines among the names that run
// and do not have it. It returns why Azure refuses it, by name. As long as all are known to
// have it, Azure is not asked.
func (v *VMs) Bill(ctx context.Context, names []string) (refused map[string]error, err error) {
	names = slices.DeleteFunc(slices.Clone(names), v.isBilled)
	if !v.config.Billed || len(names) == 0 {
		return nil, nil
	}
	query := v.config.ofType(extensionType) + " | where name == '" + billingExtension + "'"
	extensions, err := rows[armcompute.VirtualMachineExtension](ctx, &v.config, query)
	if err != nil {
		return nil, err
	}
	for i := range extensions {
		if owner, ok := ownerOf(value(extensions[i].ID)); ok {
			v.setBilled(owner)
		}
	}
	machines, err := v.List(ctx)
	if err != nil {
		return nil, err
	}
	refused = map[string]error{}
	var errs []error
	for _, m := range machines {
		if m.State != running || !slices.Contains(names, m.Name) || v.isBilled(m.Name) {
			continue
		}
		err := v.bill(ctx, m)
		switch s := status(err); {
		case err == nil:
			v.setBilled(m.Name)
		case s >= http.StatusInternalServerError || s == http.StatusTooManyRequests || s == http.StatusConflict || s == 0:
			errs = append(errs, err) // it may be had later
		default:
			refused[m.Name] = err
		}
	}
	return refused, errors.Join(errs...)
}

func (v *VMs) bill(ctx context.Context, m *machine.Machine) error {
	_, err := v.config.Extensions.BeginCreateOrUpdate(ctx, v.config.NodeResourceGroup, m.Name, billingExtension, armcompute.VirtualMachineExtension{
		Location: &v.config.Region, Tags: pointers(m.Tags),
		Properties: &armcompute.VirtualMachineExtensionProperties{
			Publisher: to.Ptr("Microsoft.AKS"), Type: to.Ptr("Compute.AKS.Linux.Billing"), TypeHandlerVersion: to.Ptr("1.0"),
			AutoUpgradeMinorVersion: to.Ptr(true), Settings: map[string]any{},
		},
	}, nil)
	if err != nil {
		return fmt.Errorf("add extension %s to virtual machine %s: %w", billingExtension, m.Name, err)
	}
	return nil
}

// ownerOf returns the name of the virtual machine of an extension by its ID. It is not ok
// if the ID is not of such an extension.
func ownerOf(id string) (name string, ok bool) {
	end := len(id) - len("/extensions/"+billingExtension)
	if end < 0 || !strings.EqualFold(id[end:], "/extensions/"+billingExtension) {
		return "", false
	}
	return lastPart(id[:end]), true
}

func (v *VMs) isBilled(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.billed[name]
}

func (v *VMs) setBilled(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.billed[name] = true
}
