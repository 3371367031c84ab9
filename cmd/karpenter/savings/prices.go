// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/ec2"
	"karpenter/cloud/kwok"
)

// PricesOf is the day of the embedded on-demand prices of EC2.
const PricesOf = "2026-07-20"

// defaultRegion is the region whose prices stand in for those of a region that is
// not embedded.
const defaultRegion = "us-east-1"

// catalogue is the instance types that a plan can use, and what types cost.
type catalogue struct {
	region   string // that the prices are of
	date     string // of the prices
	onDemand map[string]float64
	types    map[string]ec2.Type
	sizes    map[string]*instancetype.Facts // of Azure; nil = it is EC2's catalogue
	entries  []kwok.Entry
}

// newCatalogue returns the instance types of EC2 with the prices of the region, or
// of the default region if there are none, and with the prices given by type.
func newCatalogue(region string, given map[string]float64) (*catalogue, error) {
	regions, err := ec2.Regions()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(regions, region) {
		region = defaultRegion
	}
	all, err := ec2.Types()
	if err != nil {
		return nil, err
	}
	c := &catalogue{region: region, date: PricesOf, onDemand: map[string]float64{}, types: map[string]ec2.Type{}}
	for _, t := range all {
		c.types[t.Name] = t
		if price, ok := t.OnDemand[region]; ok {
			c.onDemand[t.Name] = price
		}
	}
	maps.Copy(c.onDemand, given)
	c.entries, err = ec2.KWOKTypes(region)
	return c, err
}

// offer returns the types that a plan may use, in the zones, on demand and as Spot.
// Of EC2 these are the current ones of the categories, and any of the accelerated
// families of the nodes, without bare metal and without sizes that the kubelet and
// DaemonSets nearly fill, unless the cluster has nodes of them; of another cloud those of its own nodes whose price is given.
func (c *catalogue) offer(nodes []*node, zones []string, discount float64) []kwok.Entry {
	categories, tiny := map[string]bool{"c": true, "m": true, "r": true}, map[string]bool{"nano": true, "micro": true, "small": true}
	accelerated := map[string]bool{} // families of nodes with GPUs or accelerators
	for _, n := range nodes {
		if t, known := c.types[n.instanceType]; known {
			categories[t.Category] = true
			delete(tiny, t.Size)
			accelerated[t.Family] = t.GPU != nil || t.Accelerator != nil
		}
	}
	var out []kwok.Entry
	add := func(e kwok.Entry, price float64) {
		e.Offerings = nil
		for _, zone := range zones {
			e.Offerings = append(e.Offerings, kwok.NewOffering(zone, v1.CapacityTypeOnDemand, price),
				kwok.NewOffering(zone, v1.CapacityTypeSpot, price*(1-discount)))
		}
		out = append(out, e)
	}
	if !c.sells(nodes) {
		seen := map[string]bool{}
		for _, n := range nodes {
			if price, ok := c.onDemand[n.instanceType]; ok && !seen[n.instanceType] {
				seen[n.instanceType] = true
				add(entryOf(n), price)
			}
		}
		return out
	}
	if c.sizes != nil {
		for _, e := range c.offerAzure(nodes) {
			add(e, c.onDemand[e.Name])
		}
		return out
	}
	for _, e := range c.entries {
		t := c.types[e.Name]
		price, priced := c.onDemand[e.Name]
		if priced && categories[t.Category] && (current(t) || accelerated[t.Family]) && !t.Metal && !tiny[t.Size] && t.Source == "" {
			add(withoutRegion(e), price)
		}
	}
	return out
}

// current reports whether the type is of a generation that is worth launching. Of
// burstable types for amd64, that is the third, which has no successor.
func current(t ec2.Type) bool { return t.Generation >= 4 || t.Category == "t" && t.Generation == 3 }

// devices returns the models of the GPUs and accelerators of the type; "" = none.
func (c *catalogue) devices(instanceType string) (gpu, accelerator string) {
	t := c.types[instanceType]
	if facts := c.sizes[instanceType]; facts != nil && facts.GPU != nil {
		return facts.Parts.Accelerator, ""
	}
	if t.GPU != nil {
		gpu = t.GPU.Name
	}
	if t.Accelerator != nil {
		accelerator = t.Accelerator.Name
	}
	return gpu, accelerator
}

// sells reports whether the catalogue has the instance type of any of the
// nodes.
func (c *catalogue) sells(nodes []*node) bool {
	return slices.ContainsFunc(nodes, func(n *node) bool {
		_, known := c.types[n.instanceType]
		return known || c.sizes[n.instanceType] != nil
	})
}

// withoutRegion returns the entry without the label of the region, since the
// cluster's may be another than that of the prices.
func withoutRegion(e kwok.Entry) kwok.Entry {
	e.Requirements = slices.DeleteFunc(slices.Clone(e.Requirements), func(r kwok.RequirementEntry) bool { return r.Key == corev1.LabelTopologyRegion })
	return e
}

// entryOf returns the type of a node that EC2 does not have, as the node says.
func entryOf(n *node) kwok.Entry {
	e := kwok.Entry{
		Name: n.instanceType, Architecture: n.arch, OperatingSystems: []corev1.OSName{corev1.Linux},
		Resources: n.Status.Capacity.DeepCopy(), Overhead: corev1.ResourceList{},
	}
	for name, capacity := range n.Status.Capacity {
		rest := capacity.DeepCopy()
		rest.Sub(n.Status.Allocatable[name])
		if rest.Sign() >= 0 {
			e.Overhead[name] = rest
		}
	}
	if _, ok := e.Overhead[corev1.ResourceCPU]; !ok {
		e.Overhead[corev1.ResourceCPU] = resource.MustParse("0")
	}
	return e
}
