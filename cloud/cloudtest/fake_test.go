// SPDX-License-Identifier: Apache-2.0

package cloudtest_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
)

func newFake() *cloudtest.Fake {
	return cloudtest.NewFake(clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
}

func TestFakeConforms(t *testing.T) {
	cloudtest.Run(t, func(*testing.T) *cloudtest.Cloud {
		f := newFake()
		return &cloudtest.Cloud{
			Provider: f,
			Pool:     &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			Class:    v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
			SellOut:  f.SellOut,
		}
	})
}

func claim(name string) *v1.NodeClaim {
	return &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// A launch that failed and is repeated starts a single machine: spec 55/14.
func TestFakeFails(t *testing.T) {
	f, boom := newFake(), errors.New("boom")
	f.FailNext(cloudtest.Create, boom)
	if _, err := f.Create(t.Context(), claim("a")); !errors.Is(err, boom) {
		t.Errorf("first create: %v, want boom", err)
	}
	for range 2 {
		if _, err := f.Create(t.Context(), claim("a")); err != nil {
			t.Errorf("create: %v", err)
		}
	}
	if got := len(f.Machines()); got != 1 {
		t.Errorf("%d machines, want 1", got)
	}
	if got := len(f.Calls(cloudtest.Create)); got != 3 {
		t.Errorf("%d calls, want 3", got)
	}

	f.FailPool("broken", boom)
	broken := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "broken"}}
	if _, err := f.InstanceTypes(t.Context(), broken); !errors.Is(err, boom) {
		t.Errorf("types of the broken pool: %v, want boom", err)
	}
	if types, err := f.InstanceTypes(t.Context(), &v1.NodePool{}); err != nil || len(types) != 3 {
		t.Errorf("types of another pool: %d, %v", len(types), err)
	}
}

func TestFakeLimitsCreates(t *testing.T) {
	f := newFake()
	f.AllowCreates(1)
	if _, err := f.Create(t.Context(), claim("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Create(t.Context(), claim("b")); !cloud.IsInsufficientCapacity(err) {
		t.Errorf("second create: %v, want insufficient capacity", err)
	}
	if _, err := f.Create(t.Context(), claim("a")); err != nil {
		t.Errorf("first create again: %v", err)
	}
}

func TestFakeDeletes(t *testing.T) {
	f, c := newFake(), claim("a")
	m, err := f.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Status.ProviderID = m.ProviderID
	f.SetSlowDelete(2)
	for i, gone := range []bool{false, false, true, true} {
		if err := f.Delete(t.Context(), c); cloud.IsNotFound(err) != gone {
			t.Errorf("delete %d: %v", i, err)
		}
	}
	f.Add(cloud.Machine{ProviderID: "fake:///lost"})
	f.Lose("fake:///lost")
	if _, err := f.Get(t.Context(), "fake:///lost"); !cloud.IsNotFound(err) {
		t.Errorf("lost machine: %v", err)
	}
}
