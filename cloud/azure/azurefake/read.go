// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"

	"karpenter/cloud/azurevm"
)

// list is something that Azure lists.
type list struct {
	operation, version string
	path               []string
	handle             handler
}

func (c *Cloud) listsLocked() []list {
	return []list{
		{"LIST sku", skusVersion, []string{"subscriptions", c.config.Subscription, "providers", "Microsoft.Compute", "skus"}, c.listSKUs},
		{"LIST usage", usagesVersion, c.provider("Microsoft.Compute", "usages"), c.listUsages},
		{"LIST nodeImageVersion", apiVersion, c.provider("Microsoft.ContainerService", "nodeImageVersions"), c.listImages},
	}
}

// things finds the operations that read one thing by its ARM ID.
func (c *Cloud) things(parts []string) (operation, version string, handle handler) {
	id := "/" + strings.Join(parts, "/")
	found := func(ids []string) handler {
		return func(*request) (int, map[string]string, any, *problem) {
			if !slices.ContainsFunc(ids, func(known string) bool { return strings.EqualFold(known, id) }) {
				return 0, nil, nil, refuse(http.StatusNotFound, "ResourceNotFound", "The Resource '%s' was not found.", id)
			}
			return http.StatusOK, nil, map[string]any{"id": id, "name": parts[len(parts)-1]}, nil
		}
	}
	switch {
	case len(parts) == 10 && strings.EqualFold(parts[5], "Microsoft.Network") && strings.EqualFold(parts[6], "virtualNetworks") && strings.EqualFold(parts[8], "subnets"):
		return "GET subnet", subnetsVersion, found(c.config.Subnets)
	case len(parts) == 8 && strings.EqualFold(parts[5], "Microsoft.Compute") && strings.EqualFold(parts[6], "diskEncryptionSets"):
		return "GET diskEncryptionSet", encryptionSetsVersion, found(c.config.EncryptionSets)
	}
	return "", "", nil
}

// page answers with a part of a list, and says where the rest is.
func page[T any](c *Cloud, r *request, all []T) (int, map[string]string, any, *problem) {
	from, _ := strconv.Atoi(r.URL.Query().Get("$skip")) // 0 on the first page
	from = min(max(from, 0), len(all))
	end := min(from+c.pageSize, len(all))
	answer := map[string]any{"value": all[from:end]}
	if end < len(all) {
		query := url.Values{"api-version": {r.URL.Query().Get("api-version")}, "$skip": {strconv.Itoa(end)}}
		if filter := r.URL.Query().Get("$filter"); filter != "" {
			query.Set("$filter", filter)
		}
		answer["nextLink"] = c.address + r.URL.Path + "?" + query.Encode()
	}
	return http.StatusOK, nil, answer, nil
}

// listSKUs lists the sizes of the region, and a disk, which is an SKU, too.
func (c *Cloud) listSKUs(r *request) (int, map[string]string, any, *problem) {
	all := []*armcompute.ResourceSKU{{Name: to.Ptr("Premium_LRS"), ResourceType: to.Ptr("disks"), Locations: []*string{&c.config.Region}}}
	if filter := r.URL.Query().Get("$filter"); filter == "" || filter == "location eq '"+c.config.Region+"'" {
		for i := range c.config.SKUs {
			all = append(all, c.sku(&c.config.SKUs[i]))
		}
	}
	return page(c, r, all)
}

// sku describes a size as Azure does.
func (c *Cloud) sku(s *azurevm.SKU) *armcompute.ResourceSKU {
	arch := "x64"
	if s.Arch == "arm64" {
		arch = "Arm64"
	}
	out := &armcompute.ResourceSKU{
		Name: &s.Name, Family: &s.Family, ResourceType: to.Ptr("virtualMachines"), Locations: []*string{&c.config.Region},
		Capabilities: described(map[string]string{
			"vCPUs": number(s.VCPUs), "MemoryGB": strconv.FormatFloat(s.MemoryGiB, 'f', -1, 64), "GPUs": number(s.GPUs), "CpuArchitectureType": arch,
			"AcceleratedNetworkingEnabled": truth(s.AcceleratedNetworking), "PremiumIO": truth(s.PremiumIO), "LowPriorityCapable": truth(s.LowPriority),
			"EncryptionAtHostSupported": truth(s.EncryptionAtHost), "TrustedLaunchDisabled": truth(s.TrustedLaunchDisabled),
			"HyperVGenerations": strings.Join(s.HyperVGenerations, ","), "MaxDataDiskCount": number(s.DataDisks),
			"EphemeralOSDiskSupported": truth(s.EphemeralOSDisk), "SupportedEphemeralOSDiskPlacements": strings.Join(s.Placements, ","),
			"NvmeDiskSizeInMiB": number(s.NVMeDiskMiB), "CachedDiskBytes": number(s.CachedDiskBytes), "MaxResourceVolumeMB": number(s.ResourceVolumeMiB),
			"UltraSSDAvailable": truth(s.UltraSSD),
		}),
	}
	at := &armcompute.ResourceSKULocationInfo{Location: &c.config.Region, Zones: to.SliceOfPtrs(s.Zones...)}
	if len(s.UltraSSDZones) > 0 {
		at.ZoneDetails = []*armcompute.ResourceSKUZoneDetails{{
			Name: to.SliceOfPtrs(s.UltraSSDZones...), Capabilities: described(map[string]string{"UltraSSDAvailable": "True"}),
		}}
	}
	out.LocationInfo = []*armcompute.ResourceSKULocationInfo{at}
	if s.Restricted {
		out.Restrictions = append(out.Restrictions, &armcompute.ResourceSKURestrictions{
			Type: to.Ptr(armcompute.ResourceSKURestrictionsTypeLocation), Values: []*string{&c.config.Region},
			ReasonCode: to.Ptr(armcompute.ResourceSKURestrictionsReasonCodeNotAvailableForSubscription),
		})
	}
	if len(s.RestrictedZones) > 0 {
		out.Restrictions = append(out.Restrictions, &armcompute.ResourceSKURestrictions{
			Type: to.Ptr(armcompute.ResourceSKURestrictionsTypeZone), Values: []*string{&c.config.Region},
			RestrictionInfo: &armcompute.ResourceSKURestrictionInfo{Locations: []*string{&c.config.Region}, Zones: to.SliceOfPtrs(s.RestrictedZones...)},
			ReasonCode:      to.Ptr(armcompute.ResourceSKURestrictionsReasonCodeNotAvailableForSubscription),
		})
	}
	return out
}

// described leaves out what Azure does not say: numbers and lists of nothing.
func described(values map[string]string) []*armcompute.ResourceSKUCapabilities {
	var out []*armcompute.ResourceSKUCapabilities
	for name, value := range values {
		if value != "" && value != "0" {
			out = append(out, &armcompute.ResourceSKUCapabilities{Name: &name, Value: &value})
		}
	}
	return out
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func truth(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// unlimited is the quota of families for which none was set.
const unlimited = 100_000

func (c *Cloud) listUsages(r *request) (int, map[string]string, any, *problem) {
	var all []*armcompute.Usage
	seen := map[string]bool{}
	for i := range c.config.SKUs {
		family := c.config.SKUs[i].Family
		if family == "" || seen[strings.ToLower(family)] {
			continue
		}
		seen[strings.ToLower(family)] = true
		limit, ok := c.quotas[strings.ToLower(family)]
		if !ok {
			limit = unlimited
		}
		all = append(all, &armcompute.Usage{
			Name: &armcompute.UsageName{Value: &family, LocalizedValue: &family}, Unit: to.Ptr("Count"),
			CurrentValue: to.Ptr(int32(c.usageLocked(family))), Limit: &limit,
		})
	}
	return page(c, r, all)
}

// images names the images in AKS' galleries by gallery.
func images() map[string][]string {
	return map[string][]string{
		"AKSUbuntu": {
			"2204gen2containerd", "2204containerd", "2204gen2arm64containerd", "2204gen2TLcontainerd", "2204gen2fipsTLcontainerd",
			"2404gen2containerd", "2404containerd", "2404gen2arm64containerd", "2404gen2TLcontainerd", "2004gen2fipscontainerd", "2004fipscontainerd",
		},
		"AKSAzureLinux": {"V2gen2", "V2", "V2gen2arm64", "V2gen2TL", "V2gen2fips", "V2fips", "V3gen2", "V3", "V3gen2arm64", "V3gen2TL", "V3gen2fips", "V3fips", "V3gen2arm64fips"},
	}
}

func (c *Cloud) listImages(r *request) (int, map[string]string, any, *problem) {
	var all []*aks.NodeImageVersion
	for _, gallery := range []string{"AKSUbuntu", "AKSAzureLinux"} {
		for _, name := range images()[gallery] {
			for _, version := range c.config.ImageVersions {
				all = append(all, &aks.NodeImageVersion{
					OS: &gallery, SKU: &name, Version: &version, FullName: to.Ptr(gallery + "-" + name + "-" + version),
				})
			}
		}
	}
	return page(c, r, all)
}
