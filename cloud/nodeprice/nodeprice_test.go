// SPDX-License-Identifier: Apache-2.0

package nodeprice_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/nodeprice"
	"karpenter/model"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]model.Price{
		"0": 0, "0.03": 30_000_000, "1000": 1000 * model.Dollar, ".5": model.Dollar / 2, "0.0000000005": 1, "0.0000000004": 0,
		"": -1, "-1": -1, "1e2": -1, "$1": -1, "1000.01": -1, "1.2.3": -1, "NaN": -1, " 1": -1, strings.Repeat("0", 41): -1,
	} {
		got, err := nodeprice.Parse(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
}

// Annotations of a NodePool override the settings one by one; one that cannot be
// read leaves its setting in place.
func TestAnnotations(t *testing.T) {
	setting := nodeprice.Amounts{Node: 10, VCPU: 20}
	for name, c := range map[string]struct {
		node, vcpu string // "-" = none
		want       nodeprice.Amounts
		wrong      int
	}{
		"none":       {"-", "-", setting, 0},
		"node":       {"0.000000001", "-", nodeprice.Amounts{Node: 1, VCPU: 20}, 0},
		"both":       {"0", "0.000000002", nodeprice.Amounts{VCPU: 2}, 0},
		"wrong":      {"1 $", "0.000000002", nodeprice.Amounts{Node: 10, VCPU: 2}, 1},
		"both wrong": {"-5", "", setting, 2},
	} {
		pool := &v1.NodePool{}
		pool.Annotations = map[string]string{}
		if c.node != "-" {
			pool.Annotations[v1.AdditionalNodePriceAnnotationKey] = c.node
		}
		if c.vcpu != "-" {
			pool.Annotations[v1.AdditionalVCPUPriceAnnotationKey] = c.vcpu
		}
		got, err := setting.Of(pool)
		wrong := 0
		if err != nil {
			wrong = strings.Count(err.Error(), "annotation karpenter.sh/additional-")
		}
		if got != c.want || wrong != c.wrong {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestStore(t *testing.T) {
	offering := func(zone string, price model.Price, available bool) cloud.Offering {
		return cloud.Offering{Price: price, Available: available, Requirements: model.NewRequirements(
			model.NewRequirement(model.LabelZone, model.In, zone), model.NewRequirement(model.LabelCapacityType, model.In, model.Spot))}
	}
	kind := &cloud.InstanceType{
		Name: "m", Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		Offerings: []cloud.Offering{offering("a", 100, true), offering("b", 100, false), offering("b", 0, false), offering("b", 0, true)},
	}
	types := []*cloud.InstanceType{kind}
	extras := []model.Extra{{Name: "volume", Price: 7}, {Name: "address", Price: 1, Zone: "a"}, {Name: "agent", Price: 3, VCPU: true}}
	s := &nodeprice.Store{}
	got := s.Add("p", types, extras)[0]
	for i, want := range []model.Price{114, 113, 0, 13} { // what has no price and is not sold gets none
		o := &got.Offerings[i]
		if o.Price != want || nodeprice.Instance(got, o, extras) != kind.Offerings[i].Price {
			t.Errorf("offering %d: %d, its instance %d; want %d", i, o.Price, nodeprice.Instance(got, o, extras), want)
		}
	}
	if kind.Offerings[0].Price != 100 || s.Add("p", types, extras)[0] != got || s.Add("q", types, nil)[0] != kind {
		t.Error("the type was changed, made again, or copied for nothing")
	}
	if other := s.Add("p", types, extras[:1])[0]; other == got || other.Offerings[0].Price != 107 {
		t.Errorf("%d with other extras", other.Offerings[0].Price)
	}
	if !nodeprice.Reorder(extras) || !nodeprice.Reorder(extras[1:2]) || nodeprice.Reorder(extras[:1]) {
		t.Error("what differs from node to node may change which is the cheapest, nothing else may")
	}
}
