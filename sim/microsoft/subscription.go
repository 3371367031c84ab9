// SPDX-License-Identifier: Apache-2.0

package microsoft

import (
	"context"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/clock"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azure/catalogue"
	"karpenter/cloud/azure/client"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/shortage"
	"karpenter/cloud/azurevm"
	"karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/wiring"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// What the cluster is called, and what it runs.
const (
	Class      = "default" // the AKSNodeClass
	Region     = "eastus"
	Kubernetes = "1.34.1"

	name      = "cluster"
	nodeGroup = "MC_cluster"
	pool      = "machines"
	identity  = "00000000-0000-0000-0000-000000000001"
	subnet    = "/subscriptions/" + identity + "/resourceGroups/" + nodeGroup + "/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet"
)

const (
	// overhead is the share of their sizes' memory that machines do not see. The
	// provider reckons with a larger one.
	overhead = 0.05
	reckoned = 0.075
	// creation is how long a machine takes to run, or to fail.
	creation = 15 * time.Second
)

// Config says what subscription there is.
type Config struct {
	Sizes  []string          // on sale
	Zones  []string          // numbers of those that offer them
	NoSpot []string          // sizes that are not offered as spot
	Refuse azurefake.Refusal // how Azure says that it has none left
	VMs    bool              // the process makes virtual machines itself
}

// Subscription is the Azure of a run.
type Subscription struct {
	Azure *azurefake.Cloud

	run       *sim.Run
	services  *client.Azure // without door
	refuse    azurefake.Refusal
	sells     *catalogue.Catalogue
	shortages *shortage.Log // that Azure has told
	calls     sim.Calls

	sold     []*cloud.InstanceType // nil = not known yet
	stamp    uint64                // of the shortages when they were learnt
	machines map[string]*machine   // by ARM ID and creation of the virtual machine
	shown    []*simcloud.Machine   // in the order of their launch
	failed   map[string]time.Time  // machines without a virtual machine, and since when
	odd      map[string]time.Time  // what must not last, and since when it is so
	looked   looked
}

var (
	_ sim.Vendor    = (*Subscription)(nil)
	_ simcloud.Real = (*Subscription)(nil)
)

// looked is what there was when the subscription was looked at last.
type looked struct {
	at      time.Time
	changes int // of calls
}

// New makes the subscription of a run, for Setup.Vendor.
func New(c Config, run *sim.Run) (*Subscription, error) {
	skus, err := c.skus()
	if err != nil {
		return nil, err
	}
	s := &Subscription{
		run: run, refuse: c.Refuse, shortages: &shortage.Log{}, machines: map[string]*machine{}, failed: map[string]time.Time{},
		Azure: azurefake.New(azurefake.Config{
			Clock: clock.RealClock{}, Subscription: identity, ResourceGroup: name, Cluster: name, NodeGroup: nodeGroup, Region: Region,
			Pools: map[string]string{pool: "Machines"}, SKUs: skus, Subnets: []string{subnet}, ImageVersions: []string{"202607.9.0", "202607.10.0"},
			Creation: creation, Deletion: simcloud.Stopping,
		}),
	}
	s.Azure.SecurityGroups("aks-agentpool-12345678-nsg")
	s.Azure.Balance("kubernetes", azurefake.BackendPool{Name: "aksOutboundBackendPool"}, azurefake.BackendPool{Name: "kubernetes"})
	if s.services, err = client.New(identity, s.Azure.Credential(), s.Azure.Options()); err != nil {
		return nil, err
	}
	prices, err := azurevm.StaticPrices(Region)
	if err != nil {
		return nil, err
	}
	s.sells = catalogue.New(catalogue.Config{
		Clock: clock.RealClock{}, Shortages: s.shortages, Start: prices,
		Cluster: instancetype.Cluster{Region: Region, NodeResourceGroup: nodeGroup, MemoryOverhead: reckoned, NetworkPlugin: "azure", NetworkPluginMode: "overlay", UltraSSD: c.VMs},
		SKUs:    func(ctx context.Context) ([]azurevm.SKU, error) { return s.services.SKUs(ctx, Region) },
	})
	if err := s.sells.RefreshSKUs(context.Background()); err != nil {
		return nil, err
	}
	run.Cloud.Stand(s)
	return s, nil
}

// skus are the sizes that are on sale.
func (c Config) skus() ([]azurevm.SKU, error) {
	sizes, err := azurevm.Sizes()
	if err != nil {
		return nil, err
	}
	known := map[string]azurevm.SKU{}
	for _, sku := range azurevm.Offered(sizes, Region) {
		known[sku.Name] = sku
	}
	var out []azurevm.SKU
	for _, wanted := range c.Sizes {
		sku, ok := known[wanted]
		if !ok {
			return nil, fmt.Errorf("%s does not offer %s", Region, wanted)
		}
		sku.Zones, sku.LowPriority = c.Zones, true
		for _, without := range c.NoSpot {
			sku.LowPriority = sku.LowPriority && without != wanted
		}
		out = append(out, sku)
	}
	return out, nil
}

// Environment is what the process is told about the subscription.
func (c Config) Environment() map[string]string {
	out := map[string]string{
		"CLUSTER_NAME": name, "LOCATION": Region, "AZURE_SUBSCRIPTION_ID": identity, "ARM_RESOURCE_GROUP": name, "AZURE_NODE_RESOURCE_GROUP": nodeGroup,
		"PROVISION_MODE": config.ModeMachines, "AKS_MACHINES_POOL_NAME": pool, "SIG_SUBSCRIPTION_ID": identity, "VNET_SUBNET_ID": subnet,
	}
	if c.VMs {
		// The token is a fixed one: those that Karpenter makes are others in each run.
		maps.Copy(out, map[string]string{
			"PROVISION_MODE": config.ModeVMs, "CLUSTER_ENDPOINT": "https://cluster.hcp.eastus.azmk8s.io:443", "SSH_PUBLIC_KEY": "ssh-rsa AAAA",
			"KUBELET_BOOTSTRAP_TOKEN": "abcdef.0123456789abcdef", "DNS_SERVICE_IP": "10.0.0.10", "VNET_GUID": identity,
		})
	}
	return out
}

// NodeClass is an AKSNodeClass that leaves everything to its defaults.
func NodeClass() *v1beta1.AKSNodeClass {
	return &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: Class}}
}

// kubernetes is the version of the API server.
type kubernetes struct{}

// ServerVersion implements discovery.ServerVersionInterface.
func (kubernetes) ServerVersion() (*version.Info, error) {
	return &version.Info{GitVersion: "v" + Kubernetes}, nil
}

// Provider implements sim.Vendor.
func (s *Subscription) Provider(ctx context.Context, d sim.Door, supplies wiring.Supplies) (wiring.Provider, error) {
	options := s.Azure.Options()
	options.Transport = door{options.Transport, d, s}
	options.PerRetryPolicies = client.Options(options.Cloud, "", nil).PerRetryPolicies
	options.Retry.RetryDelay = -1 // without the chance that is in longer ones
	services, err := client.New(identity, s.Azure.Credential(), options)
	if err != nil {
		return wiring.Provider{}, err
	}
	return wiring.Azure(ctx, wiring.Microsoft{Services: services, Discovery: kubernetes{}}, supplies)
}

// Calls returns how often each kind of request was made by the process.
func (s *Subscription) Calls() map[string]int {
	return s.calls.Made()
}

// place is where Azure has an offering.
func place(o simcloud.Offering) azurefake.Place {
	return azurefake.Place{Size: o.Type, Zone: instancetype.ZoneNumber(o.Zone), Spot: o.CapacityType == model.Spot}
}

// Lose implements simcloud.Real: Azure takes the virtual machine back.
func (s *Subscription) Lose(providerID string) {
	for _, m := range s.machines {
		if m.ProviderID == providerID {
			s.Azure.Evict(m.pool, m.name)
			m.Lost = true
			s.calls.Changed()
		}
	}
}

// SetPrice implements simcloud.Real. Prices are read twice a day, so that runs are
// over before.
func (s *Subscription) SetPrice(simcloud.Offering, model.Price) {}

// SetEmpty implements simcloud.Real.
func (s *Subscription) SetEmpty(o simcloud.Offering, empty bool) {
	if empty {
		s.Azure.Script(place(o), s.refuse)
	} else {
		s.Azure.Deliver(place(o))
	}
}

// SetLag implements simcloud.Real.
func (s *Subscription) SetLag(lag time.Duration) { s.Azure.ListLag(lag) }

// learn has the Cloud know what the class is offered, less what Azure has said it
// lacks.
func (s *Subscription) learn() (changed bool, err error) {
	stamp := s.shortages.Sequence(time.Now())
	class := store.Find[*v1beta1.AKSNodeClass](s.run.Store, "", Class)
	if class == nil || s.sold != nil && stamp == s.stamp {
		return false, nil
	}
	if _, err := class.KubernetesVersion(); err != nil {
		return false, nil // it is not resolved yet
	}
	sold, err := s.sells.Types(context.Background(), class)
	if err != nil {
		return false, fmt.Errorf("what AKSNodeClass %s is offered: %w", Class, err)
	}
	s.sold, s.stamp = sold, stamp
	return true, nil
}
