// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// TestExtraTables holds that each table says where and when its prices are from,
// and has a price for every volume type.
func TestExtraTables(t *testing.T) {
	tables, err := ExtraTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range tables {
		if _, err := time.Parse(time.DateOnly, p.Date); err != nil || p.Source == "" || p.Currency != "USD" || p.PublicIPv4 <= 0 {
			t.Errorf("%s: of %q, from %q, in %q, an address for %v", p.Region, p.Date, p.Source, p.Currency, p.PublicIPv4)
		}
		for name, tiers := range map[string]int{"gp3": 1, "gp2": 0, "io1": 1, "io2": 3, "st1": 0, "sc1": 0, "standard": 0} {
			if v := p.Volumes[name]; v.GiB <= 0 || len(v.IOPS) != tiers || (v.MiBps > 0) != (name == "gp3") {
				t.Errorf("%s: %s costs %+v", p.Region, name, v)
			}
		}
	}
}

// TestExtras: whose prices a region has.
func TestExtras(t *testing.T) {
	for region, want := range map[string]struct {
		from, currency string
		gp3            float64
	}{
		"us-east-1": {"us-east-1", "USD", 0.08}, "sa-east-1": {"sa-east-1", "USD", 0.152}, "mx-central-1": {"us-east-1", "USD", 0.08},
		"cn-northwest-1": {"us-east-1", "CNY", 0.8}, // in yuan, about
	} {
		got, err := Extras(region)
		if err != nil || got.Region != want.from || got.Currency != want.currency || math.Abs(got.Volumes["gp3"].GiB/want.gp3-1) > 0.35 {
			t.Errorf("%s: %+v, %v", region, got, err)
		}
	}
}

// TestExtrasDoc holds docs/aws-prices.md to the tables.
func TestExtrasDoc(t *testing.T) {
	text, err := os.ReadFile("../../docs/aws-prices.md")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := ExtraTables()
	if err != nil {
		t.Fatal(err)
	}
	want := "|---|---|---|---|---|---|\n"
	for _, p := range tables {
		want += fmt.Sprintf("| %s | %s | %g | %g | %g | %g |\n", p.Region, p.Date, p.Volumes["gp3"].GiB, p.Volumes["gp2"].GiB, p.Volumes["io1"].GiB, p.PublicIPv4)
	}
	if !strings.Contains(string(text), want) {
		t.Errorf("docs/aws-prices.md does not have the table\n%s", want)
	}
}
