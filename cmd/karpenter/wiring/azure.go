// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud/azure"
	"karpenter/cloud/azure/bootstrap"
	"karpenter/cloud/azure/catalogue"
	azureclient "karpenter/cloud/azure/client"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/machine"
	"karpenter/cloud/azure/nodeclass"
	"karpenter/cloud/azure/retail"
	"karpenter/cloud/azure/shortage"
	"karpenter/cloud/azure/token"
	"karpenter/cloud/azure/vm"
	"karpenter/cloud/azurevm"
	"karpenter/cloud/batch"
	"karpenter/cloud/loop"
	"karpenter/cmd/karpenter/config"
	"karpenter/kube/events"
	"karpenter/kube/meter"
)

// Microsoft is what the provider for AKS gets from the process beside its Supplies.
type Microsoft struct {
	Services  *azureclient.Azure
	Discovery discovery.ServerVersionInterface
	PriceList string // URL; "" = there is none, so built-in prices are used
	CABundle  string // by which this process trusts the API server: base64 of PEM
}

// tokenPeriod is how often bootstrap tokens are looked after.
const tokenPeriod = time.Minute

// priceListTimeout is how long one page of the price list may take.
const priceListTimeout = time.Minute

// microsoft is the provider for AKS in the making.
type microsoft struct {
	Supplies
	Microsoft

	shortages *shortage.Log
	types     *catalogue.Catalogue
	tokens    *token.Keeper // nil = AKS has its machines join
	provider  *azure.Provider
}

// Azure makes the provider for AKS. It asks Azure for what nothing can do without:
// the VM sizes.
func Azure(ctx context.Context, from Microsoft, s Supplies) (Provider, error) {
	m := &microsoft{Supplies: s, Microsoft: from, shortages: &shortage.Log{}}
	if err := m.sells(ctx); err != nil {
		return Provider{}, err
	}
	with := azure.Config{
		Client: m.Manager.GetClient(), Clock: m.Clock, Cluster: m.Config.ClusterName, Region: m.Config.Azure.Region, Tags: m.Config.Azure.Tags,
		Types: m.types.Types, Facts: m.types.Facts, Shortages: m.shortages, Overlay: m.Overlay, Event: m.tell, Disrupted: m.Disrupted, Additional: m.Additional,
		Metrics: azure.NewMetrics(m.Registry),
	}
	if !m.ownVMs() || m.Config.Azure.ManageMachines {
		with.Machines = m.machines()
	}
	vms := m.virtualMachines()
	if with.NewVMs = m.ownVMs(); with.NewVMs {
		if err := m.prepare(ctx, &vms); err != nil {
			return Provider{}, err
		}
	}
	with.VMs = vm.New(vms)
	m.provider = azure.New(with)
	return Provider{Provider: m.provider, Labels: v1beta1.Labels(), Kubelet: m.provider.Kubelet, Register: m.register}, nil
}

// ownVMs reports whether Karpenter makes virtual machines itself.
func (m *microsoft) ownVMs() bool { return m.Config.Azure.Mode == config.ModeVMs }

// machines are those of AKS.
func (m *microsoft) machines() *machine.Machines {
	c := &m.Config.Azure
	return machine.New(machine.Config{
		Machines: m.Services.Machines, Pools: m.Services.Pools,
		ResourceGroup: c.ResourceGroup, Cluster: m.Config.ClusterName, Pool: c.Pool, Region: c.Region, Clock: m.Clock, Batching: m.batching(),
	})
}

// virtualMachines are those that Karpenter makes itself, or has made before the mode was
// another one.
func (m *microsoft) virtualMachines() vm.Config {
	c := &m.Config.Azure
	return vm.Config{
		Machines: m.Services.VirtualMachines, Extensions: m.Services.Extensions, Interfaces: m.Services.Interfaces, Balancers: m.Services.Balancers,
		Groups: m.Services.SecurityGroups, Graph: m.Services.Graph, Clock: m.Clock,
		Subscription: c.Subscription, NodeResourceGroup: c.NodeResourceGroup, Region: c.Region, Subnet: c.Subnet,
		Identities: c.NodeIdentities, DiskEncryptionSet: c.DiskEncryptionSet, Billed: c.EnvironmentFile == "",
	}
}

// prepare adds what launches of virtual machines need.
func (m *microsoft) prepare(ctx context.Context, vms *vm.Config) error {
	c := &m.Config.Azure
	server, err := url.Parse(m.Config.ClusterEndpoint)
	if err != nil {
		return fmt.Errorf("cluster-endpoint: %w", err)
	}
	dns, err := m.dns(ctx)
	if err != nil {
		return err
	}
	guid := c.NetworkGUID
	if guid == "" && c.NetworkPlugin == "azure" && c.NetworkPluginMode == "overlay" {
		if guid, err = m.Services.NetworkGUID(ctx, c.Subnet); err != nil {
			return err
		}
	}
	tenant := c.Tenant
	if tenant == "" {
		if tenant, err = m.Services.Tenant(ctx); err != nil {
			return err
		}
	}
	m.tokens = token.New(token.Config{
		Live: m.Manager.GetAPIReader(), Client: m.Manager.GetClient(), Clock: m.Clock, Fixed: c.BootstrapToken,
		Warn: func(message string) { m.Manager.GetLogger().Info(message) },
	})
	vms.SSHKey, vms.Token = c.SSHKey, m.tokens.Token
	vms.Cluster = bootstrap.Cluster{
		APIServer: server.Hostname(), Authority: cmp.Or(m.Config.AWS.ClusterCABundle, m.CABundle), Tenant: tenant, Subscription: c.Subscription,
		NodeResourceGroup: c.NodeResourceGroup, Region: c.Region, Cloud: c.Cloud, KubeletIdentity: c.KubeletIdentity, AdminUser: c.AdminUser,
		NetworkPlugin: c.NetworkPlugin, NetworkPluginMode: c.NetworkPluginMode, NetworkDataplane: c.NetworkDataplane, NetworkPolicy: c.NetworkPolicy,
		NetworkGUID: guid, DNSServiceIP: dns,
	}
	return nil
}

// usualDNS is the address of the DNS of most AKS clusters.
const usualDNS = "10.0.0.10"

// dns returns the address of the cluster's DNS.
func (m *microsoft) dns(ctx context.Context) (string, error) {
	if own := m.Config.Azure.DNSServiceIP; own != "" {
		return own, nil
	}
	service := &corev1.Service{}
	err := m.Manager.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-dns"}, service)
	if apierrors.IsNotFound(err) {
		return usualDNS, nil
	}
	if err != nil {
		return "", fmt.Errorf("read the address of the cluster's DNS, or set DNS_SERVICE_IP: %w", err)
	}
	return service.Spec.ClusterIP, nil
}

// batching says how requests for machines are joined, nil if they are not.
func (m *microsoft) batching() *machine.Batching {
	c := &m.Config.Azure
	if c.Mode != config.ModeMachinesBatched {
		return nil
	}
	return &machine.Batching{Idle: c.BatchIdle, Most: c.BatchMost, Items: c.BatchItems, Metrics: batch.NewMetrics(m.Registry, meter.DurationBuckets())}
}

// sells makes the catalogue of instance types, and fills it.
func (m *microsoft) sells(ctx context.Context) error {
	c := &m.Config.Azure
	sizes, err := azurevm.Sizes()
	if err != nil {
		return err
	}
	prices, err := azurevm.StaticPrices(c.Region)
	if err != nil {
		return err
	}
	with := catalogue.Config{
		Clock: m.Clock, GPUs: azurevm.Registry(sizes), Shortages: m.shortages, Start: prices,
		Cluster: instancetype.Cluster{
			Region: c.Region, NodeResourceGroup: c.NodeResourceGroup, MemoryOverhead: m.Config.VMMemoryOverheadPercent,
			NetworkPlugin: c.NetworkPlugin, NetworkPluginMode: c.NetworkPluginMode, UltraSSD: m.ownVMs(),
		},
		SKUs:   func(ctx context.Context) ([]azurevm.SKU, error) { return m.Services.SKUs(ctx, c.Region) },
		Usages: func(ctx context.Context) (map[string]catalogue.Usage, error) { return m.Services.Usages(ctx, c.Region) },
	}
	if m.PriceList != "" {
		anyone := &http.Client{Timeout: priceListTimeout}
		with.Prices = func(ctx context.Context) (retail.Prices, error) {
			return retail.Fetch(ctx, anyone, m.PriceList, c.Region)
		}
	}
	m.types = catalogue.New(with)
	return m.types.RefreshSKUs(ctx)
}

// register adds the provider's controllers to the manager.
func (m *microsoft) register(mgr ctrl.Manager) error {
	c := &m.Config.Azure
	options := controller.Options{MaxConcurrentReconciles: nodeclass.Workers}
	with := nodeclass.Config{
		Client: mgr.GetClient(), Clock: m.Clock,
		Event: func(class *v1beta1.AKSNodeClass, eventType, reason, message string) {
			m.tell(class, eventType, reason, message)
		},
		Subnet: c.Subnet, NodeResourceGroup: c.NodeResourceGroup, NetworkPlugin: c.NetworkPlugin, SharedImages: c.SharedGalleries,
		Version: m.version, Window: m.window, CheckSubnet: m.Services.CheckSubnet,
		Newest: func(ctx context.Context, wanted image.Wanted) ([]v1beta1.NodeImage, error) {
			return m.Services.Images(ctx, c.Region, c.GallerySubscription, wanted)
		},
	}
	var renewal error
	if m.ownVMs() {
		with.Unsupported = vm.Unsupported
		with.Newest = func(ctx context.Context, wanted image.Wanted) ([]v1beta1.NodeImage, error) {
			return m.Services.CommunityImages(ctx, c.Region, wanted)
		}
		renewal = loop.Every(mgr, "bootstraptoken", tokenPeriod, m.tokens.Renew)
	}
	if c.DiskEncryptionSet != "" {
		with.DiskEncryptionSet = func(ctx context.Context) error {
			return m.Services.CheckEncryptionSet(ctx, c.DiskEncryptionSet)
		}
	}
	return errors.Join(
		renewal,
		m.types.Register(mgr),
		m.provider.Register(mgr),
		(&nodeclass.Reconciler{Config: with}).Register(mgr, options),
		(&nodeclass.Hash{Client: mgr.GetClient()}).Register(mgr, options),
	)
}

// version returns the version of the API server.
func (m *microsoft) version(context.Context) (string, error) {
	info, err := m.Discovery.ServerVersion()
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

// window returns what AKS announces of maintenance, nil if nothing.
func (m *microsoft) window(ctx context.Context) (map[string]string, error) {
	announced := &corev1.ConfigMap{}
	err := m.Manager.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: m.Config.SystemNamespace, Name: image.WindowConfigMap}, announced)
	if apierrors.IsNotFound(err) || m.Config.SystemNamespace == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", image.WindowConfigMap, err)
	}
	return announced.Data, nil
}

func (m *microsoft) tell(object client.Object, eventType, reason, message string) {
	m.Recorder.Publish(events.Event{Object: object, Type: eventType, Reason: reason, Message: message})
}
