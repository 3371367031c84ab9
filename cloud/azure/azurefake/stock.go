// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"

	"karpenter/cloud/azurevm"
)

// Place is where a size can be had.
type Place struct {
	Size string
	Zone string // number; "" = regional
	Spot bool
}

// Refusal is why Azure does not deliver.
type Refusal struct {
	Code, Message string
	// Late says that the machine is accepted and fails at the end of its creation.
	// Otherwise the request is refused.
	Late bool
}

// Stock sets how many more instances there are in a place. Beyond them, requests
// are refused as if the size were not available.
func (c *Cloud) Stock(p Place, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stock[p] = n
}

// internalError is the code of a refusal that is Azure's own fault.
const internalError = "InternalServerError"

// Script has Azure refuse to deliver in a place from now on.
func (c *Cloud) Script(p Place, r Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts[p] = r
}

// Deliver takes back what Script said about a place.
func (c *Cloud) Deliver(p Place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.scripts, p)
}

// Quota sets how many vCPUs of the family the subscription may use on demand.
func (c *Cloud) Quota(family string, vCPUs int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quotas[strings.ToLower(family)] = vCPUs
}

// Usage returns how many vCPUs of the family are in use on demand.
func (c *Cloud) Usage(family string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked()
	return c.usageLocked(family)
}

func (c *Cloud) usageLocked(family string) int64 {
	var sum int64
	for _, m := range c.machines {
		if strings.EqualFold(m.family, family) && !m.place.Spot && !m.deleting {
			sum += m.vCPUs
		}
	}
	for _, v := range c.vms {
		if strings.EqualFold(v.family, family) && !v.place.Spot && !v.deleting {
			sum += v.vCPUs
		}
	}
	return sum
}

// share is what an instance takes of what there is.
type share struct {
	place  Place
	vCPUs  int64
	family string
}

// shareOf checks that there is such a size in such zones.
func (c *Cloud) shareOf(size string, zones []*string, spot bool) (share, *problem) {
	i := slices.IndexFunc(c.config.SKUs, func(s azurevm.SKU) bool { return s.Name == size })
	if i < 0 {
		return share{}, refuse(http.StatusBadRequest, "VMSizeNotSupported", "The VM size %s is not supported.", size)
	}
	sku, zone := c.config.SKUs[i], ""
	switch {
	case len(zones) > 1:
		return share{}, refuse(http.StatusBadRequest, "InvalidParameter", "A machine is in one zone.")
	case len(zones) == 1:
		zone = *zones[0]
		if !slices.Contains(sku.Zones, zone) {
			return share{}, refuse(http.StatusBadRequest, "AvailabilityZoneNotSupported", "The zone(s) '%s' for resource is not supported.", zone)
		}
	}
	return share{place: Place{Size: size, Zone: zone, Spot: spot}, vCPUs: sku.VCPUs, family: sku.Family}, nil
}

// overQuotaLocked returns why the quota forbids the instance, nil if it does not.
func (c *Cloud) overQuotaLocked(m *share) *problem {
	limit, ok := c.quotas[strings.ToLower(m.family)]
	if !ok || m.place.Spot {
		return nil
	}
	used := c.usageLocked(m.family)
	if used+m.vCPUs <= limit {
		return nil
	}
	return refuse(http.StatusConflict, "OperationNotAllowed", "%s", quotaText(m.family, c.config.Region, limit, used, m.vCPUs))
}

// takeLocked takes the instance out of the stock. It returns why the creation will
// fail later, or why the request is refused.
func (c *Cloud) takeLocked(m *share) (late, now *problem) {
	if script, ok := c.scripts[m.place]; ok {
		p := refuse(http.StatusConflict, script.Code, "%s", script.Message)
		if script.Code == internalError {
			p.status = http.StatusInternalServerError
		}
		if script.Late {
			return p, nil
		}
		return nil, p
	}
	if late = c.overQuotaLocked(m); late != nil {
		return late, nil
	}
	if left, ok := c.stock[m.place]; ok {
		if left <= 0 {
			return nil, refuse(http.StatusConflict, "SkuNotAvailable",
				"The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: %s' is currently not available in location '%s'.", m.place.Size, c.config.Region)
		}
		c.stock[m.place] = left - 1
	}
	return nil, nil
}

func quotaText(family, region string, limit, used, wanted int64) string {
	return fmt.Sprintf("Operation could not be completed as it results in exceeding approved %s Cores quota. Additional details - Deployment Model: Resource Manager, "+
		"Location: %s, Current Limit: %d, Current Usage: %d, Additional Required: %d, (Minimum) New Limit Required: %d.", family, region, limit, used, wanted, used+wanted)
}

// giveBackLocked puts the instance back into the stock.
func (c *Cloud) giveBackLocked(m *share) {
	if left, ok := c.stock[m.place]; ok {
		c.stock[m.place] = left + 1
	}
}

// Evict takes the virtual machine of a machine away, as Azure does with spot. The
// machine stays. Without a pool the name is that of a virtual machine of its own.
func (c *Cloud) Evict(pool, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked()
	now := c.config.Clock.Now()
	defer c.recordLocked(Entry{At: now, Name: evicted, Target: []string{pool, name}})
	if m, ok := c.machines[machineKey(pool, name)]; ok {
		m.evicted = now
		m.model.Properties.Status.VMState = to.Ptr(aks.VMStateDeleted)
	}
	if v, ok := c.vms[strings.ToLower(name)]; ok && pool == "" {
		c.removeLocked(strings.ToLower(name), v, now)
	}
}

// notice is how long before its eviction a spot virtual machine is told.
const notice = 30 * time.Second

// Preempt announces the eviction of the virtual machine of the name, as the scheduled
// events of its metadata service do, and carries it out after the notice. It reports
// whether there is such a one, and it is spot.
func (c *Cloud) Preempt(vm string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked()
	now := c.config.Clock.Now()
	defer c.recordLocked(Entry{At: now, Name: preempted, Target: []string{vm}})
	for _, m := range c.machines {
		if *m.model.Properties.Kubernetes.NodeName == vm && m.place.Spot && !m.deleting {
			m.evicted = now.Add(notice)
			return true
		}
	}
	if v, ok := c.vms[strings.ToLower(vm)]; ok && v.place.Spot && !v.deleting {
		v.evicted = now.Add(notice)
		return true
	}
	return false
}

// DriftAction sets what AKS says about the drift of a machine.
func (c *Cloud) DriftAction(pool, name, action string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.machines[machineKey(pool, name)]; ok {
		m.model.Properties.Status.DriftAction = to.Ptr(aks.DriftAction(action))
	}
}

// Machines returns the names of the machines of a pool that are not being deleted,
// in no order, and whether their creation has failed.
func (c *Cloud) Machines(pool string) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked()
	out := map[string]bool{}
	for key, m := range c.machines {
		if name, ok := strings.CutPrefix(key, pool+"/"); ok && !m.deleting {
			out[name] = *m.model.Properties.ProvisioningState == "Failed"
		}
	}
	return out
}

// Retag changes a tag of a machine behind the back of its owner; "" removes it. Without a
// pool the name is that of a virtual machine of its own.
func (c *Cloud) Retag(pool, name, key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.vms[strings.ToLower(name)]; ok && pool == "" {
		v.model.Tags = maps.Clone(v.model.Tags)
		delete(v.model.Tags, key)
		if value != "" {
			v.model.Tags[key] = &value
		}
		c.tagVMLocked(v)
	}
	m, ok := c.machines[machineKey(pool, name)]
	if !ok {
		return
	}
	delete(m.model.Properties.Tags, key)
	if value != "" {
		m.model.Properties.Tags[key] = &value
	}
	c.stampLocked(m)
}

// AssignSystemIdentity gives a virtual machine an identity of its own, as Azure Policy does.
func (c *Cloud) AssignSystemIdentity(vm string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.vms[strings.ToLower(vm)]
	of := armcompute.VirtualMachineIdentity{Type: to.Ptr(armcompute.ResourceIdentityTypeSystemAssigned)}
	if v.model.Identity != nil && len(v.model.Identity.UserAssignedIdentities) > 0 {
		of.Type = to.Ptr(armcompute.ResourceIdentityTypeSystemAssignedUserAssigned)
	}
	v.identify(&of)
	c.tagVMLocked(v)
}

// Tags returns the tags of a machine.
func (c *Cloud) Tags(pool, name string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]string{}
	if m, ok := c.machines[machineKey(pool, name)]; ok {
		for key, value := range m.model.Properties.Tags {
			out[key] = *value
		}
	}
	return out
}

// RemovePool removes an agent pool with its machines.
func (c *Cloud) RemovePool(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.config.Pools, name)
	for key := range c.machines {
		if strings.HasPrefix(key, name+"/") {
			delete(c.machines, key)
		}
	}
}

// Field is something that AKS does not tell at once of a machine.
type Field int

// The fields that a machine may lack.
const (
	CreationTimestamp Field = iota
	ResourceID
	ProvisioningState
	ProvisioningError
)

// Forget has AKS not tell the field of a machine any more. Without a pool, Azure does not tell the
// creation of the virtual machine of the name.
func (c *Cloud) Forget(pool, name string, f Field) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked()
	if v, ok := c.vms[strings.ToLower(name)]; ok && pool == "" && f == CreationTimestamp {
		v.model.Properties.TimeCreated = nil
	}
	m, ok := c.machines[machineKey(pool, name)]
	if !ok {
		return
	}
	switch f {
	case CreationTimestamp:
		m.model.Properties.Status.CreationTimestamp = nil
	case ResourceID:
		m.model.Properties.ResourceID = nil
	case ProvisioningState:
		m.stateless = true
	case ProvisioningError:
		m.model.Properties.Status.ProvisioningError = nil
	}
}
