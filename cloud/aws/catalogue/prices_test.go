// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/scheme"
	"karpenter/api/v1alpha1"
	"karpenter/cloud/aws/catalogue"
	"karpenter/cloud/aws/instancetype"
)

// spec 65/60: on-demand prices, and which prices are used when AWS fails.
func TestOnDemand(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large", "c5.large", "m5.metal"))
	w.region.prices = map[string]string{"m5.large": "0.2", "c5.large": "0.1", "m5.metal": "5"}
	w.region.spot = map[string]map[string]string{"m5.large": {"us-east-1a": "0.03"}}
	class := plain()
	run(t, w, class, []step{
		{"built in", func(*world, *awsv1.EC2NodeClass) {}, nil, "a od 0.096, a spot 0.096, b od 0.096, b spot 0.096"},
		{"AWS's, spec 65/59", func(w *world, _ *awsv1.EC2NodeClass) { _ = w.RefreshPrices(t.Context()) },
			[]string{"c5.large", "m5.large", "m5.metal"}, "a od 0.2, a spot 0.03, b od 0.2"},
		{"one is different", func(w *world, _ *awsv1.EC2NodeClass) {
			w.region.prices["m5.large"] = "0.3"
			_ = w.RefreshPrices(t.Context())
		}, []string{"m5.large"}, "a od 0.3, a spot 0.03, b od 0.3"},
		{"the same", func(w *world, _ *awsv1.EC2NodeClass) { _ = w.RefreshPrices(t.Context()) }, nil, ""},
		{"one is missing, and another is nothing", func(w *world, _ *awsv1.EC2NodeClass) {
			w.region.prices = map[string]string{"m5.large": "0.0000000000", "m5.metal": "6"}
			w.region.prices["c5.large"] = "0.1"
			_ = w.RefreshPrices(t.Context())
		}, []string{"m5.metal"}, "a od 0.3, a spot 0.03, b od 0.3"},
		{"no metal in the answer", func(w *world, _ *awsv1.EC2NodeClass) {
			w.region.prices = map[string]string{"m5.large": "0.4"}
			if err := w.RefreshPrices(t.Context()); err == nil || err.Error() != "no on-demand pricing found" {
				t.Error(err)
			}
		}, nil, ""},
		{"the price list fails", func(w *world, _ *awsv1.EC2NodeClass) {
			w.region.prices["m5.metal"] = "6"
			w.region.fails["GetProducts"] = errors.New("down")
			if err := w.RefreshPrices(t.Context()); err == nil {
				t.Error("no error")
			}
		}, nil, ""},
		{"spot fails, prices on demand are read", func(w *world, _ *awsv1.EC2NodeClass) {
			w.region.fails = map[string]error{"DescribeSpotPriceHistory": errors.New("down")}
			if err := w.RefreshPrices(t.Context()); err == nil {
				t.Error("no error")
			}
		}, []string{"m5.large"}, "a od 0.4, a spot 0.03, b od 0.4"},
	})
	slices.Sort(w.region.filters)
	const common = "regionCode=us-east-1 serviceCode=AmazonEC2 preInstalledSw=NA operatingSystem=Linux capacitystatus=Used marketoption=OnDemand "
	if diff := cmp.Diff([]string{
		common + "tenancy=Dedicated productFamily=Compute Instance (bare metal)", common + "tenancy=Shared productFamily=Compute Instance",
	}, slices.Compact(w.region.filters)); diff != "" {
		t.Error(diff)
	}
}

// spec 65/60: where no one is asked for prices on demand. Spot prices are EC2's
// everywhere. The log says once which prices count.
func TestPricesNoOneAsksFor(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*catalogue.Config)
		onDemand string
	}{
		"an isolated VPC":    {func(c *catalogue.Config) { c.Pricing = nil }, "0.096"},
		"a GovCloud":         {func(c *catalogue.Config) { c.Cluster.Region = "us-gov-west-1" }, "0.121"},
		"an isolated region": {func(c *catalogue.Config) { c.Cluster.Region = "us-iso-east-1" }, "0.096"},
		"the sovereign one":  {func(c *catalogue.Config) { c.Cluster.Region = "eusc-de-east-1" }, "0.096"},
	} {
		w := newWorld(t, newRegion(t, "m5.large"), c.change)
		w.region.prices = map[string]string{"m5.large": "7", "m5.metal": "7"}
		w.region.spot = map[string]map[string]string{"m5.large": {"us-east-1a": "0.03"}}
		var lines []string
		ctx := log.IntoContext(t.Context(), funcr.New(func(_, text string) { lines = append(lines, text) }, funcr.Options{}))
		for range 2 {
			if err := w.RefreshPrices(ctx); err != nil || w.region.asked["GetProducts"] != 0 {
				t.Errorf("%s: %v, %v", name, err, w.region.asked)
			}
		}
		if got, want := available(w.types(t, plain())["m5.large"]), "a od "+c.onDemand+", a spot 0.03, b od "+c.onDemand; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "on-demand prices are those built into the program") || !strings.Contains(lines[0], `"date"="2026-07-20"`) {
			t.Errorf("%s: logged %q", name, lines)
		}
	}
}

// Where no one is asked, types that the region's table lacks have an estimate, so
// that they can be launched; types that no table has can't.
func TestPricesEstimated(t *testing.T) {
	for region, want := range map[string]map[string]bool{
		"us-gov-east-1": {"c8i.large": true, "p5e.48xlarge": false},
		"cn-north-1":    {"c8i.large": false, "p5e.48xlarge": false}, // AWS is asked
	} {
		w := newWorld(t, newRegion(t, "c8i.large", "p5e.48xlarge"), func(c *catalogue.Config) { c.Cluster.Region = region })
		types := w.types(t, plain())
		for name, can := range want {
			if got := available(types[name]); (got != "") != can {
				t.Errorf("%s: %s is for sale as %q", region, name, got)
			}
		}
	}
}

// Types that are newer than the published tables have what EC2 says of their
// network, and their branch network interfaces.
func TestNewTypes(t *testing.T) {
	w := newWorld(t, newRegion(t, "r9g.large", "t8i.small", "m5.large", "m4.large", "trn2u.48xlarge"))
	types := w.types(t, plain())
	for name, want := range map[string]struct {
		mbps string
		eni  int64
	}{"r9g.large": {"1000", 9}, "t8i.small": {"128", 0}, "m5.large": {"750", 9}, "m4.large": {"", 0}, "trn2u.48xlarge": {"3200000", 0}} {
		mbps, _ := types[name].Requirements.Value(awsv1.InstanceNetworkBandwidthLabelKey)
		eni := types[name].Capacity[instancetype.ResourcePodENI]
		if mbps != want.mbps || eni.Value() != want.eni {
			t.Errorf("%s: %s Mbit/s and %d branch interfaces, want %s and %d", name, mbps, eni.Value(), want.mbps, want.eni)
		}
	}
}

// An account without the permission works without spot prices, and logs that
// once.
func TestSpotPricesWithoutPermission(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large"))
	w.region.spot = map[string]map[string]string{"m5.large": {"us-east-1a": "0.03"}}
	w.region.fails["GetProducts"] = &smithy.GenericAPIError{Code: "AccessDeniedException"}
	lines := 0
	ctx := log.IntoContext(t.Context(), funcr.New(func(string, string) { lines++ }, funcr.Options{}))
	for range 3 {
		if err := w.RefreshPrices(ctx); err != nil {
			t.Error(err)
		}
	}
	if got := available(w.types(t, plain())["m5.large"]); lines != 1 || got != "a od 0.096, a spot 0.03, b od 0.096" {
		t.Errorf("%d lines, %s", lines, got)
	}
}

// spec 65/59: what spot answers lack keeps its price.
func TestSpot(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large", "c5.large"), func(c *catalogue.Config) { c.Pricing = nil })
	w.region.spot = map[string]map[string]string{"m5.large": {"us-east-1a": "0.03", "us-east-1c": "0.01"}, "c5.large": {"us-east-1b": "0.05"}}
	refresh := func(w *world, _ *awsv1.EC2NodeClass) { _ = w.RefreshPrices(t.Context()) }
	run(t, w, plain(), []step{
		{"first", refresh, []string{"c5.large", "m5.large"}, "a od 0.096, a spot 0.03, b od 0.096"},
		{"the same", refresh, nil, ""},
		{"one more zone, and one less", func(w *world, c *awsv1.EC2NodeClass) {
			w.region.spot = map[string]map[string]string{"m5.large": {"us-east-1b": "0.02"}}
			refresh(w, c)
		}, []string{"m5.large"}, "a od 0.096, a spot 0.03, b od 0.096, b spot 0.02"},
		{"nothing", func(w *world, _ *awsv1.EC2NodeClass) {
			w.region.spot = nil
			if err := w.RefreshPrices(t.Context()); err == nil || err.Error() != "no spot pricing found" {
				t.Error(err)
			}
		}, nil, ""},
	})
}

// Prices of many types that collapse at once are believed when three answers say
// so; of one type at once.
func TestCollapsedPrices(t *testing.T) {
	r := newRegion(t, "m5.large", "c5.large", "r5.large", "m6i.large", "c6i.large")
	w := newWorld(t, r)
	set := func(dollars string) {
		r.prices = map[string]string{"m5.metal": "5"}
		for _, i := range r.types {
			r.prices[string(i.InstanceType)] = dollars
			r.spot[string(i.InstanceType)] = map[string]string{"us-east-1a": dollars}
		}
	}
	r.metal = []string{"m5.metal"}
	for i, s := range []struct{ all, m5, want string }{
		{"0.1", "0.1", "a od 0.1, a spot 0.1, b od 0.1"},
		{"0.1", "0.001", "a od 0.001, a spot 0.001, b od 0.001"},
		{"0.1", "0.1", "a od 0.1, a spot 0.1, b od 0.1"},
		{"0.001", "0.001", "a od 0.1, a spot 0.1, b od 0.1"},
		{"0.001", "0.001", "a od 0.1, a spot 0.1, b od 0.1"},
		{"0.1", "0.1", "a od 0.1, a spot 0.1, b od 0.1"},
		{"0.001", "0.001", "a od 0.1, a spot 0.1, b od 0.1"},
		{"0.001", "0.001", "a od 0.1, a spot 0.1, b od 0.1"},
		{"0.001", "0.001", "a od 0.001, a spot 0.001, b od 0.001"},
	} {
		set(s.all)
		r.prices["m5.large"], r.spot["m5.large"]["us-east-1a"] = s.m5, s.m5
		if err := w.RefreshPrices(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := available(w.types(t, plain())["m5.large"]); got != s.want {
			t.Errorf("answer %d: %s, want %s", i, got, s.want)
		}
	}
}

// spec 65/58: NodeOverlays price types that have no price.
func TestOverlays(t *testing.T) {
	const unpriced = "m7a.metal-48xl" // in a region whose built-in prices lack it
	overlay := func(name, price string, weight int32, valid bool, keys ...string) client.Object {
		o := &v1alpha1.NodeOverlay{}
		o.Name, o.Spec.Price, o.Spec.Weight = name, &price, &weight
		for _, key := range keys {
			values := []string{unpriced}
			if key != corev1.LabelInstanceTypeStable {
				values = []string{"amd64"}
			}
			o.Spec.Requirements = append(o.Spec.Requirements, v1alpha1.NodeSelectorRequirement{Key: key, Operator: "In", Values: values})
		}
		set := o.StatusConditions(o.CreationTimestamp.Time)
		if valid {
			set.SetTrue(v1alpha1.ValidationSucceededCondition)
		}
		return o
	}
	const key = corev1.LabelInstanceTypeStable
	for _, c := range []struct {
		name     string
		off      bool
		overlays []client.Object
		want     string
	}{
		{"none", false, nil, ""},
		{"the gate is off", true, []client.Object{overlay("o", "1.23", 1, true, key)}, ""},
		{"one", false, []client.Object{overlay("o", "1.23", 1, true, key)}, "a od 1.23, b od 1.23"},
		{"not found valid", false, []client.Object{overlay("o", "1.23", 1, false, key)}, ""},
		{"that demands more", false, []client.Object{overlay("o", "1.23", 1, true, key, corev1.LabelArchStable)}, ""},
		{"that demands something else", false, []client.Object{overlay("o", "1.23", 1, true, corev1.LabelArchStable)}, ""},
		{"the heavier", false, []client.Object{overlay("o", "1.23", 1, true, key), overlay("p", "2", 2, true, key)}, "a od 2, b od 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := runtime.NewScheme()
			if err := scheme.AddToScheme(s); err != nil {
				t.Fatal(err)
			}
			reader := fake.NewClientBuilder().WithScheme(s).WithObjects(c.overlays...).WithStatusSubresource(c.overlays...).Build()
			for _, o := range c.overlays {
				if err := reader.Status().Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			r := newRegion(t, unpriced, "m5.large")
			for i := range r.types {
				r.types[i].SupportedUsageClasses = r.types[i].SupportedUsageClasses[:1]
			}
			w := newWorld(t, r, func(config *catalogue.Config) {
				config.Cluster.Region = "cn-north-1"
				if !c.off {
					config.Overlays = reader
				}
			})
			before := w.types(t, plain())
			if !c.off {
				if err := w.RefreshOverlays(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			after := w.types(t, plain())
			if got := available(after[unpriced]); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if after["m5.large"] != before["m5.large"] {
				t.Error("a type with a price was made anew")
			}
		})
	}
}
