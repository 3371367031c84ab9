// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"karpenter/cloud"
	"karpenter/cloud/azure/machine"
)

// billingExtension is the name of the extension by which AKS bills virtual machines.
const billingExtension = "computeAksLinuxBilling"

// States of virtual machines and extensions.
const (
	creating = "Creating"
	created  = "Succeeded"
	failed   = "Failed"
)

// bill is what is known of the extension of a virtual machine.
type bill struct {
	added bool
	asked time.Time // when Azure accepted it; zero = not yet
}

// Bill adds the extension for AKS' bill to the virtual machines of the names that run
// and do not have it. It returns why that cannot be had, by name. As long as all are known to
// have it, Azure is not asked.
func (v *VMs) Bill(ctx context.Context, names []string) (refused map[string]error, err error) {
	names = v.unbilled(names)
	if !v.config.Billed || len(names) == 0 {
		return nil, nil
	}
	states, err := v.billingStates(ctx)
	if err != nil {
		return nil, err
	}
	refused = map[string]error{}
	var lack []string
	for _, name := range names {
		known := v.billOf(name)
		switch state := states[name]; {
		case state == created:
			v.setBill(name, bill{added: true})
		case v.config.Clock.Since(known.asked) < lag: // lists may show what was before
		case state == failed && !known.asked.IsZero():
			refused[name] = fmt.Errorf("extension %s of virtual machine %s has failed", billingExtension, name)
		case state == failed || state == "":
			lack = append(lack, name)
		}
	}
	if len(lack) == 0 {
		return refused, nil
	}
	machines, err := v.running(ctx, lack)
	errs := []error{err}
	for _, m := range machines {
		err := v.bill(ctx, m)
		switch s := status(err); {
		case err == nil:
			v.setBill(m.Name, bill{asked: v.config.Clock.Now()})
		case s == http.StatusNotFound: // it is gone meanwhile
		case s == http.StatusForbidden || s == http.StatusBadRequest:
			refused[m.Name] = err
		default:
			errs = append(errs, err) // it may be had later
		}
	}
	return refused, errors.Join(errs...)
}

// unbilled returns those of the names whose virtual machines are not known to have the
// extension. What is known of all others is forgotten.
func (v *VMs) unbilled(names []string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	maps.DeleteFunc(v.bills, func(name string, _ bill) bool { return !there[name] })
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return v.bills[name].added })
}

// billingStates returns the states of all extensions, by the names of their virtual machines.
func (v *VMs) billingStates(ctx context.Context) (map[string]string, error) {
	query := v.config.ofType(extensionType) + " | where name == '" + billingExtension + "'"
	extensions, err := rows[armcompute.VirtualMachineExtension](ctx, &v.config, query)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i := range extensions {
		owner, ok := ownerOf(value(extensions[i].ID))
		if p := extensions[i].Properties; ok && p != nil {
			out[owner] = value(p.ProvisioningState)
		}
	}
	return out, nil
}

// running returns those of the virtual machines that run. Lists lack those without a
// NodePool.
func (v *VMs) running(ctx context.Context, names []string) ([]*machine.Machine, error) {
	all, err := v.List(ctx)
	if err != nil {
		return nil, err
	}
	listed := map[string]*machine.Machine{}
	for _, m := range all {
		listed[m.Name] = m
	}
	var out []*machine.Machine
	var errs []error
	for _, name := range names {
		m := listed[name]
		if m == nil {
			if m, err = v.Get(ctx, name); err != nil {
				if !cloud.IsNotFound(err) {
					errs = append(errs, err)
				}
				continue
			}
		}
		if m.State == created {
			out = append(out, m)
		}
	}
	return out, errors.Join(errs...)
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

func (v *VMs) billOf(name string) bill {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bills[name]
}

func (v *VMs) setBill(name string, b bill) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bills[name] = b
}
