// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/cloud/azure/catalogue"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/retail"
	"karpenter/cloud/azure/shortage"
	"karpenter/cloud/azurevm"
	"karpenter/model"
)

// stage is a catalogue and what Azure answers it.
type stage struct {
	*catalogue.Catalogue
	t      *testing.T
	clock  *clocktesting.FakeClock
	short  *shortage.Log
	skus   []azurevm.SKU
	usages map[string]catalogue.Usage
	prices retail.Prices
	err    error // of all answers
}

func newStage(t *testing.T) *stage {
	t.Helper()
	d := func(name string, vCPUs int64) azurevm.SKU {
		return azurevm.SKU{Name: name, Family: "standardDSv3Family", VCPUs: vCPUs, MemoryGiB: 16, Arch: "amd64", LowPriority: true, HyperVGenerations: []string{"V2"}}
	}
	s := &stage{
		t: t, clock: clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)), short: &shortage.Log{},
		skus: []azurevm.SKU{d("Standard_D2s_v3", 2), d("Standard_D4s_v3", 4), {Name: "Standard_E4s_v3", VCPUs: 4, MemoryGiB: 32, Arch: "amd64", HyperVGenerations: []string{"V2"}}},
	}
	s.Catalogue = catalogue.New(catalogue.Config{
		Clock: s.clock, Cluster: instancetype.Cluster{Region: "eastus", NetworkPlugin: "none"}, Shortages: s.short,
		Start:  azurevm.Prices{OnDemand: map[string]model.Price{"Standard_D2s_v3": azurevm.Price(0.096)}},
		SKUs:   func(context.Context) ([]azurevm.SKU, error) { return s.skus, s.err },
		Usages: func(context.Context) (map[string]catalogue.Usage, error) { return s.usages, s.err },
		Prices: func(context.Context) (retail.Prices, error) { return s.prices, s.err },
	})
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func class() *v1beta1.AKSNodeClass {
	c := &v1beta1.AKSNodeClass{}
	c.Status.KubernetesVersion = new("1.33.4")
	c.StatusConditions(time.Unix(1_700_000_000, 0)).SetTrue(v1beta1.KubernetesVersionReadyCondition)
	return c
}

func (s *stage) types() []*cloud.InstanceType {
	s.t.Helper()
	types, err := s.Types(s.t.Context(), class())
	s.must(err)
	return types
}

// available returns the offerings that are available.
func (s *stage) available() []string {
	s.t.Helper()
	var out []string
	for _, t := range s.types() {
		for _, o := range t.Offerings {
			if o.Available {
				out = append(out, t.Name+" "+o.CapacityType())
			}
		}
	}
	slices.Sort(out)
	return out
}

func (s *stage) want(what string, want ...string) {
	s.t.Helper()
	if got := s.available(); !slices.Equal(got, want) {
		s.t.Errorf("%s: available are %q, want %q", what, got, want)
	}
}

// TestTypesFollow covers spec 71/35: shortages and quotas are seen at once, and
// callers cannot change what others see.
func TestTypesFollow(t *testing.T) {
	s := newStage(t)
	s.must(s.RefreshSKUs(t.Context()))
	first := s.types()
	if again := s.types(); !slices.Equal(first, again) {
		t.Error("nothing has changed, and types are other ones")
	}
	slices.Reverse(first)
	if names := s.types(); names[0].Name != "Standard_D2s_v3" {
		t.Errorf("the caller has changed the order: %s is first", names[0].Name)
	}
	slices.Reverse(first)
	now := s.clock.Now()
	s.short.Size(&s.skus[1], "0", "spot", now.Add(time.Hour), now)
	s.want("short of D4s_v3 as spot", "Standard_D2s_v3 on-demand", "Standard_D2s_v3 spot", "Standard_D4s_v3 on-demand", "Standard_E4s_v3 on-demand")
	second := s.types()
	if first[0] != second[0] || first[1] == second[1] || first[2] != second[2] {
		t.Error("not the types that have changed are other ones")
	}
	s.clock.Step(time.Hour)
	s.want("afterwards", "Standard_D2s_v3 on-demand", "Standard_D2s_v3 spot", "Standard_D4s_v3 on-demand", "Standard_D4s_v3 spot", "Standard_E4s_v3 on-demand")
	s.usages = map[string]catalogue.Usage{"standardDSv3Family": {Current: 10, Limit: 10}}
	s.must(s.RefreshQuotas(t.Context()))
	s.want("without quota", "Standard_D2s_v3 spot", "Standard_D4s_v3 spot", "Standard_E4s_v3 on-demand")
}

// TestQuotas covers spec 71/37.
func TestQuotas(t *testing.T) {
	s := newStage(t)
	s.must(s.RefreshSKUs(t.Context()))
	s.usages = map[string]catalogue.Usage{"standardDSv3Family": {Current: 8, Limit: 10}}
	s.must(s.RefreshQuotas(t.Context()))
	left := []string{"Standard_D2s_v3 on-demand", "Standard_D2s_v3 spot", "Standard_D4s_v3 spot", "Standard_E4s_v3 on-demand"}
	s.want("2 vCPUs left", left...)
	s.err = errors.New("boom")
	for range 3 {
		s.clock.Step(5 * time.Minute)
		if s.RefreshQuotas(t.Context()) == nil {
			t.Error("no error")
		}
		s.want("while Azure does not answer", left...)
	}
	s.clock.Step(time.Second)
	s.want("when quotas are not believed any more", "Standard_D2s_v3 on-demand", "Standard_D2s_v3 spot", "Standard_D4s_v3 on-demand", "Standard_D4s_v3 spot", "Standard_E4s_v3 on-demand")
	s.err = nil
	s.must(s.RefreshQuotas(t.Context()))
	s.want("when Azure answers again", left...)
}

// TestSKUs covers the catalogue's part of spec 71/36: without a useful answer, the
// old sizes stay, and there are none at the start.
func TestSKUs(t *testing.T) {
	s := newStage(t)
	s.err = errors.New("boom")
	if s.RefreshSKUs(t.Context()) == nil {
		t.Error("no error at the start")
	}
	if types, err := s.Types(t.Context(), class()); err == nil {
		t.Errorf("types %v without sizes", types)
	}
	s.err = nil
	s.must(s.RefreshSKUs(t.Context()))
	for name, change := range map[string]func(){
		"an error":        func() { s.err = errors.New("boom") },
		"nothing":         func() { s.skus = nil },
		"nothing of use":  func() { s.skus = []azurevm.SKU{{Name: "Standard_B1s", VCPUs: 1}} },
		"only restricted": func() { s.skus = []azurevm.SKU{{Name: "Standard_D4s_v3", VCPUs: 4, MemoryGiB: 16, Restricted: true}} },
	} {
		s.err = nil
		change()
		if s.RefreshSKUs(t.Context()) == nil {
			t.Errorf("%s: no error", name)
		}
		if len(s.types()) != 3 || s.Facts("Standard_D4s_v3") == nil {
			t.Errorf("%s: the old sizes are gone", name)
		}
	}
	s.err, s.skus = nil, []azurevm.SKU{{Name: "Standard_E4s_v3", VCPUs: 4, MemoryGiB: 32, Arch: "amd64", HyperVGenerations: []string{"V2"}}}
	s.must(s.RefreshSKUs(t.Context()))
	if len(s.types()) != 1 || s.Facts("Standard_D4s_v3") != nil {
		t.Error("sizes that are not offered any more stay")
	}
}

// TestPrices covers the keeping of spec 71/40: a useless price list leaves the old
// prices, and a sovereign cloud has none.
func TestPrices(t *testing.T) {
	s := newStage(t)
	s.must(s.RefreshSKUs(t.Context()))
	price := func(size, capacityType string) float64 {
		for _, it := range s.types() {
			for _, o := range it.Offerings {
				if it.Name == size && o.CapacityType() == capacityType && o.Price == instancetype.Unpriced {
					return o.Price.Dollars()
				}
				if it.Name == size && o.CapacityType() == capacityType {
					return (o.Price - azurevm.OSDiskPrice(128, false)).Dollars()
				}
			}
		}
		t.Fatalf("%s is not offered", size)
		return 0
	}
	want := func(what string, onDemand, spot, other float64) {
		t.Helper()
		if a, b, c := price("Standard_D2s_v3", "on-demand"), price("Standard_D2s_v3", "spot"), price("Standard_D4s_v3", "on-demand"); a != onDemand || b != spot || c != other {
			t.Errorf("%s: %v, spot %v, D4s_v3 %v", what, a, b, c)
		}
	}
	want("at the start", 0.096, 0.096, 999)
	s.err = errors.New("500")
	if s.RefreshPrices(t.Context()) == nil {
		t.Error("no error")
	}
	s.err = nil
	if s.RefreshPrices(t.Context()) == nil {
		t.Error("no error about an empty list")
	}
	want("after useless answers", 0.096, 0.096, 999)
	s.prices = retail.Prices{
		OnDemand: map[string]model.Price{"Standard_D2s_v3": azurevm.Price(0.1), "Standard_D4s_v3": azurevm.Price(0.2)},
		Spot:     map[string]model.Price{"Standard_D2s_v3": azurevm.Price(0.02)},
	}
	s.must(s.RefreshPrices(t.Context()))
	want("with a list", 0.1, 0.02, 0.2)
	sovereign := catalogue.New(catalogue.Config{Clock: s.clock, Shortages: s.short})
	s.must(sovereign.RefreshPrices(t.Context()))
}
