// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"
)

// machine is an AKS machine.
type machine struct {
	share
	model     aks.Machine
	began     time.Time // its creation
	ready     time.Time // when its creation is over
	gone      time.Time // when its deletion is over; zero = it is not being deleted
	doomed    *problem  // why its creation fails; nil = it does not
	deleting  bool
	stateless bool      // AKS does not tell its state
	evicted   time.Time // when Azure takes the virtual machine back; zero = it does not
}

func machineKey(pool, name string) string { return pool + "/" + strings.ToLower(name) }

// settleLocked lets everything happen that is due.
func (c *Cloud) settleLocked() {
	now := c.config.Clock.Now()
	c.settleVMsLocked(now)
	for key, m := range c.machines {
		p := m.model.Properties
		switch {
		case m.deleting && !now.Before(m.gone):
			delete(c.machines, key)
		case m.deleting || *p.ProvisioningState != "Creating" || now.Before(m.ready):
		case m.doomed != nil:
			p.ProvisioningState = to.Ptr("Failed")
			p.Status.ProvisioningError = provisioningError(m.doomed)
		default:
			p.ProvisioningState = to.Ptr("Succeeded")
			p.Status.VMState = to.Ptr(aks.VMStateRunning)
		}
		if !m.evicted.IsZero() && !now.Before(m.evicted) {
			p.Status.VMState = to.Ptr(aks.VMStateDeleted)
		}
	}
}

// provisioningError is the error as AKS tells it: under another code.
func provisioningError(p *problem) *aks.ErrorDetail {
	outer := "VMProvisioningError"
	if strings.Contains(p.message, "quota") {
		outer = "QuotaExceeded"
	}
	return &aks.ErrorDetail{
		Code: to.Ptr(outer), Message: to.Ptr("Provisioning of the machine failed."),
		Details: []*aks.ErrorDetail{{Code: &p.code, Message: &p.message}},
	}
}

func (c *Cloud) poolLocked(r *request) *problem {
	mode, ok := c.config.Pools[r.pool]
	if !ok {
		return refuse(http.StatusNotFound, "NotFound", "The agent pool '%s' was not found.", r.pool)
	}
	if mode != string(aks.AgentPoolModeMachines) {
		return refuse(http.StatusBadRequest, "InvalidParameter", "The agent pool '%s' is of mode %s.", r.pool, mode)
	}
	return nil
}

func (c *Cloud) getMachine(r *request) (int, map[string]string, any, *problem) {
	if err := c.poolLocked(r); err != nil {
		return 0, nil, nil, err
	}
	m, ok := c.machines[machineKey(r.pool, r.name)]
	if !ok {
		return 0, nil, nil, refuse(http.StatusNotFound, "NotFound", "The machine '%s' was not found.", r.name)
	}
	return http.StatusOK, nil, m.shown(), nil
}

// shown is what AKS tells of the machine.
func (m *machine) shown() aks.Machine {
	if !m.stateless {
		return m.model
	}
	out, properties := m.model, *m.model.Properties
	properties.ProvisioningState = nil
	out.Properties = &properties
	return out
}

func (c *Cloud) listMachines(r *request) (int, map[string]string, any, *problem) {
	if err := c.poolLocked(r); err != nil {
		return 0, nil, nil, err
	}
	var all []aks.Machine
	shown := c.config.Clock.Now().Add(-c.listLag)
	for _, key := range slices.Sorted(maps.Keys(c.machines)) {
		if m := c.machines[key]; strings.HasPrefix(key, r.pool+"/") && !m.began.After(shown) {
			all = append(all, m.shown())
		}
	}
	return page(c, r, all)
}

func (c *Cloud) putMachine(r *request) (int, map[string]string, any, *problem) {
	if err := c.poolLocked(r); err != nil {
		return 0, nil, nil, err
	}
	var wanted aks.Machine
	if err := json.Unmarshal(r.body, &wanted); err != nil {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: %v", err)
	}
	old, exists := c.machines[machineKey(r.pool, r.name)]
	if err := precondition(r, old); err != nil {
		return 0, nil, nil, err
	}
	if exists {
		return c.updateLocked(old, wanted)
	}
	return c.createLocked(r, wanted)
}

// precondition holds the request to the eTags that it names.
func precondition(r *request, old *machine) *problem {
	failed := refuse(http.StatusPreconditionFailed, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
	if match := r.Header.Get("If-Match"); match != "" && (old == nil || *old.model.Properties.ETag != match) {
		return failed
	}
	if r.Header.Get("If-None-Match") == "*" && old != nil {
		return failed
	}
	return nil
}

// machineName is what AKS accepts as the name of a machine.
const machineName = `^[a-z0-9]([-a-z0-9]{0,32}[a-z0-9])?$`

func (c *Cloud) createLocked(r *request, wanted aks.Machine) (int, map[string]string, any, *problem) {
	if !regexp.MustCompile(machineName).MatchString(r.name) {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidParameter", "The machine name '%s' is invalid.", r.name)
	}
	m, err := c.plannedLocked(wanted)
	if err != nil {
		return 0, nil, nil, err
	}
	m.doomed, err = c.takeLocked(&m.share)
	if err != nil {
		return 0, nil, nil, err
	}
	now := c.config.Clock.Now()
	c.serial++
	vm := fmt.Sprintf("aks-%s-%s-%08d-vm", r.pool, r.name, c.serial)
	m.began, m.ready = now, now.Add(c.config.Creation)
	m.model = wanted
	m.model.ID = to.Ptr(fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.ContainerService/managedClusters/%s/agentPools/%s/%s/%s",
		c.config.Subscription, c.config.ResourceGroup, c.config.Cluster, r.pool, collection, r.name))
	m.model.Name = to.Ptr(r.name)
	m.model.Type = to.Ptr("Microsoft.ContainerService/managedClusters/agentPools/machines")
	p := m.model.Properties
	p.ResourceID = to.Ptr(fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Compute/virtualMachines/%s", c.config.Subscription, c.config.NodeGroup, vm))
	p.ProvisioningState = to.Ptr("Creating")
	p.Status = &aks.MachineStatus{CreationTimestamp: &now, DriftAction: to.Ptr(aks.DriftActionSynced)}
	p.Kubernetes.NodeName = &vm
	if *p.Priority == aks.ScaleSetPriorityRegular {
		p.Priority = nil // Azure tells that of spot only
	}
	c.stampLocked(m)
	c.machines[machineKey(r.pool, r.name)] = m
	return http.StatusCreated, c.startLocked(machines, c.config.Creation, m.doomed), m.model, nil
}

// plannedLocked checks what is asked for.
func (c *Cloud) plannedLocked(wanted aks.Machine) (*machine, *problem) {
	p := wanted.Properties
	if p == nil || p.Hardware == nil || p.Hardware.VMSize == nil || p.OperatingSystem == nil || p.Kubernetes == nil || p.Priority == nil || p.NodeImageVersion == nil {
		return nil, refuse(http.StatusBadRequest, "InvalidParameter", "Required parameters are missing.")
	}
	of, err := c.shareOf(*p.Hardware.VMSize, wanted.Zones, *p.Priority == aks.ScaleSetPrioritySpot)
	return &machine{share: of}, err
}

// stampLocked gives a machine that was written another eTag.
func (c *Cloud) stampLocked(m *machine) {
	c.serial++
	m.model.Properties.ETag = to.Ptr(fmt.Sprintf(`"%08x"`, c.serial))
}

// updateLocked changes what can be changed of a machine.
func (c *Cloud) updateLocked(m *machine, wanted aks.Machine) (int, map[string]string, any, *problem) {
	now, next := m.model.Properties, wanted.Properties
	same := next != nil && next.Hardware != nil && reflect.DeepEqual(next.Hardware.VMSize, now.Hardware.VMSize) &&
		(next.Priority != nil && *next.Priority == aks.ScaleSetPrioritySpot) == m.place.Spot &&
		slices.EqualFunc(wanted.Zones, m.model.Zones, func(a, b *string) bool { return *a == *b })
	if !same {
		return 0, nil, nil, refuse(http.StatusBadRequest, "OperationNotAllowed", "Changing the size, the priority or the zones of a machine is not allowed.")
	}
	if m.deleting {
		return 0, nil, nil, refuse(http.StatusConflict, "Conflict", "The machine is being deleted.")
	}
	now.Tags = next.Tags
	c.stampLocked(m)
	return http.StatusOK, c.startLocked(machines, 0, nil), m.model, nil
}

func (c *Cloud) deleteMachines(r *request) (int, map[string]string, any, *problem) {
	if err := c.poolLocked(r); err != nil {
		return 0, nil, nil, err
	}
	var wanted aks.AgentPoolDeleteMachinesParameter
	if err := json.Unmarshal(r.body, &wanted); err != nil {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: %v", err)
	}
	var found []*machine
	for _, name := range wanted.MachineNames {
		if m, ok := c.machines[machineKey(r.pool, *name)]; ok {
			found = append(found, m)
		}
	}
	if len(found) == 0 || len(found) < len(wanted.MachineNames) {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidParameter", "Cannot find any valid %s to delete.", collection)
	}
	for _, m := range found {
		if !m.deleting {
			m.deleting, m.gone = true, c.config.Clock.Now().Add(c.config.Deletion)
			m.model.Properties.ProvisioningState = to.Ptr("Deleting")
			c.giveBackLocked(&m.share)
		}
	}
	return http.StatusAccepted, c.startLocked(machines, c.config.Deletion, nil), nil, nil
}
