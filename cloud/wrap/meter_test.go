// SPDX-License-Identifier: Apache-2.0

package wrap_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/cloud/wrap"
)

func TestMeterConforms(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	cloudtest.Run(t, func(*testing.T) *cloudtest.Cloud {
		f := cloudtest.NewFake(clk)
		return &cloudtest.Cloud{
			Provider: wrap.Meter(f, wrap.NewMetrics(prometheus.NewRegistry()), clk, "test"),
			Pool:     &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			Class:    v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
			SellOut:  f.SellOut,
		}
	})
}

// spec 55/2: the error label has three values and "" for the rest.
func TestMeterLabelsErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&cloud.NotFoundError{Err: boom}, "NodeClaimNotFoundError"},
		{&cloud.NodeClassNotReadyError{Err: boom}, "NodeClassNotReadyError"},
		{&cloud.InsufficientCapacityError{Err: boom}, "InsufficientCapacityError"},
		{fmt.Errorf("launch: %w", &cloud.InsufficientCapacityError{Err: boom}), "InsufficientCapacityError"},
		{&cloud.CreateError{Err: boom}, "unknown"},
		{boom, "unknown"}, // spec 48/81
	} {
		clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		fake, reg := cloudtest.NewFake(clk), prometheus.NewRegistry()
		p := wrap.Meter(fake, wrap.NewMetrics(reg), clk, "nodeclaim.lifecycle")
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.NodePoolLabelKey: "general"}}}
		fake.FailNext(cloudtest.Create, tc.err)
		if _, err := p.Create(t.Context(), claim); !errors.Is(err, boom) {
			t.Errorf("%v: error became %v", tc.err, err)
		}
		if _, err := p.InstanceTypes(t.Context(), &v1.NodePool{}); err != nil {
			t.Fatal(err)
		}
		counts := gather(t, reg)
		failed := fmt.Sprintf(`karpenter_cloudprovider_errors_total controller="nodeclaim.lifecycle" error=%q method="Create" nodepool="general" provider="fake"`, tc.want)
		for series, want := range map[string]float64{
			failed: 1,
			`karpenter_cloudprovider_duration_seconds controller="nodeclaim.lifecycle" method="Create" provider="fake"`:           1,
			`karpenter_cloudprovider_duration_seconds controller="nodeclaim.lifecycle" method="GetInstanceTypes" provider="fake"`: 1,
		} {
			if counts[series] != want {
				t.Errorf("%v: %s is %v, want %v in %v", tc.err, series, counts[series], want, counts)
			}
		}
		if len(counts) != 3 {
			t.Errorf("%v: series %v, want 3", tc.err, counts)
		}
	}
}

// gather returns counter values and histogram counts by name and labels.
func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			key := f.GetName()
			for _, l := range m.Label {
				key += fmt.Sprintf(" %s=%q", l.GetName(), l.GetValue())
			}
			out[key] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}
