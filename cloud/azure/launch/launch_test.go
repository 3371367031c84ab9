// SPDX-License-Identifier: Apache-2.0

package launch_test

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/launch"
	"karpenter/cloud/azurevm"
	"karpenter/model"
)

// size is an instance type at a price, in cents, on demand and as spot.
func size(t *testing.T, name string, onDemand, spot float64, short func(zone, capacityType string) bool) *cloud.InstanceType {
	t.Helper()
	sku := azurevm.SKU{Name: name, VCPUs: 4, MemoryGiB: 16, Arch: "amd64", LowPriority: true, Zones: []string{"1", "2", "3"}, HyperVGenerations: []string{"V2"}}
	facts, err := instancetype.NewFacts(sku, nil)
	if err != nil {
		t.Fatal(err)
	}
	class := instancetype.NewClass(&v1beta1.AKSNodeClass{}, "1.33.4")
	cluster := &instancetype.Cluster{Region: "eastus", NetworkPlugin: "none"}
	market := &instancetype.Market{
		OnDemand: map[string]model.Price{name: azurevm.Price(onDemand / 100)},
		Spot:     map[string]model.Price{name: azurevm.Price(spot / 100)},
		Short: func(_ *azurevm.SKU, zone, capacityType string) bool {
			return short != nil && short(zone, capacityType)
		},
	}
	return instancetype.New(facts, &class, cluster, market)
}

func claim(uid string, requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodeClaim {
	return &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "default-" + uid, UID: types.UID(uid)},
		Spec:       v1.NodeClaimSpec{Requirements: requirements},
	}
}

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func choose(t *testing.T, types []*cloud.InstanceType, c *v1.NodeClaim) string {
	t.Helper()
	got, err := launch.Choose(types, c)
	if err != nil {
		t.Fatal(err)
	}
	return got.Type.Name + " " + got.Offering.Zone() + " " + got.Offering.CapacityType()
}

// TestChooseAtEqualPrices covers spec 71/43: spot, then zones, each of which is
// used.
func TestChooseAtEqualPrices(t *testing.T) {
	d4, e4 := size(t, "Standard_D4s_v3", 10, 10, nil), size(t, "Standard_E4s_v3", 10, 10, nil)
	zones := map[string]int{}
	for i := range 300 {
		c := claim(fmt.Sprint("uid-", i))
		got := choose(t, []*cloud.InstanceType{e4, d4}, c)
		zones[got]++
		if again := choose(t, []*cloud.InstanceType{d4, e4}, c); again != got {
			t.Errorf("a repeated launch chooses %s, not %s", again, got)
		}
	}
	for _, zone := range []string{"eastus-1", "eastus-2", "eastus-3"} {
		if n := zones["Standard_D4s_v3 "+zone+" spot"]; n < 60 {
			t.Errorf("%s is chosen %d times", zone, n)
		}
	}
	if len(zones) != 3 {
		t.Errorf("choices are %v", zones)
	}
	zonal := size(t, "Standard_D4s_v3", 10, 10, func(_, capacityType string) bool { return capacityType == "spot" })
	if got := choose(t, []*cloud.InstanceType{zonal}, claim("a")); got == "Standard_D4s_v3 0 on-demand" {
		t.Errorf("chosen: %s, though zones have capacity", got)
	}
	regional := size(t, "Standard_D4s_v3", 10, 10, func(zone, _ string) bool { return zone != "0" })
	if got := choose(t, []*cloud.InstanceType{regional}, claim("a")); got != "Standard_D4s_v3 0 spot" {
		t.Errorf("chosen: %s", got)
	}
	// Spot regional comes before on demand in a zone.
	mixed := size(t, "Standard_D4s_v3", 10, 10, func(zone, capacityType string) bool { return capacityType == "spot" && zone != "0" })
	if got := choose(t, []*cloud.InstanceType{mixed}, claim("a")); got != "Standard_D4s_v3 0 spot" {
		t.Errorf("chosen: %s", got)
	}
}

// TestChooseCheapest covers spec 71/44.
func TestChooseCheapest(t *testing.T) {
	dear, cheap := size(t, "Standard_D4s_v3", 50, 30, nil), size(t, "Standard_E4s_v3", 20, 40, nil)
	both := in(model.LabelCapacityType, "spot", "on-demand")
	c := claim("a", both, in(model.LabelZone, "eastus-2"))
	if got := choose(t, []*cloud.InstanceType{dear, cheap}, c); got != "Standard_E4s_v3 eastus-2 on-demand" {
		t.Errorf("chosen: %s", got)
	}
	c = claim("a", in(model.LabelCapacityType, "spot"), in(model.LabelZone, "eastus-2"))
	if got := choose(t, []*cloud.InstanceType{dear, cheap}, c); got != "Standard_D4s_v3 eastus-2 spot" {
		t.Errorf("chosen: %s", got)
	}
}

// TestChooseNothing covers the decision of spec 71/45: without an offering there
// is no launch.
func TestChooseNothing(t *testing.T) {
	sold := size(t, "Standard_D4s_v3", 10, 10, func(string, string) bool { return true })
	open := size(t, "Standard_D4s_v3", 10, 10, nil)
	large := claim("a")
	large.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	for name, c := range map[string]struct {
		types []*cloud.InstanceType
		claim *v1.NodeClaim
	}{
		"no types":    {nil, claim("a")},
		"all short":   {[]*cloud.InstanceType{sold}, claim("a")},
		"other arch":  {[]*cloud.InstanceType{open}, claim("a", in(model.LabelArch, "arm64"))},
		"too large":   {[]*cloud.InstanceType{open}, large},
		"ultra disks": {[]*cloud.InstanceType{open}, claim("a", in(v1beta1.SKUUltraSSDLabelKey, "true"))},
	} {
		if got, err := launch.Choose(c.types, c.claim); !cloud.IsInsufficientCapacity(err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestUltraSSDDemand covers the claims of spec 71/39: ultra disks are switched on
// only for those that demand them.
func TestUltraSSDDemand(t *testing.T) {
	key := v1beta1.SKUUltraSSDLabelKey
	for name, c := range map[string]struct {
		claim *v1.NodeClaim
		want  bool
	}{
		"nothing":    {claim("a"), false},
		"true":       {claim("a", in(key, "true")), true},
		"either":     {claim("a", in(key, "true", "false")), false},
		"false":      {claim("a", in(key, "false")), false},
		"not false":  {claim("a", v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"false"}}), true},
		"exists":     {claim("a", v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpExists}), false},
		"not at all": {claim("a", v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist}), false},
	} {
		if got := launch.UltraSSD(c.claim); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTags covers spec 71/50: Karpenter's tags win, whatever users set.
func TestTags(t *testing.T) {
	class := &v1beta1.AKSNodeClass{}
	class.Spec.Tags = map[string]string{
		"team/name": "shop", "karpenter.azure.com/cluster": "other", "karpenter.sh/nodepool": "other", "compute.aks.billing": "windows", "both": "class",
	}
	c := claim("a")
	c.Labels = map[string]string{v1.NodePoolLabelKey: "default"}
	settings := map[string]string{"both": "settings", "one": "settings", "karpenter.azure.com_cluster": "third"}
	got, err := launch.Tags(settings, class, c, "prod", 1)
	want := map[string]string{
		"karpenter.azure.com_cluster": "prod", "compute.aks.billing": "linux", "karpenter.sh_nodepool": "default",
		"team_name": "shop", "both": "class", "one": "settings",
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("tags %v, %v", got, err)
	}
	c.Labels = nil
	if got, err := launch.Tags(nil, &v1beta1.AKSNodeClass{}, c, "prod", 1); err != nil || len(got) != 2 {
		t.Errorf("without pool: %v, %v", got, err)
	}
	class.Spec.Tags = map[string]string{"Team": "a", "team": "b"}
	if _, err := launch.Tags(nil, class, c, "prod", 1); err == nil {
		t.Error("keys that differ in case are accepted")
	}
	class.Spec.Tags = map[string]string{"Karpenter.azure.com/cluster": "other"}
	if got, err := launch.Tags(nil, class, c, "prod", 1); err == nil {
		t.Errorf("a key of Karpenter in another case is accepted: %v", got)
	}
	class.Spec.Tags = map[string]string{}
	for i := range 47 {
		class.Spec.Tags[fmt.Sprint("tag", i)] = "x"
	}
	if _, err := launch.Tags(nil, class, c, "prod", 1); err != nil {
		t.Errorf("50 tags: %v", err)
	}
	class.Spec.Tags["one-more"] = "x"
	if _, err := launch.Tags(nil, class, c, "prod", 1); err == nil {
		t.Error("51 tags are accepted")
	}
}

// TestInPlaceHash covers the golden values of spec 71/98.
func TestInPlaceHash(t *testing.T) {
	tags := map[string]string{"compute.aks.billing": "linux", "karpenter.azure.com_cluster": "test-cluster", "karpenter.sh_nodepool": "default"}
	if got := launch.InPlaceHash(tags); got != "3897900378" {
		t.Errorf("hash %s", got)
	}
	if got := launch.InPlaceHash(tags, "/id/a"); got != "2636960792" {
		t.Errorf("hash with identity %s", got)
	}
}
