// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/cloud/azurevm"
)

// aks is an AKS cluster with half-empty nodes of one size.
func aks(size string, nodes int) *Cluster {
	c := &Cluster{}
	room := corev1.ResourceList{"cpu": resource.MustParse("7820m"), "memory": resource.MustParse("27Gi"), "pods": resource.MustParse("250")}
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("aks-nodes-%d", i), Labels: map[string]string{
			corev1.LabelInstanceTypeStable: size, corev1.LabelTopologyRegion: "westeurope", corev1.LabelTopologyZone: "westeurope-1",
			corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}}}
		n.Spec.ProviderID = "azure:///subscriptions/s/resourceGroups/mc/providers/Microsoft.Compute/virtualMachines/" + n.Name
		n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("250")}
		n.Status.Allocatable = room
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Namespace: "shop"}}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)}}
		p.Spec.NodeName = n.Name
		p.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("4Gi")},
		}}}
		p.Status.Phase = corev1.PodRunning
		c.Nodes, c.Pods = append(c.Nodes, n), append(c.Pods, p)
	}
	return c
}

// TestSavingsOnAzure: nodes of AKS are priced by the built-in list of their region,
// and the plan may use other sizes.
func TestSavingsOnAzure(t *testing.T) {
	prices, err := azurevm.StaticPrices("westeurope")
	if err != nil {
		t.Fatal(err)
	}
	const nodes = 4
	r := report(t, aks("Standard_D8s_v5", nodes), options())
	if want := nodes * prices.OnDemand["Standard_D8s_v5"].Dollars(); math.Abs(r.Now.Cost-want) > 1e-9 || len(r.Now.Unpriced) != 0 {
		t.Errorf("the nodes cost %v, want %v; without a price: %v", r.Now.Cost, want, r.Now.Unpriced)
	}
	if r.Provider != "azure" || r.PriceRegion != prices.Region || r.PriceDate != prices.Date {
		t.Errorf("provider %s, prices of %s on %s", r.Provider, r.PriceRegion, r.PriceDate)
	}
	if len(r.Plans) != 3 {
		t.Fatalf("%d plans", len(r.Plans))
	}
	for _, p := range r.Plans {
		if p.Unplaced > 0 || p.Cost <= 0 || p.Cost >= r.Now.Cost*0.75 {
			t.Errorf("plan %s costs %v of %v, without a place are %d", p.Name, p.Cost, r.Now.Cost, p.Unplaced)
		}
		for _, b := range p.Buy {
			if b.InstanceType == "" || prices.OnDemand[b.InstanceType] == 0 {
				t.Errorf("plan %s launches %q", p.Name, b.InstanceType)
			}
		}
	}
}
