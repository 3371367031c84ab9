// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/model"
	"karpenter/sim/simcloud"
)

func TestProviderKeepsTheContract(t *testing.T) {
	cloudtest.Run(t, func(*testing.T) *cloudtest.Cloud {
		c := simcloud.New(simcloud.Types())
		c.SetStopping(0)
		return &cloudtest.Cloud{
			Provider: c,
			Pool:     &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
			Class:    v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"},
			SellOut: func(instanceType, zone, capacityType string) {
				c.SetEmpty(simcloud.Offering{Type: instanceType, Zone: zone, CapacityType: capacityType}, true)
			},
		}
	})
}

func claim(name string) *v1.NodeClaim {
	return &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       v1.NodeClaimSpec{NodeClassRef: &v1.NodeClassReference{Name: "default"}},
	}
}

func launch(t *testing.T, c *simcloud.Cloud, name string) *v1.NodeClaim {
	t.Helper()
	out := claim(name)
	m, err := c.Create(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	out.Status.ProviderID = m.ProviderID
	return out
}

func TestInstancesTerminateInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := simcloud.New(simcloud.Types())
		a := launch(t, c, "a")
		if !c.Next().IsZero() {
			t.Error("a machine that runs ends by itself")
		}
		if err := c.Delete(t.Context(), a); err != nil || c.Next() != time.Now().Add(simcloud.Stopping) {
			t.Errorf("delete: %v; it ends in %s", err, time.Until(c.Next()))
		}
		version := c.Version()
		if m, err := c.Get(t.Context(), a.Status.ProviderID); err != nil || !m.Deleting {
			t.Errorf("a machine that ends is %+v, %v", m, err)
		}
		time.Sleep(simcloud.Stopping)
		if err := c.Delete(t.Context(), a); !cloud.IsNotFound(err) || c.Version() == version {
			t.Errorf("after its end: %v, version %d", err, c.Version())
		}
		if m, ok := c.Find(a.Status.ProviderID); !ok || m.Runs() || m.Lost {
			t.Errorf("it is remembered as %+v", m)
		}
		if _, err := c.Create(t.Context(), a); !cloud.IsCreateError(err) {
			t.Errorf("a second machine for the claim: %v", err)
		}
	})
}

func TestLagHidesNewInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := simcloud.New(simcloud.Types())
		c.SetLag(time.Minute)
		a := launch(t, c, "a")
		again, err := c.Create(t.Context(), a)
		if err != nil || again.ProviderID != a.Status.ProviderID {
			t.Errorf("a launch is not idempotent: %v, %v", again, err)
		}
		if _, err := c.Get(t.Context(), a.Status.ProviderID); !cloud.IsNotFound(err) {
			t.Errorf("get: %v", err)
		}
		if list, err := c.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("list: %v, %v", list, err)
		}
		time.Sleep(time.Minute)
		if list, err := c.List(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("list after the lag: %v, %v", list, err)
		}
	})
}

func TestMishaps(t *testing.T) {
	c := simcloud.New(simcloud.Types())
	a := launch(t, c, "a")
	c.SetDrift(a.Status.ProviderID, "ImageDrift")
	if why, err := c.IsDrifted(t.Context(), a); why != "ImageDrift" || err != nil {
		t.Errorf("drift %q, %v", why, err)
	}
	c.Lose(a.Status.ProviderID)
	if _, err := c.IsDrifted(t.Context(), a); !cloud.IsNotFound(err) {
		t.Errorf("drift of a lost machine: %v", err)
	}
	if m, _ := c.Find(a.Status.ProviderID); !m.Lost || m.Runs() {
		t.Errorf("a lost machine is %+v", m)
	}
	c.SetClassReady("default", "no image")
	if _, err := c.Create(t.Context(), claim("b")); !cloud.IsNodeClassNotReady(err) {
		t.Errorf("launch with a class that is not ready: %v", err)
	}
}

func TestTypesAreReplacedNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := simcloud.New(simcloud.Types())
		before := c.Types()
		cheapest := simcloud.Offering{Type: before[0].Name, Zone: simcloud.Zones()[0], CapacityType: v1.CapacityTypeSpot}
		price := func(list []*cloud.InstanceType) (model.Price, bool) {
			for _, o := range list[0].Offerings {
				if o.Zone() == cheapest.Zone && o.CapacityType() == cheapest.CapacityType {
					return o.Price, o.Available
				}
			}
			return 0, false
		}
		old, _ := price(before)
		c.SetPrice(cheapest, 2*old)
		after := c.Types()
		if now, _ := price(after); now != 2*old || after[0] == before[0] || after[1] != before[1] {
			t.Errorf("price %v, was %v; other types stay the same: %t", now, old, after[1] == before[1])
		}
		if was, _ := price(before); was != old {
			t.Error("a type that was handed out has changed")
		}
		c.SetPrice(cheapest, old)
		c.SetEmpty(cheapest, true)
		launch(t, c, "a")
		if _, available := price(c.Types()); available {
			t.Error("an offering that failed to launch is shown as available")
		}
		time.Sleep(3 * time.Minute)
		if _, available := price(c.Types()); !available {
			t.Error("an offering is not tried again")
		}
	})
}
