// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azurevm"
	"karpenter/cloud/kwok"
	"karpenter/model"
)

// newAzureCatalogue returns the VM sizes of Azure with the prices of the region, or
// of eastus if there are none, and with the prices given by size. Sizes are those of
// a class that leaves everything to its defaults, without their OS disks, which the
// nodes that are compared have too.
func newAzureCatalogue(region string, given map[string]float64) (*catalogue, error) {
	prices, err := azurevm.StaticPrices(region)
	if err != nil {
		return nil, err
	}
	sizes, err := azurevm.Sizes()
	if err != nil {
		return nil, err
	}
	c := &catalogue{region: prices.Region, date: prices.Date, onDemand: map[string]float64{}, sizes: map[string]*instancetype.Facts{}}
	for size, price := range prices.OnDemand {
		c.onDemand[size] = price.Dollars()
	}
	maps.Copy(c.onDemand, given)
	cluster := &instancetype.Cluster{Region: prices.Region, MemoryOverhead: memoryOverhead, NetworkPlugin: "azure", NetworkPluginMode: "overlay"}
	class := instancetype.NewClass(&v1beta1.AKSNodeClass{}, "")
	gpus := azurevm.Registry(sizes)
	skus := azurevm.Offered(sizes, prices.Region)
	if len(skus) == 0 {
		skus = azurevm.Offered(sizes, defaultAzureRegion)
	}
	for _, sku := range skus {
		facts, err := instancetype.NewFacts(sku, gpus)
		if err != nil || !instancetype.Supported(facts, &class) {
			continue // Karpenter launches none of them
		}
		c.sizes[sku.Name] = facts
		c.entries = append(c.entries, azureEntry(facts, &class, cluster))
	}
	return c, nil
}

// defaultAzureRegion is whose sizes stand in for those of a region that is not
// embedded.
const defaultAzureRegion = "eastus"

// memoryOverhead is the share of memory that nodes do not see, as the provider's
// setting has it by default.
const memoryOverhead = 0.075

func azureEntry(facts *instancetype.Facts, class *instancetype.Class, cluster *instancetype.Cluster) kwok.Entry {
	t := instancetype.New(facts, class, cluster, &instancetype.Market{})
	out := kwok.Entry{
		Name: t.Name, Architecture: facts.Arch, OperatingSystems: []corev1.OSName{corev1.Linux},
		Resources: corev1.ResourceList{}, Overhead: corev1.ResourceList{},
	}
	left := t.Allocatable()
	for name, capacity := range t.Capacity {
		if capacity.Sign() <= 0 {
			continue
		}
		rest := capacity.DeepCopy()
		rest.Sub(left[name])
		out.Resources[name], out.Overhead[name] = capacity.DeepCopy(), rest
	}
	ofOfferings := []string{model.LabelInstanceType, model.LabelZone, model.LabelCapacityType, corev1.LabelTopologyRegion, corev1.LabelArchStable, corev1.LabelOSStable}
	for _, r := range t.Requirements {
		if value, single := t.Requirements.Value(r.Key); single && !slices.Contains(ofOfferings, r.Key) {
			out.Requirements = append(out.Requirements, kwok.In(r.Key, value))
		}
	}
	return out
}

// offerAzure returns the entries that a plan may use: of the families D, E and F and
// those of the nodes, sizes of the fourth version and later, and with GPUs only if
// nodes have some; and the sizes of the nodes.
func (c *catalogue) offerAzure(nodes []*node) []kwok.Entry {
	families, have, gpus := map[string]bool{"D": true, "E": true, "F": true}, map[string]bool{}, false
	for _, n := range nodes {
		if facts := c.sizes[n.instanceType]; facts != nil {
			families[facts.Parts.Family] = true
			have[n.instanceType], gpus = true, gpus || facts.GPU != nil
		}
	}
	var out []kwok.Entry
	for _, e := range c.entries {
		facts := c.sizes[e.Name]
		fits := families[facts.Parts.Family] && facts.Parts.Version >= currentAzure && (gpus || facts.GPU == nil)
		if _, priced := c.onDemand[e.Name]; priced && (fits || have[e.Name]) {
			out = append(out, e)
		}
	}
	return out
}

// currentAzure is the oldest version of sizes that is worth launching.
const currentAzure = "4"
