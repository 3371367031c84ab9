// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"karpenter/cloud/azurevm"
)

// virtualMachine is one that its owner made, without AKS.
type virtualMachine struct {
	share
	model      armcompute.VirtualMachine
	customData string // decoded; Azure tells it only to the machine
	extensions map[string]*extension
	began      time.Time // its creation
	ready      time.Time // when its creation is over
	gone       time.Time // when its deletion is over
	doomed     *problem  // why its creation fails; nil = it does not
	deleting   bool
	evicted    time.Time // when Azure takes it back; zero = it does not
}

// extension is what a virtual machine runs for its owner.
type extension struct {
	model        armcompute.VirtualMachineExtension
	began, ready time.Time
	fails        bool // when it is ready
}

// ExtensionTime is how long it takes to add an extension.
const ExtensionTime = 10 * time.Second

// FailExtensions has the next n extensions be accepted, and fail.
func (c *Cloud) FailExtensions(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = n
}

// settleVMsLocked lets everything happen to virtual machines that is due.
func (c *Cloud) settleVMsLocked(now time.Time) {
	for key, v := range c.vms {
		p := v.model.Properties
		switch {
		case v.deleting && !now.Before(v.gone), !v.evicted.IsZero() && !now.Before(v.evicted):
			c.removeLocked(key, v, now)
		case v.deleting || *p.ProvisioningState != "Creating" || now.Before(v.ready):
		case v.doomed != nil:
			p.ProvisioningState = to.Ptr("Failed")
		default:
			p.ProvisioningState = to.Ptr("Succeeded")
		}
		for _, e := range v.extensions {
			if *e.model.Properties.ProvisioningState != "Creating" || now.Before(e.ready) {
				continue
			}
			e.model.Properties.ProvisioningState = to.Ptr("Succeeded")
			if e.fails {
				e.model.Properties.ProvisioningState = to.Ptr("Failed")
			}
		}
	}
	for name, nic := range c.nics {
		if !nic.gone.IsZero() && !now.Before(nic.gone) {
			c.removeNICLocked(name, nic, now)
		}
	}
	c.ghosts = slices.DeleteFunc(c.ghosts, func(g ghost) bool { return !now.Before(g.until) })
}

// removeLocked takes a virtual machine away, and what goes with it.
func (c *Cloud) removeLocked(key string, v *virtualMachine, now time.Time) {
	c.hauntLocked(c.vmRow(v), now)
	delete(c.vms, key)
	if !v.deleting {
		c.giveBackLocked(&v.share)
	}
	for _, ref := range v.model.Properties.NetworkProfile.NetworkInterfaces {
		name := strings.ToLower(lastPart(*ref.ID))
		if nic, ok := c.nics[name]; ok && *ref.Properties.DeleteOption == armcompute.DeleteOptionsDelete {
			c.removeNICLocked(name, nic, now)
		} else if ok {
			nic.vm = ""
		}
	}
}

func lastPart(id string) string { return id[strings.LastIndex(id, "/")+1:] }

// inGroup is the ARM ID of something in the resource group of the nodes.
func (c *Cloud) inGroup(kind, name string) string {
	return fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/%s/%s", c.config.Subscription, c.config.NodeGroup, kind, name)
}

// ownRoute finds the operations on what owners make without AKS.
func (c *Cloud) ownRoute(r *request, parts []string) (operation, version string, handle handler) {
	if operation, version, handle = c.lookRoute(r, parts); handle != nil {
		return operation, version, handle
	}
	rest, ok := below(parts, []string{"subscriptions", c.config.Subscription, "resourceGroups", c.config.NodeGroup, "providers"})
	if !ok || len(rest) < 3 {
		return "", "", nil
	}
	r.name = strings.ToLower(rest[2])
	kind := strings.ToLower(rest[0] + "/" + rest[1])
	if len(rest) == 5 && strings.EqualFold(rest[3], "extensions") {
		kind += "/extensions"
		r.pool = rest[4] // what is in the virtual machine
	} else if len(rest) != 3 {
		return "", "", nil
	}
	found := map[string]struct {
		operation, version string
		handle             handler
	}{
		"GET " + vmType:          {"GET vm", computeVersion, c.getVM},
		"PUT " + vmType:          {"PUT vm", computeVersion, c.putVM},
		"PATCH " + vmType:        {"PATCH vm", computeVersion, c.patchVM},
		"DELETE " + vmType:       {"DELETE vm", computeVersion, c.deleteVM},
		"PUT " + extensionType:   {"PUT extension", computeVersion, c.putExtension},
		"PATCH " + extensionType: {"PATCH extension", computeVersion, c.patchExtension},
		"GET " + nicType:         {"GET nic", subnetsVersion, c.getNIC},
		"PUT " + nicType:         {"PUT nic", subnetsVersion, c.putNIC},
		"PATCH " + nicType:       {"PATCH nic", subnetsVersion, c.patchNIC},
		"DELETE " + nicType:      {"DELETE nic", subnetsVersion, c.deleteNIC},
	}[r.Method+" "+kind]
	return found.operation, found.version, found.handle
}

// Types of resources, in lower case.
const (
	vmType        = "microsoft.compute/virtualmachines"
	extensionType = vmType + "/extensions"
	nicType       = "microsoft.network/networkinterfaces"
)

func (c *Cloud) noVM(r *request) *problem {
	return refuse(http.StatusNotFound, "ResourceNotFound", "The Resource 'Microsoft.Compute/virtualMachines/%s' under resource group '%s' was not found.", r.name, c.config.NodeGroup)
}

func (c *Cloud) getVM(r *request) (int, map[string]string, any, *problem) {
	v, ok := c.vms[r.name]
	if !ok {
		return 0, nil, nil, c.noVM(r)
	}
	answer := v.model
	if r.URL.Query().Get("$expand") == "instanceView" {
		properties := *answer.Properties
		properties.InstanceView = &armcompute.VirtualMachineInstanceView{Statuses: []*armcompute.InstanceViewStatus{v.status()}}
		answer.Properties = &properties
	}
	return http.StatusOK, nil, answer, nil
}

// status is how the instance view tells of the creation.
func (v *virtualMachine) status() *armcompute.InstanceViewStatus {
	state := strings.ToLower(*v.model.Properties.ProvisioningState)
	out := &armcompute.InstanceViewStatus{Code: to.Ptr("ProvisioningState/" + state), Level: to.Ptr(armcompute.StatusLevelTypesInfo)}
	if state == "failed" {
		out.Code, out.Level = to.Ptr("ProvisioningState/failed/"+v.doomed.code), to.Ptr(armcompute.StatusLevelTypesError)
		out.DisplayStatus, out.Message = to.Ptr("Provisioning failed"), &v.doomed.message
	}
	return out
}

func (c *Cloud) putVM(r *request) (int, map[string]string, any, *problem) {
	var wanted armcompute.VirtualMachine
	if err := json.Unmarshal(r.body, &wanted); err != nil {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: %v", err)
	}
	old, exists := c.vms[r.name]
	if exists && r.Header.Get("If-None-Match") == "*" {
		return 0, nil, nil, refuse(http.StatusPreconditionFailed, "ConditionNotMet", "The resource '%s' exists.", r.name)
	}
	if exists {
		return c.changeVMLocked(old, wanted)
	}
	v, nic, err := c.plannedVMLocked(r, wanted)
	if err != nil {
		return 0, nil, nil, err
	}
	if err = c.overQuotaLocked(&v.share); err == nil {
		v.doomed, err = c.takeLocked(&v.share)
	}
	if err != nil {
		nic.reserved, nic.reservedFor = c.config.Clock.Now().Add(reservation), r.name
		return 0, nil, nil, err
	}
	now := c.config.Clock.Now()
	v.began, v.ready = now, now.Add(c.config.Creation)
	v.model.ID, v.model.Name = to.Ptr(c.inGroup("Microsoft.Compute/virtualMachines", lastPart(r.URL.Path))), to.Ptr(lastPart(r.URL.Path))
	v.model.Type = to.Ptr("Microsoft.Compute/virtualMachines")
	v.model.Properties.ProvisioningState, v.model.Properties.TimeCreated = to.Ptr("Creating"), &now
	v.model.Properties.OSProfile.CustomData = nil
	c.tagVMLocked(v)
	nic.vm = r.name
	c.vms[r.name] = v
	return http.StatusCreated, c.startLocked(compute, c.config.Creation, v.doomed), v.model, nil
}

// tagVMLocked gives a virtual machine that was written another eTag.
func (c *Cloud) tagVMLocked(v *virtualMachine) {
	c.serial++
	v.model.Etag = to.Ptr(fmt.Sprintf(`"%d"`, c.serial))
}

// longestCustomData is how many bytes of it Azure takes.
const longestCustomData = 65535

// plannedVMLocked checks what is asked for.
func (c *Cloud) plannedVMLocked(r *request, wanted armcompute.VirtualMachine) (*virtualMachine, *networkInterface, *problem) {
	invalid := func(what string) (*virtualMachine, *networkInterface, *problem) {
		return nil, nil, refuse(http.StatusBadRequest, "InvalidParameter", "The value of parameter %s is invalid.", what)
	}
	p := wanted.Properties
	switch {
	case !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,62}[a-z0-9])?$`).MatchString(r.name):
		return invalid("vmName")
	case wanted.Location == nil || !strings.EqualFold(*wanted.Location, c.config.Region):
		return invalid("location")
	case p == nil || p.HardwareProfile == nil || p.HardwareProfile.VMSize == nil || p.StorageProfile == nil || p.OSProfile == nil || p.NetworkProfile == nil || p.Priority == nil:
		return invalid("properties")
	case p.StorageProfile.ImageReference == nil || !c.hasImage(p.StorageProfile.ImageReference.CommunityGalleryImageID):
		return nil, nil, refuse(http.StatusNotFound, "PlatformImageNotFound", "The platform image is not available.")
	case p.StorageProfile.OSDisk == nil || p.StorageProfile.OSDisk.DiskSizeGB == nil || p.StorageProfile.OSDisk.CreateOption == nil:
		return invalid("osDisk")
	case p.OSProfile.LinuxConfiguration == nil || p.OSProfile.LinuxConfiguration.SSH == nil || len(p.OSProfile.LinuxConfiguration.SSH.PublicKeys) == 0:
		return invalid("linuxConfiguration.ssh.publicKeys")
	case len(p.NetworkProfile.NetworkInterfaces) != 1:
		return invalid("networkInterfaces")
	}
	spot := *p.Priority == armcompute.VirtualMachinePriorityTypesSpot
	if spot != (p.EvictionPolicy != nil) || spot != (p.BillingProfile != nil) {
		return invalid("evictionPolicy")
	}
	data := ""
	if p.OSProfile.CustomData != nil {
		text, err := base64.StdEncoding.DecodeString(*p.OSProfile.CustomData)
		if err != nil || len(text) > longestCustomData {
			return invalid("customData")
		}
		data = string(text)
	}
	id := *p.NetworkProfile.NetworkInterfaces[0].ID
	nic, ok := c.nics[strings.ToLower(lastPart(id))]
	switch {
	case !ok || !strings.EqualFold(id, *nic.model.ID):
		return nil, nil, refuse(http.StatusBadRequest, "InvalidResourceReference", "Resource %s referenced by resource %s was not found.", id, r.name)
	case !nic.gone.IsZero():
		return nil, nil, busy(lastPart(id))
	case nic.reservedFor != r.name && c.config.Clock.Now().Before(nic.reserved):
		return nil, nil, reserved(nic)
	case nic.vm != "" && nic.vm != r.name:
		return nil, nil, refuse(http.StatusBadRequest, "NicInUse", "Network Interface %s is used by existing virtual machine %s.", id, nic.vm)
	}
	of, err := c.shareOf(string(*p.HardwareProfile.VMSize), wanted.Zones, spot)
	return &virtualMachine{share: of, model: wanted, customData: data, extensions: map[string]*extension{}}, nic, err
}

// changeVMLocked carries out a PUT on what exists: only what may change does.
func (c *Cloud) changeVMLocked(v *virtualMachine, wanted armcompute.VirtualMachine) (int, map[string]string, any, *problem) {
	p := wanted.Properties
	same := p != nil && p.HardwareProfile != nil && string(*p.HardwareProfile.VMSize) == v.place.Size && p.OSProfile == nil &&
		slices.EqualFunc(wanted.Zones, v.model.Zones, func(a, b *string) bool { return *a == *b })
	if !same {
		return 0, nil, nil, refuse(http.StatusConflict, "PropertyChangeNotAllowed", "Changing property of '%s' is not allowed.", *v.model.Name)
	}
	v.model.Tags = wanted.Tags
	c.tagVMLocked(v)
	return http.StatusOK, c.startLocked(compute, 0, nil), v.model, nil
}

func (c *Cloud) patchVM(r *request) (int, map[string]string, any, *problem) {
	v, ok := c.vms[r.name]
	if !ok {
		return 0, nil, nil, c.noVM(r)
	}
	var wanted armcompute.VirtualMachineUpdate
	if err := json.Unmarshal(r.body, &wanted); err != nil {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: %v", err)
	}
	if v.deleting {
		return 0, nil, nil, refuse(http.StatusConflict, "OperationNotAllowed", "The virtual machine is being deleted.")
	}
	if match := r.Header.Get("If-Match"); match != "" && match != *v.model.Etag {
		return 0, nil, nil, refuse(http.StatusPreconditionFailed, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
	}
	if wanted.Tags != nil {
		v.model.Tags = wanted.Tags
	}
	if wanted.Identity != nil {
		v.identify(wanted.Identity)
	}
	c.tagVMLocked(v)
	return http.StatusOK, c.startLocked(compute, 0, nil), v.model, nil
}

// identify changes the identities of a virtual machine as a PATCH does: the type is the
// new one, whatever goes with the old one, and identities of users are added.
func (v *virtualMachine) identify(wanted *armcompute.VirtualMachineIdentity) {
	users := map[string]*armcompute.UserAssignedIdentitiesValue{}
	if v.model.Identity != nil {
		maps.Copy(users, v.model.Identity.UserAssignedIdentities)
	}
	maps.Copy(users, wanted.UserAssignedIdentities)
	v.model.Identity = &armcompute.VirtualMachineIdentity{Type: wanted.Type, UserAssignedIdentities: users}
}

func (c *Cloud) deleteVM(r *request) (int, map[string]string, any, *problem) {
	v, ok := c.vms[r.name]
	if !ok {
		return http.StatusNoContent, nil, nil, nil
	}
	if !v.deleting {
		v.deleting, v.gone = true, c.config.Clock.Now().Add(c.config.Deletion)
		v.model.Properties.ProvisioningState = to.Ptr("Deleting")
		c.giveBackLocked(&v.share)
	}
	return http.StatusAccepted, c.startLocked(compute, c.config.Deletion, nil), nil, nil
}

func (c *Cloud) putExtension(r *request) (int, map[string]string, any, *problem) {
	v, ok := c.vms[r.name]
	if !ok {
		return 0, nil, nil, c.noVM(r)
	}
	var wanted armcompute.VirtualMachineExtension
	if err := json.Unmarshal(r.body, &wanted); err != nil || wanted.Properties == nil || wanted.Properties.Publisher == nil || wanted.Properties.Type == nil {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: %v", err)
	}
	if *v.model.Properties.ProvisioningState != "Succeeded" {
		return 0, nil, nil, refuse(http.StatusConflict, "Conflict", "The virtual machine is in state %s.", *v.model.Properties.ProvisioningState)
	}
	wanted.ID = to.Ptr(*v.model.ID + "/extensions/" + r.pool)
	wanted.Name, wanted.Properties.ProvisioningState = &r.pool, to.Ptr("Creating")
	now := c.config.Clock.Now()
	v.extensions[strings.ToLower(r.pool)] = &extension{model: wanted, began: now, ready: now.Add(ExtensionTime), fails: c.failing > 0}
	c.failing = max(0, c.failing-1)
	return http.StatusCreated, c.startLocked(compute, ExtensionTime, nil), wanted, nil
}

func (c *Cloud) patchExtension(r *request) (int, map[string]string, any, *problem) {
	var of *extension
	if v, ok := c.vms[r.name]; ok {
		of = v.extensions[strings.ToLower(r.pool)]
	}
	if of == nil {
		return 0, nil, nil, refuse(http.StatusNotFound, "ResourceNotFound", "The extension '%s' was not found.", r.pool)
	}
	var wanted armcompute.VirtualMachineExtensionUpdate
	if err := json.Unmarshal(r.body, &wanted); err != nil {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: %v", err)
	}
	of.model.Tags = wanted.Tags
	return http.StatusOK, c.startLocked(compute, 0, nil), of.model, nil
}

// own tells of a virtual machine that its owner made.
func (c *Cloud) own(v *virtualMachine) VM {
	p := v.model.Properties
	out := VM{
		ID: *v.model.ID, Name: *v.model.Name, Zone: v.place.Zone, Spot: v.place.Spot, Image: nodeImage(*p.StorageProfile.ImageReference.CommunityGalleryImageID),
		DiskGB: int64(*p.StorageProfile.OSDisk.DiskSizeGB), CustomData: v.customData, Labels: map[string]string{}, Tags: map[string]string{}, Created: v.began,
		Deleting: v.deleting, Told: !v.evicted.IsZero(), Failed: *p.ProvisioningState == "Failed", Running: !v.deleting && *p.ProvisioningState == "Succeeded",
	}
	if v.doomed != nil {
		out.Doom = &Refusal{Code: v.doomed.code, Message: v.doomed.message, Late: true}
	}
	for key, value := range v.model.Tags {
		out.Tags[key] = *value
	}
	if of := v.model.Identity; of != nil {
		out.Identities = slices.Sorted(maps.Keys(of.UserAssignedIdentities))
		out.SystemIdentity = *of.Type != armcompute.ResourceIdentityTypeUserAssigned
	}
	for name := range v.extensions {
		out.Extensions = append(out.Extensions, name)
	}
	if i := slices.IndexFunc(c.config.SKUs, func(s azurevm.SKU) bool { return s.Name == v.place.Size }); i >= 0 {
		out.SKU = c.config.SKUs[i]
	}
	return out
}

// nodeImage names a community image as labels of nodes do.
func nodeImage(id string) string {
	parts := strings.Split(strings.Trim(id, "/"), "/") // CommunityGalleries/NAME/images/NAME/versions/VERSION
	gallery, _, _ := strings.Cut(parts[1], "-")
	return gallery + "-" + parts[3] + "-" + parts[5]
}
