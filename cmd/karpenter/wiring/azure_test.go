// SPDX-License-Identifier: Apache-2.0

package wiring_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/cloud/azure/azurefake"
	azureclient "karpenter/cloud/azure/client"
	"karpenter/cloud/azurevm"
	"karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/wiring"
)

const subnetOfAzure = "/subscriptions/sub/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/nodes"

// wireAzure wires a process that runs everything on a cloud, after change.
func wireAzure(t *testing.T, change func(*azurefake.Cloud), args ...string) error {
	t.Helper()
	sizes, err := azurevm.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	azure := azurefake.New(azurefake.Config{
		Clock: clock.RealClock{}, Subscription: "sub", ResourceGroup: "shop", Cluster: "prod", NodeGroup: "MC_shop", Region: "eastus",
		Pools: map[string]string{"machines": "Machines"}, SKUs: azurevm.Offered(sizes, "eastus"), Subnets: []string{subnetOfAzure},
	})
	change(azure)
	services, err := azureclient.New("sub", azure.Credential(), azure.Options())
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(append([]string{
		"--cloud-provider=azure", "--provision-mode=aksmachineapi", "--cluster-name=prod", "--node-resource-group=MC_shop", "--aks-machines-pool-name=machines", "--sig-subscription-id=galleries",
		"--vnet-subnet-id=" + subnetOfAzure,
	}, args...), func(name string) (string, bool) {
		value, ok := map[string]string{"LOCATION": "eastus", "AZURE_SUBSCRIPTION_ID": "sub", "ARM_RESOURCE_GROUP": "shop"}[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	return wiring.Wire(t.Context(), wiring.Surroundings{
		Manager: unreachable(t), Config: c, Registry: &recording{Registry: prometheus.NewPedanticRegistry()},
		Nominator: func() (client.StatusClient, error) { return nil, nil },
		Provider: func(ctx context.Context, s wiring.Supplies) (wiring.Provider, error) {
			return wiring.Azure(ctx, wiring.Microsoft{Services: services, Discovery: oldCluster{}, PriceList: "http://127.0.0.1:0"}, s)
		},
	})
}

// TestAzure covers the second half of spec 71/36: nothing starts without the VM
// sizes.
func TestAzure(t *testing.T) {
	if err := wireAzure(t, func(*azurefake.Cloud) {}); err != nil {
		t.Error(err)
	}
	err := wireAzure(t, func(c *azurefake.Cloud) {
		c.Fail("LIST sku", azurefake.Failure{Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "no right to Microsoft.Compute/skus/read"})
	})
	if err == nil || !strings.Contains(err.Error(), "read the VM sizes of eastus") || !strings.Contains(err.Error(), "Microsoft.Compute/skus/read") {
		t.Errorf("without sizes: %v", err)
	}
}

// TestAzureVMs: the process that makes virtual machines itself is wired, too; it asks Azure
// for the GUID of its network, and does not start without it.
func TestAzureVMs(t *testing.T) {
	args := []string{"--provision-mode=aksscriptless", "--cluster-endpoint=https://prod.hcp.eastus.azmk8s.io:443", "--ssh-public-key=ssh-rsa AAAA", "--dns-service-ip=10.0.0.10"}
	if err := wireAzure(t, func(*azurefake.Cloud) {}, args...); err != nil {
		t.Error(err)
	}
	err := wireAzure(t, func(c *azurefake.Cloud) {
		c.Fail("GET virtualNetwork", azurefake.Failure{Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "no right to Microsoft.Network/virtualNetworks/read"})
	}, args...)
	if err == nil || !strings.Contains(err.Error(), "Microsoft.Network/virtualNetworks/read") {
		t.Errorf("without the network: %v", err)
	}
}
