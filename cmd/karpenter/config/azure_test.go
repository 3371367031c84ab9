// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"
)

// aks is the environment of a cluster in which all is said that must be.
func aks() map[string]string {
	return map[string]string{
		"CLOUD_PROVIDER": "azure", "CLUSTER_NAME": "prod", "LOCATION": "westeurope", "ARM_SUBSCRIPTION_ID": "sub", "ARM_RESOURCE_GROUP": "shop",
		"AZURE_NODE_RESOURCE_GROUP": "MC_shop", "AKS_MACHINES_POOL_NAME": "machines", "SIG_SUBSCRIPTION_ID": "galleries", "USE_SIG": "true",
		"VNET_SUBNET_ID": "/subscriptions/sub/resourcegroups/net/providers/microsoft.network/virtualnetworks/v/subnets/nodes",
		"PROVISION_MODE": "aksmachineapi",
	}
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
		{"what is for virtual machines only", map[string]string{"SSH_PUBLIC_KEY": "ssh-rsa", "KUBELET_BOOTSTRAP_TOKEN": "a.b"}, func(*Azure) {}},
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
				Subnet: aks()["VNET_SUBNET_ID"], BatchIdle: time.Second, BatchMost: 5 * time.Second, BatchItems: 50,
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
missing field, aks-machines-pool-name: set --aks-machines-pool-name or AKS_MACHINES_POOL_NAME to an agent pool for the AKS Machine API
missing field, sig-subscription-id: set --sig-subscription-id or SIG_SUBSCRIPTION_ID to the subscription of AKS' shared galleries
use-sig: the AKS Machine API boots images of AKS' shared galleries only: leave it out, or set it to true`},
		{"spec 71/106 a subnet", map[string]string{"VNET_SUBNET_ID": "/subscriptions/sub/subnets/nodes"},
			`VNET_SUBNET_ID: "/subscriptions/sub/subnets/nodes": want an ID of the form /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Network/virtualNetworks/NAME/subnets/NAME`},
		{"spec 71/106 an encryption set", map[string]string{"NODE_OSDISK_DISKENCRYPTIONSET_ID": aks()["VNET_SUBNET_ID"]},
			`want an ID of the form /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Compute/diskEncryptionSets/NAME`},
		{"spec 71/106 a plugin", map[string]string{"NETWORK_PLUGIN": "kubenet"}, `NETWORK_PLUGIN: "kubenet": want one of azure, none`},
		{"spec 71/106 no plugin, overlay", map[string]string{"NETWORK_PLUGIN": "none"}, `network-plugin-mode: "overlay" does not go with network plugin none: set NETWORK_PLUGIN_MODE to nothing`},
		{"virtual machines", map[string]string{"PROVISION_MODE": "aksscriptless"},
			`PROVISION_MODE: "aksscriptless": this is VM mode, which is not implemented: want aksmachineapi, and an agent pool for the AKS Machine API in AKS_MACHINES_POOL_NAME`},
		{"spec 71/107 a batch", map[string]string{"PROVISION_MODE": "aksmachineapiheaderbatch", "PROVIDER_BATCH_MAX_SIZE": "51", "PROVIDER_BATCH_IDLE_DURATION": "6s"},
			"provider-batch-max-size: 51: want an integer from 1 to 50\nprovider-batch-max-duration: 5s: want at least the idle duration, 6s"},
		{"a mode", map[string]string{"PROVISION_MODE": "scaleset"}, `PROVISION_MODE: "scaleset": want one of aksmachineapi, aksmachineapiheaderbatch`},
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
