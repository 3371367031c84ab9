// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"slices"
	"sync"
	"testing"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azurevm"
)

// data is what the program knows of sizes, read once.
var data = sync.OnceValues(azurevm.Sizes)

func sizes(t testing.TB) []azurevm.Size {
	t.Helper()
	all, err := data()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func gpus(t testing.TB) azurevm.GPUs { return azurevm.Registry(sizes(t)) }

// skuOf returns the size in the region that knows most of it.
func skuOf(t testing.TB, name string) azurevm.SKU {
	t.Helper()
	all := sizes(t)
	i := slices.IndexFunc(all, func(s azurevm.Size) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("%s is not known", name)
	}
	for _, region := range []string{"eastus", "southcentralus", "westcentralus", "polandcentral"} {
		if sku, ok := all[i].In(region); ok {
			// Restrictions are those of one subscription, years ago.
			sku.Restricted, sku.RestrictedZones = false, nil
			return sku
		}
	}
	t.Fatalf("%s is offered nowhere", name)
	return azurevm.SKU{}
}

func factsOf(t testing.TB, sku azurevm.SKU) *instancetype.Facts {
	t.Helper()
	facts, err := instancetype.NewFacts(sku, gpus(t))
	if err != nil {
		t.Fatal(err)
	}
	return facts
}

func eastus() *instancetype.Cluster {
	return &instancetype.Cluster{
		Region: "eastus", NodeResourceGroup: "MC_shop_prod_eastus",
		MemoryOverhead: 0.075, NetworkPlugin: "azure", NetworkPluginMode: "overlay", UltraSSD: true,
	}
}

// class returns a class as the API server stores it, changed.
func class(change func(*v1beta1.AKSNodeClass), kubernetes string) *instancetype.Class {
	c := &v1beta1.AKSNodeClass{}
	c.Spec.ImageFamily, c.Spec.OSDiskSizeGB = new("Ubuntu"), new(int32(128))
	if change != nil {
		change(c)
	}
	out := instancetype.NewClass(c, kubernetes)
	return &out
}

// typeOf returns the type of a plain class.
func typeOf(t testing.TB, sku azurevm.SKU) *cloud.InstanceType {
	t.Helper()
	return instancetype.New(factsOf(t, sku), class(nil, "1.33.4"), eastus(), &instancetype.Market{})
}

// label returns the values of a type's label, or nil.
func label(it *cloud.InstanceType, key string) []string {
	r, _ := it.Requirements.Get(key)
	return r.Values
}

func offering(t testing.TB, it *cloud.InstanceType, zone, capacityType string) *cloud.Offering {
	t.Helper()
	for i := range it.Offerings {
		if o := &it.Offerings[i]; o.Zone() == zone && o.CapacityType() == capacityType {
			return o
		}
	}
	t.Fatalf("%s has no offering in %s, %s", it.Name, zone, capacityType)
	return nil
}

func places(it *cloud.InstanceType) []string {
	var out []string
	for i := range it.Offerings {
		out = append(out, it.Offerings[i].Zone()+" "+it.Offerings[i].CapacityType())
	}
	slices.Sort(out)
	return out
}
