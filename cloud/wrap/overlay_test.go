// SPDX-License-Identifier: Apache-2.0

package wrap_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/cloud/overlay"
	"karpenter/cloud/wrap"
)

// With the overlays of the pool evaluated, the wrapper is as good a provider
// as any.
func TestOverlayConforms(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, set := overlay.Evaluate(nil, []overlay.Subject{{Pool: pool}}, v1.DefaultLabels())
	overlays := &overlay.Store{}
	overlays.Swap(set)
	cloudtest.Run(t, func(*testing.T) *cloudtest.Cloud {
		f := cloudtest.NewFake(clk)
		return &cloudtest.Cloud{
			Provider: wrap.Overlay(f, overlays),
			Pool:     pool,
			Class:    v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
			SellOut:  f.SellOut,
		}
	})
}

func TestOverlayErrors(t *testing.T) {
	fake := cloudtest.NewFake(clocktesting.NewFakePassiveClock(time.Time{}))
	p := wrap.Overlay(fake, &overlay.Store{})
	if _, err := p.InstanceTypes(t.Context(), &v1.NodePool{}); !cloud.IsUnevaluatedNodePool(err) { // spec 45/24
		t.Errorf("pool not evaluated: error %v", err)
	}
	boom := errors.New("boom")
	fake.FailNext(cloudtest.InstanceTypes, boom)
	if _, err := p.InstanceTypes(t.Context(), &v1.NodePool{}); !errors.Is(err, boom) || cloud.IsUnevaluatedNodePool(err) {
		t.Errorf("the provider's error became %v", err)
	}
}
