// SPDX-License-Identifier: Apache-2.0

package azurevm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"karpenter/cloud/azurevm"
	"karpenter/model"
)

func sizes(t *testing.T) []azurevm.Size {
	t.Helper()
	all, err := azurevm.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func size(t *testing.T, name string) *azurevm.Size {
	t.Helper()
	all := sizes(t)
	i := slices.IndexFunc(all, func(s azurevm.Size) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("%s is not known", name)
	}
	return &all[i]
}

// TestSizes counts what the documentation of the package says.
func TestSizes(t *testing.T) {
	all := sizes(t)
	if !slices.IsSortedFunc(all, func(a, b azurevm.Size) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("sizes are not sorted")
	}
	noMemory := 0
	for _, s := range all {
		if s.MemoryGiB == 0 {
			noMemory++
		}
	}
	if len(all) != 1780 || noMemory != 140 {
		t.Errorf("%d sizes, %d without memory", len(all), noMemory)
	}
	if got := len(azurevm.Registry(all)); got != 76-promos(all) {
		t.Errorf("GPUs of %d sizes are supported", got)
	}
	want := []string{"eastus", "polandcentral", "southcentralus", "westcentralus", "westeurope"}
	if got := azurevm.Regions(all); !slices.Equal(got, want) {
		t.Errorf("regions are %v, want %v", got, want)
	}
	for region, want := range map[string]int{"eastus": 1702, "westeurope": 1655, "southcentralus": 1511, "westcentralus": 932, "polandcentral": 1182, "westus": 0} {
		if got := len(azurevm.Offered(all, region)); got != want {
			t.Errorf("%s offers %d sizes, want %d", region, got, want)
		}
	}
}

// promos counts the sizes with GPUs that share their entry in the registry.
func promos(all []azurevm.Size) int {
	n := 0
	for _, s := range all {
		base := strings.TrimSuffix(s.Name, "_Promo")
		if s.GPUManufacturer != "" && base != s.Name && slices.ContainsFunc(all, func(o azurevm.Size) bool { return o.Name == base && o.GPUManufacturer != "" }) {
			n++
		}
	}
	return n
}

// TestIn: observed capabilities come before derived ones, and a region may say
// otherwise.
func TestIn(t *testing.T) {
	sku, ok := size(t, "Standard_D128ds_v6").In("southcentralus")
	if !ok || sku.NVMeDiskMiB != 7208960 || sku.VCPUs != 128 || sku.MemoryGiB != 512 || !slices.Equal(sku.Zones, []string{"1", "2", "3"}) ||
		!slices.Equal(sku.Placements, []string{"NvmeDisk"}) || !slices.Equal(sku.HyperVGenerations, []string{"V2"}) || !sku.AcceleratedNetworking {
		t.Errorf("D128ds_v6 is %+v", sku)
	}
	sku, ok = size(t, "Standard_NC24ads_A100_v4").In("eastus")
	if !ok || !slices.Equal(sku.Zones, []string{"3"}) || sku.GPUs != 1 {
		t.Errorf("NC24ads_A100_v4 is %+v", sku)
	}
	if _, ok = size(t, "Standard_D16plds_v5").In("polandcentral"); ok {
		t.Error("D16plds_v5 is offered where it is not")
	}
	sku, _ = size(t, "Basic_A0").In("eastus")
	if sku.Restricted || !slices.Equal(sku.RestrictedZones, []string{"1", "2", "3"}) {
		t.Errorf("Basic_A0 is %+v", sku)
	}
	observed, derived := false, false
	for _, s := range sizes(t) {
		for region := range s.Regions {
			sku, _ := s.In(region)
			observed = observed || sku.LowPriority && s.Observed.LowPriorityCapable != nil
			derived = derived || sku.LowPriority && s.Observed.LowPriorityCapable == nil
		}
	}
	if !observed || !derived {
		t.Errorf("a size can be spot by observation: %t, by inference: %t", observed, derived)
	}
}

// TestParseName holds the naming scheme to the parts that the data name, for all
// sizes.
func TestParseName(t *testing.T) {
	var parts []struct {
		Name, SizeFamily, Series, Version, Accelerator string
		ConstrainedCores, Confidential, Unparsable     bool
	}
	text, err := json.Marshal(azurevm.Raw(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		name, ok := azurevm.ParseName(p.Name)
		if ok == p.Unparsable {
			t.Errorf("%s: parsed %t", p.Name, ok)
		}
		if !ok {
			continue
		}
		want := azurevm.Name{Family: p.SizeFamily, Series: p.Series, Version: p.Version, Accelerator: p.Accelerator, Constrained: p.ConstrainedCores}
		if name != want || name.Confidential() != p.Confidential {
			t.Errorf("%s is %+v, want %+v, confidential %t", p.Name, name, want, p.Confidential)
		}
	}
	for _, text := range []string{"", "Standard_", "D4s_v5", "Standard_D4s_v5\n", "Standard_D4s_v10", "Standard_d4s_v5", "Standard_D4zz"} {
		if name, ok := azurevm.ParseName(text); ok {
			t.Errorf("%q is %+v", text, name)
		}
	}
}

// TestStaticPrices covers spec 71/41: a region without prices has those of eastus.
func TestStaticPrices(t *testing.T) {
	for region, of := range map[string]string{"eastus": "eastus", "westeurope": "westeurope", "chinaeast2": "eastus", "": "eastus"} {
		p, err := azurevm.StaticPrices(region)
		if err != nil {
			t.Fatal(err)
		}
		if p.Region != of || p.Date != "2026-06-18" || len(p.OnDemand) < 1000 {
			t.Errorf("%q: %d prices of %s, %s", region, len(p.OnDemand), p.Region, p.Date)
		}
	}
	east, err := azurevm.StaticPrices("eastus")
	if err != nil {
		t.Fatal(err)
	}
	for name, dollars := range map[string]float64{"Standard_D2s_v3": 0.096, "Standard_F16s_v2": 0.677, "Standard_NC24ads_A100_v4": 3.673} {
		if got := east.OnDemand[name].Dollars(); got != dollars {
			t.Errorf("%s costs %v, want %v", name, got, dollars)
		}
	}
	if east.Spot != nil {
		t.Errorf("%d spot prices of eastus", len(east.Spot))
	}
	poland, err := azurevm.StaticPrices("polandcentral")
	if err != nil {
		t.Fatal(err)
	}
	if len(poland.Spot) != 849 {
		t.Errorf("%d spot prices of polandcentral", len(poland.Spot))
	}
}

// TestDiskPricesInDocs: users see the prices that no one has compared with Azure's.
func TestDiskPricesInDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/azure.md")
	if err != nil {
		t.Fatal(err)
	}
	for size, gib := range map[string]int64{"32": 32, "64": 64, "128": 128, "256": 256, "512": 512, "1,024": 1024, "2,048": 2048} {
		month := func(premium bool) float64 {
			return float64(azurevm.OSDiskPrice(gib, premium)) / float64(model.Dollar) * 730
		}
		if row := fmt.Sprintf("| %s GiB | %.2f | %.2f |\n", size, month(true), month(false)); !strings.Contains(string(text), row) {
			t.Errorf("docs/azure.md has no row %q", row)
		}
	}
}
