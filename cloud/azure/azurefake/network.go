// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// networkInterface is one that its owner made.
type networkInterface struct {
	model       armnetwork.Interface
	vm          string // that it is attached to, in lower case; "" = none
	began       time.Time
	gone        time.Time // when its deletion is over; zero = it is not being deleted
	reserved    time.Time // until when it is kept for a virtual machine that was refused
	reservedFor string    // its name, in lower case
}

const (
	// InterfaceDeletion is how long the deletion of a network interface takes.
	InterfaceDeletion = 10 * time.Second
	// reservation is how long Azure keeps a network interface for a virtual machine that
	// it has refused.
	reservation = 180 * time.Second
)

// BackendPool is a pool of a load balancer. IP says that its members are addresses.
type BackendPool struct {
	Name string
	IP   bool
}

type balancer struct {
	name  string
	pools []BackendPool
}

// Balance makes a load balancer with the pools, or gives it these.
func (c *Cloud) Balance(name string, pools ...BackendPool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.balancers = slices.DeleteFunc(c.balancers, func(b balancer) bool { return b.name == name })
	c.balancers = append(c.balancers, balancer{name, pools})
}

// SecurityGroups sets which network security groups there are beside the nodes.
func (c *Cloud) SecurityGroups(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups = names
}

// Addresses sets how many more addresses a subnet has.
func (c *Cloud) Addresses(subnet string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free[strings.ToLower(subnet)] = n
}

// Interfaces returns the network interfaces that there are, by name, without those that
// are being deleted.
func (c *Cloud) Interfaces() map[string]armnetwork.Interface {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settleLocked()
	out := map[string]armnetwork.Interface{}
	for name, nic := range c.nics {
		if nic.gone.IsZero() {
			out[name] = nic.model
		}
	}
	return out
}

// busy is the answer about a network interface that is being deleted.
func busy(name string) *problem {
	return refuse(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this or dependent resource %s is in progress.", name)
}

// reserved is the answer about a network interface that is kept for another virtual machine.
func reserved(nic *networkInterface) *problem {
	return refuse(http.StatusBadRequest, "NicReservedForAnotherVm", "Nic(s) in request is reserved for another Virtual Machine for 180 seconds. "+
		"Please provide another nic(s) or retry after 180 seconds. Reserved VM: %s", nic.reservedFor)
}

// lookRoute finds the operations that read what nobody here makes.
func (c *Cloud) lookRoute(r *request, parts []string) (operation, version string, handle handler) {
	group := func(kind string) []string {
		return append([]string{"subscriptions", c.config.Subscription, "resourceGroups", c.config.NodeGroup, "providers", "Microsoft.Network"}, kind)
	}
	exactly := func(path []string) bool {
		rest, ok := below(parts, path)
		return ok && len(rest) == 0
	}
	gallery, inGallery := below(parts, c.provider("Microsoft.Compute", "communityGalleries"))
	switch {
	case r.Method == http.MethodPost && exactly([]string{"providers", "Microsoft.ResourceGraph", "resources"}):
		return "POST resources", graphVersion, c.query
	case r.Method != http.MethodGet:
	case exactly(group("loadBalancers")):
		return "LIST loadBalancer", subnetsVersion, c.listBalancers
	case exactly(group("networkSecurityGroups")):
		return "LIST networkSecurityGroup", subnetsVersion, c.listGroups
	case inGallery && len(gallery) == 4 && strings.EqualFold(gallery[1], "images") && strings.EqualFold(gallery[3], "versions"):
		return "LIST communityImage", galleriesVersion, func(r *request) (int, map[string]string, any, *problem) {
			return c.listCommunity(r, gallery[0], gallery[2])
		}
	case len(parts) == 8 && strings.EqualFold(parts[5], "Microsoft.Network") && strings.EqualFold(parts[6], "virtualNetworks"):
		return "GET virtualNetwork", subnetsVersion, c.getNetwork
	}
	return "", "", nil
}

func (c *Cloud) listBalancers(r *request) (int, map[string]string, any, *problem) {
	var all []armnetwork.LoadBalancer
	for _, b := range c.balancers {
		id := c.inGroup("Microsoft.Network/loadBalancers", b.name)
		one := armnetwork.LoadBalancer{ID: &id, Name: &b.name, Properties: &armnetwork.LoadBalancerPropertiesFormat{}}
		for _, p := range b.pools {
			pool := &armnetwork.BackendAddressPool{ID: to.Ptr(id + "/backendAddressPools/" + p.Name), Name: &p.Name, Properties: &armnetwork.BackendAddressPoolPropertiesFormat{}}
			if p.IP {
				pool.Properties.LoadBalancerBackendAddresses = []*armnetwork.LoadBalancerBackendAddress{
					{Properties: &armnetwork.LoadBalancerBackendAddressPropertiesFormat{IPAddress: to.Ptr("10.0.0.4")}},
				}
			}
			one.Properties.BackendAddressPools = append(one.Properties.BackendAddressPools, pool)
		}
		all = append(all, one)
	}
	return page(c, r, all)
}

func (c *Cloud) listGroups(r *request) (int, map[string]string, any, *problem) {
	var all []armnetwork.SecurityGroup
	for _, name := range c.groups {
		all = append(all, armnetwork.SecurityGroup{ID: to.Ptr(c.inGroup("Microsoft.Network/networkSecurityGroups", name)), Name: &name})
	}
	return page(c, r, all)
}

// NetworkGUID is that of every virtual network.
const NetworkGUID = "00000000-0000-0000-0000-0000000000aa"

func (c *Cloud) getNetwork(r *request) (int, map[string]string, any, *problem) {
	id := strings.ToLower(strings.TrimRight(r.URL.Path, "/"))
	if !slices.ContainsFunc(c.config.Subnets, func(s string) bool { return strings.HasPrefix(strings.ToLower(s), id+"/") }) {
		return 0, nil, nil, refuse(http.StatusNotFound, "ResourceNotFound", "The Resource '%s' was not found.", id)
	}
	return http.StatusOK, nil, map[string]any{"id": id, "properties": map[string]string{"resourceGuid": NetworkGUID}}, nil
}

// listCommunity lists the versions of an image of the community galleries, each
// published a day after the one before.
func (c *Cloud) listCommunity(r *request, gallery, name string) (int, map[string]string, any, *problem) {
	known := map[string]string{"AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2": "AKSUbuntu", "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b": "AKSAzureLinux"}
	fips := strings.Contains(name, "fips")
	if !slices.Contains(images()[known[gallery]], name) || fips {
		return 0, nil, nil, refuse(http.StatusNotFound, "NotFound", "The gallery image '%s' was not found.", name)
	}
	var all []armcompute.CommunityGalleryImageVersion
	for i, version := range c.config.ImageVersions {
		published := time.Date(2026, 7, 1+i, 0, 0, 0, 0, time.UTC)
		all = append(all, armcompute.CommunityGalleryImageVersion{
			Name: &version, Location: &c.config.Region, Properties: &armcompute.CommunityGalleryImageVersionProperties{PublishedDate: &published},
		})
	}
	return page(c, r, all)
}

// hasImage reports whether the ID is of an image of the community galleries.
func (c *Cloud) hasImage(id *string) bool {
	if id == nil {
		return false
	}
	parts := strings.Split(strings.Trim(*id, "/"), "/")
	return len(parts) == 6 && strings.EqualFold(parts[0], "CommunityGalleries") && slices.Contains(c.config.ImageVersions, parts[5])
}

func (c *Cloud) noNIC(r *request) *problem {
	return refuse(http.StatusNotFound, "ResourceNotFound", "The Resource 'Microsoft.Network/networkInterfaces/%s' under resource group '%s' was not found.", r.name, c.config.NodeGroup)
}

func (c *Cloud) getNIC(r *request) (int, map[string]string, any, *problem) {
	nic, ok := c.nics[r.name]
	if !ok {
		return 0, nil, nil, c.noNIC(r)
	}
	return http.StatusOK, nil, nic.model, nil
}

func (c *Cloud) putNIC(r *request) (int, map[string]string, any, *problem) {
	var wanted armnetwork.Interface
	if err := json.Unmarshal(r.body, &wanted); err != nil || wanted.Properties == nil || len(wanted.Properties.IPConfigurations) == 0 {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: %v", err)
	}
	if err := c.referencesLocked(r, &wanted); err != nil {
		return 0, nil, nil, err
	}
	subnet := strings.ToLower(*wanted.Properties.IPConfigurations[0].Properties.Subnet.ID)
	nic, exists := c.nics[r.name]
	if exists && (!nic.gone.IsZero() || nic.vm != "" && c.vms[nic.vm] != nil && c.vms[nic.vm].deleting) {
		return 0, nil, nil, busy(r.name)
	}
	if exists && nic.vm != "" && accelerated(&wanted) != accelerated(&nic.model) {
		return 0, nil, nil, refuse(http.StatusBadRequest, "NicInUse", "Network Interface %s is used by existing virtual machine %s.", r.name, nic.vm)
	}
	if left, limited := c.free[subnet]; limited && !exists {
		if left < len(wanted.Properties.IPConfigurations) {
			return 0, nil, nil, refuse(http.StatusBadRequest, "SubnetIsFull", "Subnet %s with address prefix 10.0.0.0/24 does not have enough capacity for %d IP addresses.", lastPart(subnet), len(wanted.Properties.IPConfigurations))
		}
		c.free[subnet] = left - len(wanted.Properties.IPConfigurations)
	}
	status := http.StatusOK
	if !exists {
		nic, status = &networkInterface{began: c.config.Clock.Now()}, http.StatusCreated
		c.nics[r.name] = nic
	}
	c.serial++
	wanted.ID, wanted.Name = to.Ptr(c.inGroup("Microsoft.Network/networkInterfaces", lastPart(r.URL.Path))), to.Ptr(lastPart(r.URL.Path))
	wanted.Etag, wanted.Properties.ProvisioningState = to.Ptr(fmt.Sprintf(`W/"%d"`, c.serial)), to.Ptr(armnetwork.ProvisioningStateSucceeded)
	nic.model = wanted
	return status, c.startLocked(network, 0, nil), nic.model, nil
}

func accelerated(nic *armnetwork.Interface) bool {
	on := nic.Properties.EnableAcceleratedNetworking
	return on != nil && *on
}

// referencesLocked checks that what the network interface refers to exists.
func (c *Cloud) referencesLocked(r *request, nic *armnetwork.Interface) *problem {
	missing := func(id string) *problem {
		return refuse(http.StatusBadRequest, "InvalidResourceReference", "Resource %s referenced by resource %s was not found. Please make sure that the referenced resource exists.", id, r.URL.Path)
	}
	for i, ip := range nic.Properties.IPConfigurations {
		p := ip.Properties
		if p == nil || p.Subnet == nil || p.Subnet.ID == nil || p.Primary == nil || *p.Primary != (i == 0) {
			return refuse(http.StatusBadRequest, "InvalidRequestFormat", "The IP configurations are invalid.")
		}
		if !slices.ContainsFunc(c.config.Subnets, func(s string) bool { return strings.EqualFold(s, *p.Subnet.ID) }) {
			return missing(*p.Subnet.ID)
		}
		for _, pool := range p.LoadBalancerBackendAddressPools {
			if !c.hasPool(*pool.ID) {
				return missing(*pool.ID)
			}
		}
	}
	if g := nic.Properties.NetworkSecurityGroup; g != nil && !slices.ContainsFunc(c.groups, func(name string) bool {
		return strings.EqualFold(c.inGroup("Microsoft.Network/networkSecurityGroups", name), *g.ID)
	}) {
		return missing(*g.ID)
	}
	return nil
}

func (c *Cloud) hasPool(id string) bool {
	for _, b := range c.balancers {
		for _, p := range b.pools {
			if strings.EqualFold(id, c.inGroup("Microsoft.Network/loadBalancers", b.name)+"/backendAddressPools/"+p.Name) {
				return true
			}
		}
	}
	return false
}

func (c *Cloud) patchNIC(r *request) (int, map[string]string, any, *problem) {
	nic, ok := c.nics[r.name]
	if !ok {
		return 0, nil, nil, c.noNIC(r)
	}
	if !nic.gone.IsZero() {
		return 0, nil, nil, busy(r.name)
	}
	var wanted armnetwork.TagsObject
	if err := json.Unmarshal(r.body, &wanted); err != nil {
		return 0, nil, nil, refuse(http.StatusBadRequest, "InvalidRequestContent", "The request content was invalid: %v", err)
	}
	nic.model.Tags = wanted.Tags
	return http.StatusOK, nil, nic.model, nil
}

func (c *Cloud) deleteNIC(r *request) (int, map[string]string, any, *problem) {
	nic, ok := c.nics[r.name]
	now := c.config.Clock.Now()
	switch {
	case !ok:
		return http.StatusNoContent, nil, nil, nil
	case nic.vm != "":
		return 0, nil, nil, refuse(http.StatusBadRequest, "NicInUse", "Network Interface %s is used by existing resource %s. In order to delete the network interface, it must be dissociated from the resource.", r.name, nic.vm)
	case now.Before(nic.reserved):
		return 0, nil, nil, reserved(nic)
	case nic.gone.IsZero():
		nic.gone = now.Add(InterfaceDeletion)
		nic.model.Properties.ProvisioningState = to.Ptr(armnetwork.ProvisioningStateDeleting)
	}
	return http.StatusAccepted, c.startLocked(network, InterfaceDeletion, nil), nil, nil
}

// removeNICLocked takes a network interface away.
func (c *Cloud) removeNICLocked(name string, nic *networkInterface, now time.Time) {
	c.hauntLocked(nicRow(nic), now)
	delete(c.nics, name)
	subnet := strings.ToLower(*nic.model.Properties.IPConfigurations[0].Properties.Subnet.ID)
	if left, limited := c.free[subnet]; limited {
		c.free[subnet] = left + len(nic.model.Properties.IPConfigurations)
	}
}
