// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// How nodes are made on Azure, as upstream names it.
const (
	ModeMachines        = "aksmachineapi"
	ModeMachinesBatched = "aksmachineapiheaderbatch"
	ModeVMs             = "aksscriptless"
)

// Azure is what the provider for AKS can be told.
type Azure struct {
	// Region is where the cluster is. Required.
	Region string
	// Subscription is the ID of the subscription of the cluster. Required.
	Subscription string
	// ResourceGroup is that of the cluster, NodeResourceGroup that of its nodes.
	// Required.
	ResourceGroup, NodeResourceGroup string
	// Subnet is the ARM ID of the subnet of nodes. Required.
	Subnet string
	// Mode is how nodes are made. Default ModeVMs.
	Mode string
	// Requests for machines are joined in ModeMachinesBatched until nothing more has
	// come for BatchIdle, the first has waited for BatchMost, or there are BatchItems,
	// 1 to 50. Default 1s, 5s and 50.
	BatchIdle, BatchMost time.Duration
	BatchItems           int
	// Pool is the name of the agent pool of mode Machines. Required, but in ModeVMs.
	Pool string
	// SharedGalleries is whether images are those of AKS' shared galleries: AKS machines
	// boot no others, and virtual machines of ModeVMs boot all but these. By default it is
	// as the mode demands.
	SharedGalleries bool
	// GallerySubscription is the ID of the subscription that the shared galleries are
	// in. Required, but in ModeVMs.
	GallerySubscription string
	// ManageMachines has ModeVMs look after AKS machines, too, that there are. Default
	// false.
	ManageMachines bool
	// SSHKey is the public key of the administrator of virtual machines, AdminUser his
	// name. Required in ModeVMs; default azureuser.
	SSHKey, AdminUser string
	// BootstrapToken is with what kubelets of virtual machines join. Default "", Karpenter
	// makes tokens.
	BootstrapToken string
	// KubeletIdentity is the client ID of the kubelets' managed identity. Default "".
	KubeletIdentity string
	// NodeIdentities are the ARM IDs of managed identities of virtual machines. Default
	// nil.
	NodeIdentities []string
	// Tenant is the ID of the subscription's tenant. Default "", that of the token for
	// Azure.
	Tenant string
	// NetworkDataplane is cilium, azure or "", NetworkPolicy anything. Default cilium and
	// "".
	NetworkDataplane, NetworkPolicy string
	// DNSServiceIP is the address of the cluster's DNS, NetworkGUID the GUID of the
	// virtual network. Default "", they are looked up.
	DNSServiceIP, NetworkGUID string
	// NetworkPlugin is azure or none, NetworkPluginMode overlay or "". Default azure
	// and overlay.
	NetworkPlugin, NetworkPluginMode string
	// DiskEncryptionSet is the ARM ID of that of OS disks. Default "", none.
	DiskEncryptionSet string
	// Tags are those of everything that is made. Default nil.
	Tags map[string]string
	// Cloud is the name of the cloud, EnvironmentFile a file with its endpoints that
	// takes precedence. Default "", AzurePublicCloud, and "".
	Cloud, EnvironmentFile string
}

func microsoft() []setting {
	return []setting{
		setting{env: "LOCATION", chart: "settings.azure.location",
			meaning: "region of the cluster, such as westeurope; required with Azure",
		}.text(func(c *Config) *string { return &c.Azure.Region }),
		setting{env: "AZURE_SUBSCRIPTION_ID", also: "ARM_SUBSCRIPTION_ID", chart: "settings.azure.subscriptionID",
			meaning: "ID of the subscription of the cluster; required with Azure. ARM_SUBSCRIPTION_ID counts if it is not set",
		}.text(func(c *Config) *string { return &c.Azure.Subscription }),
		setting{env: "ARM_RESOURCE_GROUP", chart: "settings.azure.resourceGroup",
			meaning: "resource group of the AKS cluster; required with Azure",
		}.text(func(c *Config) *string { return &c.Azure.ResourceGroup }),
		setting{flag: "node-resource-group", env: "AZURE_NODE_RESOURCE_GROUP", chart: "settings.azure.nodeResourceGroup",
			meaning: "resource group of the nodes of the AKS cluster, usually MC_...; required with Azure",
		}.text(func(c *Config) *string { return &c.Azure.NodeResourceGroup }),
		setting{flag: "vnet-subnet-id", env: "VNET_SUBNET_ID", chart: "settings.azure.vnetSubnetID", values: "ARM ID of a subnet",
			meaning: "subnet of nodes whose AKSNodeClass names none; required with Azure",
		}.armID(func(c *Config) *string { return &c.Azure.Subnet }, "Microsoft.Network", "virtualNetworks", "subnets"),
		setting{flag: "provision-mode", env: "PROVISION_MODE", chart: "settings.azure.provisionMode", preset: ModeVMs, values: quoted([]string{ModeVMs, ModeMachines, ModeMachinesBatched}),
			meaning: "how nodes are made: with aksscriptless, Karpenter makes VMs itself; otherwise AKS makes them, by its Machine API, one or several by a request. VMs that Karpenter has made are managed in all modes. The mode bootstrappingclient of upstream is not implemented",
		}.mode(),
		setting{flag: "provider-batch-idle-duration", env: "PROVIDER_BATCH_IDLE_DURATION", preset: "1s",
			meaning: "with batches, a request for instances is complete when nothing more has come for this long",
		}.duration(func(c *Config) *time.Duration { return &c.Azure.BatchIdle }),
		setting{flag: "provider-batch-max-duration", env: "PROVIDER_BATCH_MAX_DURATION", preset: "5s",
			meaning: "with batches, the longest wait for more after the first instance of a request",
		}.duration(func(c *Config) *time.Duration { return &c.Azure.BatchMost }),
		setting{flag: "provider-batch-max-size", env: "PROVIDER_BATCH_MAX_SIZE", preset: "50", values: "an integer, 1 to 50",
			meaning: "with batches, how many instances one request makes at most",
		}.integer(func(c *Config) *int { return &c.Azure.BatchItems }, 0, math.MaxInt),
		setting{flag: "aks-machines-pool-name", env: "AKS_MACHINES_POOL_NAME", chart: "settings.azure.machinesPoolName",
			meaning: "agent pool for the AKS Machine API in which nodes are made; required with Azure, unless Karpenter makes VMs",
		}.text(func(c *Config) *string { return &c.Azure.Pool }),
		setting{flag: "use-sig", env: "USE_SIG",
			meaning: "images are those of AKS' shared galleries, which the AKS Machine API demands and VMs that Karpenter makes cannot boot; without it, it is as the mode demands",
		}.shared(),
		setting{flag: "sig-subscription-id", env: "SIG_SUBSCRIPTION_ID", chart: "settings.azure.sigSubscriptionID",
			meaning: "subscription of AKS' shared galleries, for the IDs of images in the status of AKSNodeClasses; required with Azure, unless Karpenter makes VMs",
		}.text(func(c *Config) *string { return &c.Azure.GallerySubscription }),
		setting{flag: "network-plugin", env: "NETWORK_PLUGIN", chart: "settings.azure.networkPlugin", preset: "azure",
			meaning: "network plugin of the AKS cluster; it decides how many pods a node has",
		}.oneOf(func(c *Config) *string { return &c.Azure.NetworkPlugin }, "azure", "none"),
		setting{flag: "network-plugin-mode", env: "NETWORK_PLUGIN_MODE", preset: "overlay", values: "`overlay`, or nothing", nothing: true,
			meaning: "mode of the network plugin; with the plugin none it must be nothing. A variable that is set to nothing counts",
		}.oneOf(func(c *Config) *string { return &c.Azure.NetworkPluginMode }, "overlay", ""),
		setting{flag: "manage-existing-aks-machines", env: "MANAGE_EXISTING_AKS_MACHINES", preset: "false",
			meaning: "with aksscriptless, nodes that were made by the AKS Machine API are managed, too; AKS_MACHINES_POOL_NAME names their agent pool",
		}.boolean(func(c *Config) *bool { return &c.Azure.ManageMachines }),
		setting{flag: "ssh-public-key", env: "SSH_PUBLIC_KEY", chart: "settings.azure.sshPublicKey",
			meaning: "public SSH key of the administrator of VMs; required with aksscriptless",
		}.text(func(c *Config) *string { return &c.Azure.SSHKey }),
		setting{flag: "linux-admin-username", env: "LINUX_ADMIN_USERNAME", preset: "azureuser", values: "a letter, then up to 31 letters, digits, `-` and `_`",
			meaning: "name of the administrator of VMs",
		}.matching(func(c *Config) *string { return &c.Azure.AdminUser }, `^[A-Za-z][-A-Za-z0-9_]{0,31}$`),
		setting{flag: "kubelet-bootstrap-token", env: "KUBELET_BOOTSTRAP_TOKEN", values: "`ID.SECRET`",
			meaning: "bootstrap token with which VMs join. It is not renewed. Without it, Karpenter makes tokens itself and renews them",
		}.text(func(c *Config) *string { return &c.Azure.BootstrapToken }),
		setting{flag: "kubelet-identity-client-id", env: "KUBELET_IDENTITY_CLIENT_ID", chart: "settings.azure.kubeletIdentityClientID", values: "a UUID",
			meaning: "client ID of the managed identity of the kubelets of VMs, with which they pull images; the identity must be in node-identities",
		}.matching(func(c *Config) *string { return &c.Azure.KubeletIdentity }, uuid),
		setting{flag: "node-identities", env: "NODE_IDENTITIES", chart: "settings.azure.nodeIdentities", values: "ARM IDs of managed identities, separated by commas",
			meaning: "user-assigned managed identities of VMs",
		}.identities(),
		setting{env: "AZURE_TENANT_ID", also: "ARM_TENANT_ID",
			meaning: "ID of the subscription's tenant, for VMs; without it, that of the token for Azure. The webhook of workload identity sets it",
		}.text(func(c *Config) *string { return &c.Azure.Tenant }),
		setting{flag: "network-dataplane", env: "NETWORK_DATAPLANE", preset: "cilium", values: "`cilium`, `azure`, or nothing", nothing: true,
			meaning: "data plane of the cluster's network, for VMs. A variable that is set to nothing counts",
		}.oneOf(func(c *Config) *string { return &c.Azure.NetworkDataplane }, "cilium", "azure", ""),
		setting{flag: "network-policy", env: "NETWORK_POLICY",
			meaning: "network policies of the cluster, such as cilium or calico, for VMs",
		}.text(func(c *Config) *string { return &c.Azure.NetworkPolicy }),
		setting{flag: "dns-service-ip", env: "DNS_SERVICE_IP", values: "an IP address",
			meaning: "address of the cluster's DNS, for VMs; without it, that of the Service kube-dns",
		}.address(func(c *Config) *string { return &c.Azure.DNSServiceIP }),
		setting{flag: "vnet-guid", env: "VNET_GUID", values: "a UUID",
			meaning: "GUID of the cluster's virtual network, for labels of VMs; without it, Karpenter asks Azure",
		}.matching(func(c *Config) *string { return &c.Azure.NetworkGUID }, uuid),
		setting{flag: "node-osdisk-diskencryptionset-id", env: "NODE_OSDISK_DISKENCRYPTIONSET_ID", values: "ARM ID of a disk encryption set",
			meaning: "disk encryption set of the cluster's nodes; AKSNodeClasses are ready only if Karpenter may read it",
		}.armID(func(c *Config) *string { return &c.Azure.DiskEncryptionSet }, "Microsoft.Compute", "diskEncryptionSets"),
		setting{flag: "additional-tags", env: "ADDITIONAL_TAGS", chart: "settings.azure.additionalTags", values: "`KEY=VALUE`, separated by commas",
			meaning: "tags of everything that Karpenter creates in Azure",
		}.tags(),
		setting{env: "ARM_CLOUD", chart: "settings.azure.cloud", preset: "AzurePublicCloud", values: "`AzurePublicCloud`, `AzureUSGovernmentCloud`, `AzureChinaCloud`",
			meaning: "the cloud of the subscription; only the public cloud has a price list, the others use built-in prices",
		}.text(func(c *Config) *string { return &c.Azure.Cloud }),
		setting{env: "AZURE_ENVIRONMENT_FILEPATH", values: "an absolute path",
			meaning: "JSON file with resourceManagerEndpoint, activeDirectoryEndpoint and tokenAudience of another cloud, in place of ARM_CLOUD; retailPricesEndpoint, if it has a price list",
		}.text(func(c *Config) *string { return &c.Azure.EnvironmentFile }),
	}
}

// must is a setting that is required for some reason.
type must struct{ value, flag, env, what string }

func (m must) missing() error {
	switch {
	case m.value != "":
		return nil
	case m.flag == "":
		return fmt.Errorf("missing field, %s: set it to %s", m.env, m.what)
	}
	return fmt.Errorf("missing field, %s: set --%s or %s to %s", m.flag, m.flag, m.env, m.what)
}

// azurely reports what is missing for Azure, or does not go together there.
func (c *Config) azurely() error {
	a := &c.Azure
	required := []must{
		{c.ClusterName, "cluster-name", "CLUSTER_NAME", "the name of the AKS cluster"},
		{a.Region, "", "LOCATION", "the region of the AKS cluster"},
		{a.Subscription, "", "AZURE_SUBSCRIPTION_ID", "the ID of the subscription of the AKS cluster"},
		{a.ResourceGroup, "", "ARM_RESOURCE_GROUP", "the resource group of the AKS cluster"},
		{a.NodeResourceGroup, "node-resource-group", "AZURE_NODE_RESOURCE_GROUP", "the resource group of the nodes"},
		{a.Subnet, "vnet-subnet-id", "VNET_SUBNET_ID", "the ARM ID of the subnet of nodes"},
	}
	if a.Mode == ModeVMs {
		required = append(required,
			must{c.ClusterEndpoint, "cluster-endpoint", "CLUSTER_ENDPOINT", "the URL of the API server"},
			must{a.SSHKey, "ssh-public-key", "SSH_PUBLIC_KEY", "a public SSH key"})
	} else {
		required = append(required, must{a.GallerySubscription, "sig-subscription-id", "SIG_SUBSCRIPTION_ID", "the subscription of AKS' shared galleries"})
	}
	if a.Mode != ModeVMs || a.ManageMachines {
		required = append(required, must{a.Pool, "aks-machines-pool-name", "AKS_MACHINES_POOL_NAME", "an agent pool for the AKS Machine API"})
	}
	var failures []error
	for _, r := range required {
		failures = append(failures, r.missing())
	}
	switch {
	case a.Mode == ModeVMs && a.SharedGalleries:
		failures = append(failures, errors.New("use-sig: VMs that Karpenter makes boot images of the community galleries only: leave it out, or set it to false"))
	case a.Mode != ModeVMs && !a.SharedGalleries:
		failures = append(failures, errors.New("use-sig: the AKS Machine API boots images of AKS' shared galleries only: leave it out, or set it to true"))
	}
	if a.Mode == ModeVMs && a.BootstrapToken != "" && !regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`).MatchString(a.BootstrapToken) {
		failures = append(failures, errors.New("kubelet-bootstrap-token: want 6 and 16 lower-case letters or digits with a dot between them; or leave it out, and Karpenter makes tokens itself"))
	}
	if a.NetworkPlugin == "none" && a.NetworkPluginMode != "" {
		failures = append(failures, fmt.Errorf("network-plugin-mode: %q does not go with network plugin none: set NETWORK_PLUGIN_MODE to nothing", a.NetworkPluginMode))
	}
	if a.Mode == ModeMachinesBatched {
		failures = append(failures, a.batches()...)
	}
	switch {
	case a.EnvironmentFile != "" && a.Cloud != "AzurePublicCloud":
		failures = append(failures, errors.New("ARM_CLOUD and AZURE_ENVIRONMENT_FILEPATH are both set: want one of them"))
	case a.EnvironmentFile != "" && !filepath.IsAbs(a.EnvironmentFile):
		failures = append(failures, fmt.Errorf("AZURE_ENVIRONMENT_FILEPATH: %q: want an absolute path", a.EnvironmentFile))
	}
	return errors.Join(failures...)
}

// mostInBatch is how many machines AKS makes of one request.
const mostInBatch = 50

// batches reports what is wrong with the settings of batches.
func (a *Azure) batches() (failures []error) {
	if a.BatchItems < 1 || a.BatchItems > mostInBatch {
		failures = append(failures, fmt.Errorf("provider-batch-max-size: %d: want an integer from 1 to %d", a.BatchItems, mostInBatch))
	}
	if a.BatchMost < a.BatchIdle {
		failures = append(failures, fmt.Errorf("provider-batch-max-duration: %v: want at least the idle duration, %v", a.BatchMost, a.BatchIdle))
	}
	return failures
}

// mode takes the modes that there are, and says what the others would be.
func (s setting) mode() setting {
	field := func(c *Config) *string { return &c.Azure.Mode }
	s = s.oneOf(field, ModeMachines, ModeMachinesBatched, ModeVMs)
	known := s.check
	s.check = func(c *Config) error {
		if *field(c) == "bootstrappingclient" {
			return errors.New("this mode, which needs a server of Microsoft, is not implemented: want " + ModeVMs)
		}
		return known(c)
	}
	s.set = func(c *Config, value string) error {
		*field(c) = value
		return s.check(c)
	}
	return s
}

// shared takes a boolean; without one, the mode decides. It comes after the mode.
func (s setting) shared() setting {
	field := func(c *Config) *bool { return &c.Azure.SharedGalleries }
	s = s.boolean(field)
	given := s.set
	s.set = func(c *Config, value string) error {
		if value == "" {
			*field(c) = c.Azure.Mode != ModeVMs
			return nil
		}
		return given(c, value)
	}
	return s
}

const uuid = `^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`

// matching takes nothing, or text of a form.
func (s setting) matching(field func(*Config) *string, form string) setting {
	s = s.text(field)
	return s.judged(func(c *Config) error {
		if value := *field(c); value != "" && !regexp.MustCompile(form).MatchString(value) {
			return fmt.Errorf("want %s", strings.ReplaceAll(s.values, "`", ""))
		}
		return nil
	})
}

// address takes nothing, or an IP address.
func (s setting) address(field func(*Config) *string) setting {
	s = s.text(field)
	return s.judged(func(c *Config) error {
		if _, err := netip.ParseAddr(*field(c)); *field(c) != "" && err != nil {
			return errors.New("want an IP address")
		}
		return nil
	})
}

// judged adds a check.
func (s setting) judged(check func(*Config) error) setting {
	store := s.set
	s.check = check
	s.set = func(c *Config, value string) error { return errors.Join(store(c, value), check(c)) }
	return s
}

// identities takes nothing, or ARM IDs of managed identities.
func (s setting) identities() setting {
	s.set = func(c *Config, value string) error {
		c.Azure.NodeIdentities = nil
		if value != "" {
			for id := range strings.SplitSeq(value, ",") {
				c.Azure.NodeIdentities = append(c.Azure.NodeIdentities, strings.TrimSpace(id))
			}
		}
		return s.check(c)
	}
	s.check = func(c *Config) error {
		for _, id := range c.Azure.NodeIdentities {
			if parts := strings.Split(id, "/"); len(parts) != 9 || !strings.EqualFold(parts[7], "userAssignedIdentities") {
				return fmt.Errorf("%q: want an ID of the form /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.ManagedIdentity/userAssignedIdentities/NAME", id)
			}
		}
		return nil
	}
	return s
}

// armID takes nothing, or the ARM ID of something of the types, each of which is
// part of the one before, of a resource provider.
func (s setting) armID(field func(*Config) *string, provider string, types ...string) setting {
	s = s.text(field)
	want := "/subscriptions/ID/resourceGroups/NAME/providers/" + provider
	for _, t := range types {
		want += "/" + t + "/NAME"
	}
	s.check = func(c *Config) error {
		id, pattern := strings.Split(*field(c), "/"), strings.Split(want, "/")
		same := len(id) == len(pattern)
		for i := range pattern {
			free := pattern[i] == "ID" || pattern[i] == "NAME"
			same = same && (free && id[i] != "" || strings.EqualFold(id[i], pattern[i]))
		}
		if *field(c) != "" && !same {
			return fmt.Errorf("want an ID of the form %s", want)
		}
		return nil
	}
	s.set = func(c *Config, value string) error {
		*field(c) = value
		return s.check(c)
	}
	return s
}

// What Azure allows of tags.
const (
	longestTagKey   = 512
	longestTagValue = 256
	noTagKey        = `<>%&\?/`
)

func (s setting) tags() setting {
	s.values, s.check = cmp.Or(s.values, "text"), valid
	s.set = func(c *Config, value string) error {
		c.Azure.Tags = nil
		if value == "" {
			return nil
		}
		tags, seen := map[string]string{}, map[string]bool{}
		for pair := range strings.SplitSeq(value, ",") {
			key, value, ok := strings.Cut(pair, "=")
			key, value = strings.TrimSpace(key), strings.TrimSpace(value)
			switch {
			case !ok || key == "":
				return fmt.Errorf("%q: want KEY=VALUE separated by commas", pair)
			case utf8.RuneCountInString(key) > longestTagKey || strings.ContainsAny(key, noTagKey):
				return fmt.Errorf("key %q: want at most %d characters, none of %s", key, longestTagKey, noTagKey)
			case utf8.RuneCountInString(value) > longestTagValue:
				return fmt.Errorf("value of %q: want at most %d characters", key, longestTagValue)
			case seen[strings.ToLower(key)]:
				return fmt.Errorf("key %q is there twice: Azure does not distinguish case", key)
			}
			tags[key], seen[strings.ToLower(key)] = value, true
		}
		c.Azure.Tags = tags
		return nil
	}
	return s
}
