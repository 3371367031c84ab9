// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"karpenter/model"
)

// TestPriceTables holds that each table says where and when its prices are from.
func TestPriceTables(t *testing.T) {
	tables, err := PriceTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if _, err := time.Parse(time.DateOnly, table.Date); err != nil || table.Source == "" || len(table.OnDemand) < 300 {
			t.Errorf("%s: of %q, from %q, %d prices", table.Region, table.Date, table.Source, len(table.OnDemand))
		}
		if want := map[bool]string{true: "CNY", false: "USD"}[partition(table.Region) == "cn-"]; table.Currency != want {
			t.Errorf("%s: prices in %s, want %s", table.Region, table.Currency, want)
		}
		for name, price := range table.OnDemand {
			if price <= 0 {
				t.Errorf("%s: %s costs %v", table.Region, name, price)
			}
		}
	}
}

// TestStart: which table a region begins with.
func TestStart(t *testing.T) {
	for _, c := range []struct {
		region, table string
		types         int
		price         model.Price // of m5.large
	}{
		{"us-east-1", "us-east-1", 1364, 96_000_000},
		{"us-gov-west-1", "us-gov-west-1", 767, 121_000_000},
		{"eu-west-1", "us-east-1", 1364, 96_000_000},
		{"us-iso-east-1", "us-east-1", 1364, 96_000_000},
		{"cn-northwest-1", "cn-north-1", 316, 1_013_000_000},
	} {
		got, err := Start(c.region)
		if err != nil || got.Table.Region != c.table || len(got.OnDemand) != c.types || got.OnDemand["m5.large"] != c.price || got.Estimated != 0 {
			t.Errorf("%s: %d prices of %s, m5.large for %d: %v", c.region, len(got.OnDemand), got.Table.Region, got.OnDemand["m5.large"], err)
		}
	}
}

// TestEstimates: types that a region's table lacks get a price at the level of the
// region; those it has keep theirs.
func TestEstimates(t *testing.T) {
	plain, err := Start("us-gov-east-1")
	if err != nil {
		t.Fatal(err)
	}
	full, err := StartWithEstimates("us-gov-east-1")
	if err != nil {
		t.Fatal(err)
	}
	base, err := Start("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	for name, price := range plain.OnDemand {
		if full.OnDemand[name] != price {
			t.Errorf("%s: %d instead of %d", name, full.OnDemand[name], price)
		}
	}
	if full.Estimated == 0 || len(full.OnDemand) != len(plain.OnDemand)+full.Estimated || full.Table.Region != "us-gov-east-1" {
		t.Errorf("%d prices, %d before, %d estimated", len(full.OnDemand), len(plain.OnDemand), full.Estimated)
	}
	for _, name := range []string{"c8i.large", "c8g.4xlarge"} {
		if _, known := plain.OnDemand[name]; known {
			t.Fatalf("%s is in the table", name)
		}
		if ratio := full.OnDemand[name].Dollars() / base.OnDemand[name].Dollars(); ratio < 1.05 || ratio > 1.45 {
			t.Errorf("%s: %.2f of its price in us-east-1", name, ratio)
		}
	}
	if _, priced := full.OnDemand["p5e.48xlarge"]; priced {
		t.Error("p5e.48xlarge has a price; no table knows one")
	}
	same, err := StartWithEstimates("us-east-1")
	if err != nil || same.OnDemand["m5.large"] != base.OnDemand["m5.large"] {
		t.Errorf("us-east-1: m5.large for %d: %v", same.OnDemand["m5.large"], err)
	}
}

// TestBranchLimits: the types that EC2 describes and that no limits are known of.
func TestBranchLimits(t *testing.T) {
	limits, err := BranchLimits()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, limits.Date); err != nil || limits.Source == "" {
		t.Errorf("of %q, from %q", limits.Date, limits.Source)
	}
	for name, want := range map[string]int64{"m5.large": 9, "r9g.large": 9, "r9gd.4xlarge": 54, "t3.large": 0, "a1.2xlarge": 38} {
		if got, ok := limits.BranchENIs[name]; !ok || got != want {
			t.Errorf("%s: %d branch interfaces, want %d", name, got, want)
		}
	}
	for _, it := range catalogueTypes(t) {
		if now, ok := limits.BranchENIs[it.Name]; it.ENIs > 0 && (!ok || now != map[bool]int64{true: it.BranchENIs}[it.Trunking]) {
			t.Errorf("%s: %d branch interfaces, published %d", it.Name, now, it.BranchENIs)
		}
	}
}

// TestPricesDoc holds docs/aws-prices.md to the tables.
func TestPricesDoc(t *testing.T) {
	text, err := os.ReadFile("../../docs/aws-prices.md")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := PriceTables()
	if err != nil {
		t.Fatal(err)
	}
	want := "|---|---|---|---|---|\n"
	for _, table := range tables {
		want += fmt.Sprintf("| %s | %s | %s | %d | %s |\n", table.Region, table.Date, table.Currency, len(table.OnDemand), table.Source)
	}
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/aws-prices.md does not have the table\n%s", want)
	}
}
