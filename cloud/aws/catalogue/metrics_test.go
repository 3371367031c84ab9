// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/catalogue"
)

// byName is a provider in which a pool has the class of its own name.
type byName struct {
	cloud.Provider
	w       *world
	classes map[string]*awsv1.EC2NodeClass
}

func (p *byName) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{{Group: awsv1.Group, Version: "v1", Kind: "EC2NodeClass"}}
}

func (p *byName) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloud.InstanceType, error) {
	class := p.classes[pool.Name]
	if class == nil {
		return nil, errors.New("no such class")
	}
	return p.w.Types(ctx, class)
}

// spec 65/71: what any pool can buy is available; a pool whose types can't be had
// hides nothing; reservations have series under their gate only.
func TestReport(t *testing.T) {
	for _, reserved := range []bool{true, false} {
		w := newWorld(t, newRegion(t, "m5.large"))
		a, b := plain(), plain()
		a.Name, b.Name = "a", "b"
		a.Status.Subnets, b.Status.Subnets = a.Status.Subnets[:1], b.Status.Subnets[1:2]
		if reserved {
			b.Status.CapacityReservations = []awsv1.CapacityReservation{{ID: "cr-1", InstanceType: "m5.large", AvailabilityZone: "us-east-1b"}}
			w.left["cr-1"] = 1
		}
		s := runtime.NewScheme()
		if err := scheme.AddToScheme(s); err != nil {
			t.Fatal(err)
		}
		builder := fake.NewClientBuilder().WithScheme(s)
		for name, group := range map[string]string{"a": awsv1.Group, "b": awsv1.Group, "broken": awsv1.Group, "foreign": "example.com"} {
			pool := &v1.NodePool{}
			pool.Name = name
			pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: group, Kind: "EC2NodeClass", Name: name}
			builder = builder.WithObjects(pool)
		}
		report := &catalogue.Report{
			Catalogue: w.Catalogue, Reader: builder.Build(), Reserved: reserved,
			Provider: &byName{w: w, classes: map[string]*awsv1.EC2NodeClass{"a": a, "b": b}},
		}
		if err := report.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"cpu_cores m5.large 2", "memory_bytes m5.large 8589934592",
			"offering_available on-demand m5.large us-east-1a 1", "offering_available on-demand m5.large us-east-1b 1",
			"offering_available on-demand m5.large us-east-1c 0",
			"offering_available spot m5.large us-east-1a 1", "offering_available spot m5.large us-east-1b 1", "offering_available spot m5.large us-east-1c 0",
			"offering_price_estimate on-demand m5.large us-east-1a 0.096", "offering_price_estimate on-demand m5.large us-east-1b 0.096",
			"offering_price_estimate on-demand m5.large us-east-1c 0.096",
			"offering_price_estimate spot m5.large us-east-1a 0.096", "offering_price_estimate spot m5.large us-east-1b 0.096",
			"offering_price_estimate spot m5.large us-east-1c 0.096",
		}
		if reserved {
			want = append(want, "offering_available reserved m5.large us-east-1a 0", "offering_available reserved m5.large us-east-1b 1",
				"offering_available reserved m5.large us-east-1c 0", "offering_price_estimate reserved m5.large us-east-1b 1e-08")
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, gathered(t, report)); diff != "" {
			t.Error(diff)
		}
	}
}

// gathered prints the series of instance types as "metric labels value".
func gathered(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.Metric {
			text := strings.TrimPrefix(f.GetName(), "karpenter_cloudprovider_instance_type_")
			for _, l := range m.Label {
				text += " " + l.GetValue()
			}
			value := fmt.Sprint(m.Gauge.GetValue())
			if m.Gauge.GetValue() > 1e6 {
				value = fmt.Sprintf("%.0f", m.Gauge.GetValue())
			}
			out = append(out, text+" "+value)
		}
	}
	slices.Sort(out)
	return out
}
