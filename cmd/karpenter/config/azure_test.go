// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

// aks returns the environment of a cluster with all required settings.
func aks() map[string]string {
	return map[string]string{
		"CLOUD_PROVIDER": "azure", "CLUSTER_NAME": "prod", "LOCATION": "westeurope", "ARM_SUBSCRIPTION_ID": "sub", "ARM_RESOURCE_GROUP": "shop",
		"AZURE_NODE_RESOURCE_GROUP": "MC_shop", "AKS_MACHINES_POOL_NAME": "machines", "SIG_SUBSCRIPTION_ID": "galleries", "USE_SIG": "true",
		"VNET_SUBNET_ID": "/subscriptions/sub/resourcegroups/net/providers/microsoft.network/virtualnetworks/v/subnets/nodes",
		"PROVISION_MODE": "aksmachineapi",
	}
}

const (
	guid     = "00000000-0000-0000-0000-0000000000aa"
	identity = "/subscriptions/sub/resourceGroups/shop/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubelet"
)

// vms is the change to virtual machines that Karpenter makes, and more of it.
func vms(more map[string]string) map[string]string {
	out := map[string]string{
		"PROVISION_MODE": "aksscriptless", "SSH_PUBLIC_KEY": "ssh-rsa", "CLUSTER_ENDPOINT": "https://prod.hcp.westeurope.azmk8s.io:443",
		"AKS_MACHINES_POOL_NAME": "-", "SIG_SUBSCRIPTION_ID": "-", "USE_SIG": "-",
	}
	maps.Copy(out, more)
	return out
}

func parsed(change map[string]string) (Config, error) {
	env := aks()
	maps.Copy(env, change)
	return Parse(nil, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok && value != "-" // which stands for a variable that is not set
	})
}

func TestAzure(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  map[string]string
		want func(*Azure)
	}{
		{"what must be said", nil, func(*Azure) {}},
		{"the other name of the subscription counts less", map[string]string{"AZURE_SUBSCRIPTION_ID": "own"}, func(a *Azure) { a.Subscription = "own" }},
		{"no overlay", map[string]string{"NETWORK_PLUGIN_MODE": ""}, func(a *Azure) { a.NetworkPluginMode = "" }},
		{"no plugin", map[string]string{"NETWORK_PLUGIN_MODE": "", "NETWORK_PLUGIN": "none"}, func(a *Azure) { a.NetworkPluginMode, a.NetworkPlugin = "", "none" }},
		{"tags", map[string]string{"ADDITIONAL_TAGS": "team=a, cost center=7"}, func(a *Azure) { a.Tags = map[string]string{"team": "a", "cost center": "7"} }},
		{"batches", map[string]string{"PROVISION_MODE": "aksmachineapiheaderbatch", "PROVIDER_BATCH_MAX_SIZE": "10", "PROVIDER_BATCH_MAX_DURATION": "1s"}, func(a *Azure) {
			a.Mode, a.BatchItems, a.BatchMost = "aksmachineapiheaderbatch", 10, time.Second
		}},
		{"what is for virtual machines only", map[string]string{"SSH_PUBLIC_KEY": "ssh-rsa", "KUBELET_BOOTSTRAP_TOKEN": "a.b"}, func(a *Azure) {
			a.SSHKey, a.BootstrapToken = "ssh-rsa", "a.b"
		}},
		{"virtual machines", vms(nil), func(a *Azure) {
			a.Mode, a.SSHKey, a.Pool, a.GallerySubscription, a.SharedGalleries = "aksscriptless", "ssh-rsa", "", "", false
		}},
		{"virtual machines, with everything", vms(map[string]string{
			"KUBELET_BOOTSTRAP_TOKEN": "abcdef.0123456789abcdef", "LINUX_ADMIN_USERNAME": "me", "KUBELET_IDENTITY_CLIENT_ID": guid, "NODE_IDENTITIES": identity + ", " + identity + "2",
			"AZURE_TENANT_ID": "tenant", "NETWORK_DATAPLANE": "", "NETWORK_POLICY": "calico", "DNS_SERVICE_IP": "10.1.0.10", "VNET_GUID": guid, "USE_SIG": "false",
			"MANAGE_EXISTING_AKS_MACHINES": "true", "AKS_MACHINES_POOL_NAME": "machines",
		}), func(a *Azure) {
			*a = Azure{
				Region: a.Region, Subscription: a.Subscription, ResourceGroup: a.ResourceGroup, NodeResourceGroup: a.NodeResourceGroup, Subnet: a.Subnet,
				NetworkPlugin: "azure", NetworkPluginMode: "overlay", Cloud: a.Cloud, BatchIdle: a.BatchIdle, BatchMost: a.BatchMost, BatchItems: a.BatchItems,
				Mode: "aksscriptless", SSHKey: "ssh-rsa", BootstrapToken: "abcdef.0123456789abcdef", AdminUser: "me", KubeletIdentity: guid, NodeIdentities: []string{identity, identity + "2"},
				Tenant: "tenant", NetworkPolicy: "calico", DNSServiceIP: "10.1.0.10", NetworkGUID: guid, ManageMachines: true, Pool: "machines",
			}
		}},
		// spec 71/107: without batches, their settings do not matter.
		{"spec 71/107 no batches", map[string]string{"PROVIDER_BATCH_MAX_SIZE": "51", "PROVIDER_BATCH_MAX_DURATION": "0s"}, func(a *Azure) { a.BatchItems, a.BatchMost = 51, 0 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parsed(tc.env)
			if err != nil {
				t.Fatal(err)
			}
			want := Azure{
				Region: "westeurope", Subscription: "sub", ResourceGroup: "shop", NodeResourceGroup: "MC_shop", Pool: "machines", Mode: ModeMachines,
				SharedGalleries: true, GallerySubscription: "galleries", NetworkPlugin: "azure", NetworkPluginMode: "overlay", Cloud: "AzurePublicCloud",
				NetworkDataplane: "cilium", AdminUser: "azureuser", Subnet: aks()["VNET_SUBNET_ID"], BatchIdle: time.Second, BatchMost: 5 * time.Second, BatchItems: 50,
			}
			tc.want(&want)
			if !reflect.DeepEqual(got.Azure, want) || got.ClusterName != "prod" {
				t.Errorf("got %+v\nwant %+v", got.Azure, want)
			}
		})
	}
}

// TestAzureRefuses covers spec 71/106, spec 71/107, 108 and 109.
func TestAzureRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"spec 71/106 nothing is said", map[string]string{
			"CLUSTER_NAME": "-", "LOCATION": "-", "ARM_SUBSCRIPTION_ID": "-", "ARM_RESOURCE_GROUP": "-", "AZURE_NODE_RESOURCE_GROUP": "-",
			"AKS_MACHINES_POOL_NAME": "-", "SIG_SUBSCRIPTION_ID": "-", "VNET_SUBNET_ID": "-", "USE_SIG": "false",
		}, `missing field, cluster-name: set --cluster-name or CLUSTER_NAME to the name of the AKS cluster
missing field, LOCATION: set it to the region of the AKS cluster
missing field, AZURE_SUBSCRIPTION_ID: set it to the ID of the subscription of the AKS cluster
missing field, ARM_RESOURCE_GROUP: set it to the resource group of the AKS cluster
missing field, node-resource-group: set --node-resource-group or AZURE_NODE_RESOURCE_GROUP to the resource group of the nodes
missing field, vnet-subnet-id: set --vnet-subnet-id or VNET_SUBNET_ID to the ARM ID of the subnet of nodes
missing field, sig-subscription-id: set --sig-subscription-id or SIG_SUBSCRIPTION_ID to the subscription of AKS' shared galleries
missing field, aks-machines-pool-name: set --aks-machines-pool-name or AKS_MACHINES_POOL_NAME to an agent pool for the AKS Machine API
use-sig: the AKS Machine API boots images of AKS' shared galleries only: leave it out, or set it to true`},
		{"spec 71/106 a subnet", map[string]string{"VNET_SUBNET_ID": "/subscriptions/sub/subnets/nodes"},
			`VNET_SUBNET_ID: "/subscriptions/sub/subnets/nodes": want an ID of the form /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Network/virtualNetworks/NAME/subnets/NAME`},
		{"spec 71/106 an encryption set", map[string]string{"NODE_OSDISK_DISKENCRYPTIONSET_ID": aks()["VNET_SUBNET_ID"]},
			`want an ID of the form /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Compute/diskEncryptionSets/NAME`},
		{"spec 71/106 a plugin", map[string]string{"NETWORK_PLUGIN": "kubenet"}, `NETWORK_PLUGIN: "kubenet": want one of azure, none`},
		{"spec 71/106 no plugin, overlay", map[string]string{"NETWORK_PLUGIN": "none"}, `network-plugin-mode: "overlay" does not go with network plugin none: set NETWORK_PLUGIN_MODE to nothing`},
		{"a server of Microsoft", map[string]string{"PROVISION_MODE": "bootstrappingclient"},
			`PROVISION_MODE: "bootstrappingclient": this mode, which needs a server of Microsoft, is not implemented: want aksscriptless`},
		{"spec 71/106 virtual machines", vms(map[string]string{"SSH_PUBLIC_KEY": "-", "CLUSTER_ENDPOINT": "-", "USE_SIG": "true", "MANAGE_EXISTING_AKS_MACHINES": "true"}),
			`missing field, cluster-endpoint: set --cluster-endpoint or CLUSTER_ENDPOINT to the URL of the API server
missing field, ssh-public-key: set --ssh-public-key or SSH_PUBLIC_KEY to a public SSH key
missing field, aks-machines-pool-name: set --aks-machines-pool-name or AKS_MACHINES_POOL_NAME to an agent pool for the AKS Machine API
use-sig: VMs that Karpenter makes boot images of the community galleries only: leave it out, or set it to false`},
		{"spec 71/106 a name", map[string]string{"LINUX_ADMIN_USERNAME": "1st"}, `LINUX_ADMIN_USERNAME: "1st": want a letter, then up to 31 letters, digits, - and _`},
		{"spec 71/106 an identity", map[string]string{"KUBELET_IDENTITY_CLIENT_ID": "me"}, `KUBELET_IDENTITY_CLIENT_ID: "me": want a UUID`},
		{"spec 71/106 identities", map[string]string{"NODE_IDENTITIES": identity + ",me"}, `"me": want an ID of the form /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.ManagedIdentity/userAssignedIdentities/NAME`},
		{"spec 71/106 an address", map[string]string{"DNS_SERVICE_IP": "10.0.0"}, `DNS_SERVICE_IP: "10.0.0": want an IP address`},
		{"spec 71/106 a data plane", map[string]string{"NETWORK_DATAPLANE": "ebpf"}, `NETWORK_DATAPLANE: "ebpf": want one of cilium, azure, `},
		{"spec 71/106 a virtual network", map[string]string{"VNET_GUID": "vnet"}, `VNET_GUID: "vnet": want a UUID`},
		{"spec 71/107 a batch", map[string]string{"PROVISION_MODE": "aksmachineapiheaderbatch", "PROVIDER_BATCH_MAX_SIZE": "51", "PROVIDER_BATCH_IDLE_DURATION": "6s"},
			"provider-batch-max-size: 51: want an integer from 1 to 50\nprovider-batch-max-duration: 5s: want at least the idle duration, 6s"},
		{"a mode", map[string]string{"PROVISION_MODE": "scaleset"}, `PROVISION_MODE: "scaleset": want one of aksmachineapi, aksmachineapiheaderbatch, aksscriptless`},
		{"spec 71/108 two clouds", map[string]string{"ARM_CLOUD": "AzureChinaCloud", "AZURE_ENVIRONMENT_FILEPATH": "/cloud.json"},
			"ARM_CLOUD and AZURE_ENVIRONMENT_FILEPATH are both set: want one of them"},
		{"spec 71/108 a relative path", map[string]string{"AZURE_ENVIRONMENT_FILEPATH": "cloud.json"}, `AZURE_ENVIRONMENT_FILEPATH: "cloud.json": want an absolute path`},
		{"spec 71/109 two tags", map[string]string{"ADDITIONAL_TAGS": "a=1,A=2"}, `ADDITIONAL_TAGS: "a=1,A=2": key "A" is there twice: Azure does not distinguish case`},
		{"spec 71/109 no tag", map[string]string{"ADDITIONAL_TAGS": "a"}, `ADDITIONAL_TAGS: "a": "a": want KEY=VALUE separated by commas`},
		{"spec 71/109 a slash", map[string]string{"ADDITIONAL_TAGS": "a/b=1"}, `key "a/b": want at most 512 characters, none of <>%&\?/`},
		{"spec 71/109 a long value", map[string]string{"ADDITIONAL_TAGS": "a=" + strings.Repeat("x", 257)}, `value of "a": want at most 256 characters`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := parsed(tc.env); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// TestTokenIsSecret covers the settings of spec 71/87: an error about a token does not
// show it.
func TestTokenIsSecret(t *testing.T) {
	_, err := parsed(vms(map[string]string{"KUBELET_BOOTSTRAP_TOKEN": "abcdef.TOPSECRET"}))
	if err == nil || !strings.Contains(err.Error(), "kubelet-bootstrap-token: want 6 and 16") || strings.Contains(err.Error(), "TOPSECRET") {
		t.Errorf("error %v", err)
	}
}
