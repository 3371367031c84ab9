// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// An answer that lacks much of what was sold is not believed before three agree.
func TestQuarantine(t *testing.T) {
	full := newRegion(t)
	w := newWorld(t, newRegion(t))
	class := plain()
	before := w.types(t, class)
	family := func(prefix string) func(types.InstanceTypeInfo) bool {
		return func(i types.InstanceTypeInfo) bool { return strings.HasPrefix(string(i.InstanceType), prefix) }
	}
	for i, s := range []struct {
		name    string
		answer  func(*region)
		types   int    // fewer than at first
		zones   string // that m5.large is sold in
		doubted int    // types and offerings
	}{
		{"a few types vanish", func(r *region) { r.types = slices.DeleteFunc(r.types, family("t3.")) }, 7, "abc", 0},
		{"many vanish", func(r *region) { r.types = slices.DeleteFunc(r.types, family("m")) }, 7, "abc", 1},
		{"again", func(r *region) {}, 7, "abc", 1},
		{"they are back", func(r *region) { r.types = slices.DeleteFunc(slices.Clone(full.types), family("t3.")) }, 7, "abc", 0},
		{"a zone vanishes", func(r *region) {
			for name := range r.sold {
				r.sold[name] = zones()[:2]
			}
		}, 7, "abc", 1},
		{"again", func(r *region) {}, 7, "abc", 1},
		{"three answers agree", func(r *region) {}, 7, "ab", 0},
		{"all vanish", func(r *region) { r.types, r.sold = nil, nil }, 7, "ab", 2},
		{"all are back", func(r *region) { r.types, r.sold = full.types, full.sold }, 0, "abc", 0},
	} {
		s.answer(w.region)
		if err := w.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		class.Status.Subnets[1].Zone = "us-east-1c" // so that its zones show
		now := w.types(t, class)
		got := ""
		for _, f := range w.Facts() {
			if f.InstanceType == "m5.large" {
				got = strings.ReplaceAll(strings.Join(f.Zones, ""), "us-east-1", "")
			}
		}
		doubted := 0
		for _, of := range []string{"type", "offering"} {
			if w.doubted(t, of) > 0 {
				doubted++
			}
		}
		if len(before)-len(now) != s.types || got != s.zones || doubted != s.doubted {
			t.Errorf("%d %s: %d types fewer, m5.large in %s, %d doubted", i, s.name, len(before)-len(now), got, doubted)
		}
	}
}

// doubted is the metric's value.
func (w *world) doubted(t *testing.T, of string) float64 {
	t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "karpenter_cloudprovider_instance_types_doubted" && m.Label[0].GetValue() == of {
				return m.Gauge.GetValue()
			}
		}
	}
	t.Fatalf("no metric for %s", of)
	return 0
}
