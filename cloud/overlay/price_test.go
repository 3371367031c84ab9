// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"math"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"karpenter/api/v1alpha1"
	"karpenter/model"
)

// spec 45/26, spec 55/8, spec 20/152: the arithmetic of prices.
func TestAdjustment(t *testing.T) {
	dollars := func(d float64) model.Price { return model.Price(math.Round(d * float64(model.Dollar))) }
	for _, tc := range []struct {
		base float64
		text string
		want float64
	}{
		{10, "-10%", 9}, {10, "+10%", 11}, {10, "-50%", 5}, {10, "+100%", 20},
		{10, "-100%", 0}, {10, "-200%", 0}, {1.5, "-25%", 1.125},
		{10, "+0", 10}, {10, "+5", 15}, {10, "-2.5", 7.5}, {-10, "-15", 0},
		{1.25, "+0.75", 2}, {0.001, "+100", 100.001}, {0.0001, "+0.0001", 0.0002},
		{1, "+10%", 1.1}, {1, "-15", 0}, {1, "+0%", 1}, // spec 20/152
		{1.02, "+1000", 1001.02}, // spec 45/19
		{1.02, "=34.43", 34.43},  // replaces
		{1.02, "=0", 0},          // free
		{10, "+.5", 10.5},        // the leading digit may be missing
		{0.01, "+100.102%", 0.0200102},
		{1e-9, "+50%", 2e-9},                    // rounded to the unit
		{1, "=1000000000000000000000", 100_000}, // more than anything costs
		{99_999, "+2", 100_000},
		{10, "", 10}, // neither set
	} {
		spec := &v1alpha1.NodeOverlaySpec{}
		if price, ok := strings.CutPrefix(tc.text, "="); ok {
			spec.Price = &price
		} else if tc.text != "" {
			spec.PriceAdjustment = &tc.text
		}
		a, err := parseAdjustment(spec)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		got := dollars(tc.base)
		if a != nil {
			got = a.apply(got)
		}
		if got != dollars(tc.want) {
			t.Errorf("$%v, %s is $%v, want $%v", tc.base, tc.text, got.Dollars(), tc.want)
		}
	}
}

// What the CRD's schema refuses is rejected here too, in case it got by.
func TestAdjustmentErrors(t *testing.T) {
	for text, want := range map[string]string{
		"1":    `spec.priceAdjustment: "1" has no sign; write +1 or -1`,
		"+":    `spec.priceAdjustment: "" is not a decimal number`,
		"+1e3": `spec.priceAdjustment: "1e3" is not a decimal number`,
		"--1":  `spec.priceAdjustment: "-1" is not a decimal number`,
		"+1/3": `spec.priceAdjustment: "1/3" is not a decimal number`,
	} {
		if _, err := parseAdjustment(&v1alpha1.NodeOverlaySpec{PriceAdjustment: ptr.To(text)}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := parseAdjustment(&v1alpha1.NodeOverlaySpec{Price: ptr.To("+1")}); err == nil {
		t.Error("a price with a sign is accepted")
	}
	if _, err := parseAdjustment(&v1alpha1.NodeOverlaySpec{Price: ptr.To("1"), PriceAdjustment: ptr.To("+1")}); err == nil {
		t.Error("two prices are accepted")
	}
}
