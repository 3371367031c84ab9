// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/azurefake"
	azureclient "karpenter/cloud/azure/client"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/machine"
	"karpenter/cloud/azure/shortage"
	"karpenter/cloud/azure/vm"
	"karpenter/cloud/azurevm"
	"karpenter/model"
)

const (
	kubernetesVersion = "1.33.4"
	machinePool       = "machines"
	network           = "/subscriptions/sub/resourceGroups/Net/providers/Microsoft.Network/virtualNetworks/own/subnets/"
	subnet            = network + "nodes"
	otherSubnet       = network + "other"
)

// region is a provider with its cluster and its cloud.
type region struct {
	*Provider
	t        *testing.T
	azure    *azurefake.Cloud
	settings azurefake.Config  // of azure
	entries  []azurefake.Entry // by which it can be restored
	api      client.Client
	clock    *clocktesting.FakeClock
	pool     *v1.NodePool
	facts    map[string]*instancetype.Facts
	prices   azurevm.Prices
	short    *shortage.Log
	registry *prometheus.Registry

	mu                sync.Mutex
	batching          *machine.Batching // nil = each launch is a request of its own
	own               *vm.Config        // nil = nodes are AKS machines
	managed           bool              // AKS machines, too
	before            bool              // own are of the time before AKS machines
	cluster           string            // its name
	through           func(policy.Transporter) policy.Transporter
	events, disrupted []string
}

var (
	sizes  = sync.OnceValues(azurevm.Sizes)
	prices = sync.OnceValues(func() (azurevm.Prices, error) { return azurevm.StaticPrices("eastus") })
)

// skus are the sizes of the region, each of a family of its own.
func skus(t *testing.T) []azurevm.SKU {
	t.Helper()
	all, err := sizes()
	must(t, err)
	var out []azurevm.SKU
	for _, sku := range azurevm.Offered(all, "eastus") {
		if slices.Contains([]string{"Standard_D16plds_v5", "Standard_D2as_v6", "Standard_D4s_v3", "Standard_E8s_v3", "Standard_F16s_v2"}, sku.Name) {
			sku.RestrictedZones, sku.LowPriority = nil, true
			out = append(out, sku)
		}
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRegion(t *testing.T) *region {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, v1.AddToScheme(scheme))
	must(t, v1beta1.AddToScheme(scheme))
	must(t, corev1.AddToScheme(scheme))
	clock := clocktesting.NewFakeClock(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	r := &region{
		t: t, clock: clock, cluster: "prod", facts: map[string]*instancetype.Facts{}, short: &shortage.Log{},
		settings: azurefake.Config{
			Clock: clock, Subscription: "sub", ResourceGroup: "Shop", Cluster: "prod", NodeGroup: "MC_Shop_prod_eastus", Region: "eastus",
			Pools: map[string]string{machinePool: "Machines", "system": "System"}, SKUs: skus(t),
			Subnets: []string{subnet, otherSubnet}, ImageVersions: []string{"202607.9.0", "202607.10.0"},
		},
		api: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.NodeClaim{}, &v1beta1.AKSNodeClass{}).Build(),
	}
	r.settings.Record = func(e azurefake.Entry) { r.entries = append(r.entries, e) }
	r.azure = azurefake.New(r.settings)
	for _, sku := range skus(t) {
		facts, err := instancetype.NewFacts(sku, nil)
		must(t, err)
		r.facts[sku.Name] = facts
	}
	var err error
	r.prices, err = prices()
	must(t, err)
	r.pool = &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool"}}
	r.pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: v1beta1.Group, Kind: v1beta1.Kind, Name: "default"}
	must(t, r.api.Create(t.Context(), r.pool))
	r.class(func(*v1beta1.AKSNodeClass) {})
	r.restart()
	return r
}

// restart forgets what the process knows.
func (r *region) restart() {
	r.t.Helper()
	r.registry = prometheus.NewRegistry()
	options := r.azure.Options()
	if r.through != nil {
		options.Transport = r.through(options.Transport)
	}
	services, err := azureclient.New("sub", r.azure.Credential(), options)
	must(r.t, err)
	var machines *machine.Machines
	var vms *vm.VMs
	if r.own == nil || r.managed || r.before {
		machines = machine.New(machine.Config{Machines: services.Machines, Pools: services.Pools, ResourceGroup: "Shop", Cluster: "prod", Pool: machinePool, Region: "eastus", Clock: r.clock, Batching: r.batching})
	}
	if r.own != nil {
		own := *r.own
		own.Machines, own.Extensions, own.Interfaces, own.Balancers = services.VirtualMachines, services.Extensions, services.Interfaces, services.Balancers
		own.Groups, own.Graph = services.SecurityGroups, services.Graph
		vms = vm.New(own)
	}
	r.Provider = New(Config{
		Client: r.api, Clock: r.clock, Cluster: r.cluster, Region: "eastus", Shortages: r.short, Metrics: NewMetrics(r.registry),
		Machines: machines, VMs: vms, NewVMs: !r.before && r.own != nil,
		Types: r.types,
		Facts: func(size string) *instancetype.Facts { return r.facts[size] },
		Disrupted: func(_ context.Context, claim *v1.NodeClaim, reason string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.disrupted = append(r.disrupted, claim.Name+" "+reason)
		},
		Event: func(object client.Object, eventType, reason, message string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, eventType+" "+reason+" "+object.GetName()+": "+message)
		},
	})
}

// types are the instance types of a class.
func (r *region) types(_ context.Context, class *v1beta1.AKSNodeClass) ([]*cloud.InstanceType, error) {
	of := instancetype.NewClass(class, kubernetesVersion)
	cluster := &instancetype.Cluster{Region: "eastus", NodeResourceGroup: "MC_Shop_prod_eastus", MemoryOverhead: 0.075, NetworkPlugin: "azure", NetworkPluginMode: "overlay"}
	now := r.clock.Now()
	market := &instancetype.Market{
		OnDemand: r.prices.OnDemand, Spot: r.prices.OnDemand,
		Short: func(sku *azurevm.SKU, zone, capacityType string) bool {
			return r.short.Short(sku, zone, capacityType, now)
		},
	}
	var out []*cloud.InstanceType
	for _, sku := range skus(r.t) {
		if facts := r.facts[sku.Name]; facts != nil && instancetype.Supported(facts, &of) {
			out = append(out, instancetype.New(facts, &of, cluster, market))
		}
	}
	return out, nil
}

// class makes the class, or what change makes of it, ready.
func (r *region) class(change func(*v1beta1.AKSNodeClass)) {
	r.t.Helper()
	class := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class", Generation: 1}}
	class.Spec.ImageFamily, class.Spec.OSDiskSizeGB = new("Ubuntu"), new(int32(128))
	existing := &v1beta1.AKSNodeClass{}
	exists := r.api.Get(r.t.Context(), client.ObjectKeyFromObject(class), existing) == nil
	if exists {
		class = existing
	}
	set := class.StatusConditions(r.clock.Now())
	for _, condition := range []string{
		v1beta1.KubernetesVersionReadyCondition, v1beta1.ImagesReadyCondition, v1beta1.SubnetsReadyCondition,
		v1beta1.ValidationSucceededCondition, v1beta1.LocalDNSReadyCondition,
	} {
		set.SetTrue(condition)
	}
	class.Status.KubernetesVersion = new(kubernetesVersion)
	class.Status.Images = r.images(r.own != nil)
	class.Annotations = map[string]string{v1beta1.HashAnnotationKey: class.Hash(), v1beta1.HashVersionAnnotationKey: v1beta1.HashVersion}
	change(class)
	status := class.Status
	if exists {
		must(r.t, r.api.Update(r.t.Context(), class))
	} else {
		must(r.t, r.api.Create(r.t.Context(), class))
	}
	class.Status = status
	must(r.t, r.api.Status().Update(r.t.Context(), class))
}

// images are those of the class for VMs, or for AKS machines.
func (r *region) images(vms bool) []v1beta1.NodeImage {
	var out []v1beta1.NodeImage
	for _, d := range image.Of(&v1beta1.AKSNodeClass{}, kubernetesVersion).Definitions() {
		id := d.SharedID("sig", "202607.10.0")
		if vms {
			id = d.CommunityID("202607.10.0")
		}
		out = append(out, d.Node(id))
	}
	return out
}

// store creates or updates a claim.
func (r *region) store(claim *v1.NodeClaim) {
	r.t.Helper()
	stored := &v1.NodeClaim{}
	out := claim.DeepCopy()
	if r.api.Get(r.t.Context(), client.ObjectKeyFromObject(claim), stored) != nil {
		out.ResourceVersion = ""
		must(r.t, r.api.Create(r.t.Context(), out))
		out.Status = claim.Status
		must(r.t, r.api.Status().Update(r.t.Context(), out))
		return
	}
	out.ResourceVersion = stored.ResourceVersion
	must(r.t, r.api.Update(r.t.Context(), out))
	out.Status = claim.Status
	must(r.t, r.api.Status().Update(r.t.Context(), out))
}

// claim returns a stored claim of the pool.
func (r *region) claim(name string, requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodeClaim {
	r.t.Helper()
	out := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{v1.NodePoolLabelKey: "default"}},
		Spec:       v1.NodeClaimSpec{Requirements: requirements, NodeClassRef: r.pool.Spec.Template.Spec.NodeClassRef},
	}
	r.store(out)
	return out
}

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// launch creates the claim's machine and records it.
func (r *region) launch(claim *v1.NodeClaim) *cloud.Machine {
	r.t.Helper()
	m, err := r.Create(r.t.Context(), claim)
	must(r.t, err)
	claim.Status.ProviderID, claim.Status.ImageID = m.ProviderID, m.ImageID
	claim.Annotations = m.Annotations
	r.store(claim)
	return m
}

// place is an offering of the size as the cloud names it.
func place(size, zone, capacityType string) azurefake.Place {
	return azurefake.Place{Size: size, Zone: instancetype.ZoneNumber(zone), Spot: capacityType == model.Spot}
}
