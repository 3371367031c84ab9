// SPDX-License-Identifier: Apache-2.0

package cloudtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/health"
	"karpenter/model"
)

func testConstants(t *testing.T, c *Cloud) {
	if c.Provider.Name() == "" {
		t.Error("no name")
	}
	if len(c.Provider.NodeClasses()) == 0 {
		t.Error("no node classes")
	}
	for _, gvk := range c.Provider.NodeClasses() {
		if gvk.Kind == "" || gvk.Group == "" || gvk.Version == "" {
			t.Errorf("incomplete kind of node class %v", gvk)
		}
	}
	if diff := cmp.Diff(c.Provider.NodeClasses(), c.Provider.NodeClasses()); diff != "" {
		t.Errorf("node classes differ between calls: %s", diff)
	}
	if policies := c.Provider.RepairPolicies(); len(policies) > 0 {
		if _, err := health.New(policies); err != nil {
			t.Errorf("the repair policies cannot be used together: %v", err)
		}
	}
	if diff := cmp.Diff(c.Provider.RepairPolicies(), c.Provider.RepairPolicies()); diff != "" {
		t.Errorf("repair policies differ between calls: %s", diff)
	}
}

func testTypes(t *testing.T, c *Cloud) {
	names := map[string]bool{}
	for _, it := range c.types(t) {
		if names[it.Name] {
			t.Errorf("type %s is there twice", it.Name)
		}
		names[it.Name] = true
		if name, _ := it.Requirements.Value(corev1.LabelInstanceTypeStable); name != it.Name {
			t.Errorf("%s: label of the instance type is %q", it.Name, name)
		}
		for _, key := range []string{corev1.LabelArchStable, corev1.LabelOSStable} {
			if r, ok := it.Requirements.Get(key); !ok || r.Operator() != model.In {
				t.Errorf("%s: %s is not defined", it.Name, key)
			}
		}
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
			if q := it.Capacity[name]; q.Sign() <= 0 {
				t.Errorf("%s: no capacity of %s", it.Name, name)
			}
		}
		if !cloud.Holds(it.Capacity, it.Allocatable()) {
			t.Errorf("%s: more allocatable than capacity", it.Name)
		}
		checkOfferings(t, it)
	}
	if len(names) == 0 {
		t.Error("no types")
	}
	if diff := cmp.Diff(c.types(t), c.types(t)); diff != "" {
		t.Errorf("types differ between calls: %s", diff)
	}
}

func checkOfferings(t *testing.T, it *cloud.InstanceType) {
	seen := map[string]bool{}
	for i := range it.Offerings {
		o := &it.Offerings[i]
		id := o.Requirements.String()
		if seen[id] {
			t.Errorf("%s: offering %s is there twice", it.Name, id)
		}
		seen[id] = true
		if o.Price < 0 {
			t.Errorf("%s: offering %s has price %d", it.Name, id, o.Price)
		}
		for key, value := range map[string]string{model.LabelZone: o.Zone(), model.LabelCapacityType: o.CapacityType()} {
			union, ok := it.Requirements.Get(key)
			if value == "" || !ok || !union.Has(value) {
				t.Errorf("%s: offering %s has %s %q, which the type does not name", it.Name, id, key, value)
			}
		}
	}
	if len(it.Offerings) == 0 {
		t.Errorf("%s: no offerings", it.Name)
	}
}

// testCheapest compares launches with the cheapest offering found by looking
// at all of them one by one.
func testCheapest(t *testing.T, c *Cloud) {
	offered := c.types(t)
	sample := offered[len(offered)/2]
	zone, bought := sample.Offerings[0].Zone(), sample.Offerings[0].CapacityType()
	demands := map[string][]v1.NodeSelectorRequirementWithMinValues{
		"anything": nil,
		"zone":     {in(model.LabelZone, zone)},
		"bought":   {in(model.LabelCapacityType, bought)},
		"both":     {in(model.LabelZone, zone), in(model.LabelCapacityType, bought)},
		"type":     {in(model.LabelInstanceType, sample.Name)},
		"other":    {{Key: model.LabelInstanceType, Operator: corev1.NodeSelectorOpNotIn, Values: []string{sample.Name}}},
	}
	for name, requirements := range demands {
		for i, cpu := range []string{"0", "1500m"} {
			claim := c.claim(t, fmt.Sprintf("cheapest-%s-%d", name, i), requirements...)
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
			c.store(t, claim)
			want, ok := cheapest(offered, claim)
			if !ok {
				continue
			}
			m := c.launch(t, claim)
			if got := priceOf(offered, m); got != want {
				t.Errorf("%s, %s cpu: launched %v at %v, cheapest is %v", name, cpu, m.Labels[model.LabelInstanceType], got, want)
			}
			if _, ok := model.LabelRequirements(m.Labels).Compatible(cloud.Demand(claim), nil); !ok {
				t.Errorf("%s, %s cpu: labels %v do not meet the claim", name, cpu, m.Labels)
			}
		}
	}
}

func cheapest(offered []*cloud.InstanceType, claim *v1.NodeClaim) (model.Price, bool) {
	var best model.Price
	found := false
	for _, it := range offered {
		allocatable := it.Allocatable()
		requested, have := claim.Spec.Resources.Requests[corev1.ResourceCPU], allocatable[corev1.ResourceCPU]
		if have.Cmp(requested) < 0 {
			continue
		}
		for _, o := range it.Offerings {
			fits := o.Available
			for _, r := range cloud.Demand(claim) {
				for _, rs := range []model.Requirements{it.Requirements, o.Requirements} {
					if own, ok := rs.Get(r.Key); ok && !own.Intersects(r) {
						fits = false
					}
				}
			}
			if fits && (!found || o.Price < best) {
				best, found = o.Price, true
			}
		}
	}
	return best, found
}

func priceOf(offered []*cloud.InstanceType, m *cloud.Machine) model.Price {
	for _, it := range offered {
		for i := range it.Offerings {
			o := &it.Offerings[i]
			if it.Name == m.Labels[model.LabelInstanceType] && o.Zone() == m.Labels[model.LabelZone] &&
				o.CapacityType() == m.Labels[model.LabelCapacityType] {
				return o.Price
			}
		}
	}
	return -1
}

func testMachine(t *testing.T, c *Cloud) {
	m := c.launch(t, c.claim(t, "machine"))
	if m.ProviderID == "" {
		t.Error("no provider ID")
	}
	for _, key := range []string{
		model.LabelInstanceType, model.LabelZone, model.LabelCapacityType, model.LabelArch, model.LabelOS, model.LabelNodePool,
	} {
		if m.Labels[key] == "" {
			t.Errorf("no label %s", key)
		}
	}
	for _, list := range []corev1.ResourceList{m.Capacity, m.Allocatable} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
			if q := list[name]; q.Sign() <= 0 {
				t.Errorf("no %s in %v", name, list)
			}
		}
	}
	if !cloud.Holds(m.Capacity, m.Allocatable) {
		t.Error("more allocatable than capacity")
	}
	if m.Deleting {
		t.Error("a new machine is being deleted")
	}
}

// testIdempotent repeats a launch after a crash before the answer was
// recorded, and with it recorded but the caller's claim out of date.
func testIdempotent(t *testing.T, c *Cloud) {
	claim := c.claim(t, "idempotent")
	before := claim.DeepCopy()
	first, err := c.Provider.Create(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	same := func(step string, claim *v1.NodeClaim) {
		t.Helper()
		again, err := c.Provider.Create(t.Context(), claim)
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if again.ProviderID != first.ProviderID {
			t.Errorf("%s: machine %s, at first %s", step, again.ProviderID, first.ProviderID)
		}
		for _, key := range []string{model.LabelInstanceType, model.LabelZone, model.LabelCapacityType} {
			if again.Labels[key] != first.Labels[key] {
				t.Errorf("%s: %s is %q, at first %q", step, key, again.Labels[key], first.Labels[key])
			}
		}
	}
	same("before the first was recorded", claim)
	c.record(t, claim, first)
	same("after it was recorded", claim)
	same("with a claim from before it was recorded", before)
	c.settle(t)
	same("after it has come up", before)
	c.settle(t)
	if got := c.live(t); len(got) != 1 {
		t.Errorf("instances %v, want one", got)
	}
}

func testIdempotentConcurrent(t *testing.T, c *Cloud) {
	claim := c.claim(t, "concurrent")
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			m, err := c.Provider.Create(t.Context(), claim.DeepCopy())
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = m.ProviderID
		})
	}
	wg.Wait()
	if got := slices.Compact(slices.Sorted(slices.Values(ids))); len(got) != 1 {
		t.Errorf("one claim was launched as %v", got)
	}
}

func testRefuses(t *testing.T, c *Cloud) {
	nowhere := c.claim(t, "nowhere", in(model.LabelZone, "no-such-zone"))
	huge := c.claim(t, "huge")
	huge.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1M")}
	c.store(t, huge)
	for _, claim := range []*v1.NodeClaim{nowhere, huge} {
		if m, err := c.Provider.Create(t.Context(), claim); !cloud.IsInsufficientCapacity(err) {
			t.Errorf("%s: machine %v, error %v; want insufficient capacity", claim.Name, m, err)
		}
	}
	if got := c.live(t); len(got) != 0 {
		t.Errorf("instances %v after rejections", got)
	}
}

func testSoldOut(t *testing.T, c *Cloud) {
	if c.SellOut == nil {
		t.Skip("the provider can't be told to sell out")
	}
	sample := c.types(t)[0]
	for i := range sample.Offerings {
		c.SellOut(sample.Name, sample.Offerings[i].Zone(), sample.Offerings[i].CapacityType())
	}
	// One launch may try some of the offerings only, such as those of one
	// capacity type.
	for i := range sample.Offerings {
		only := c.claim(t, fmt.Sprintf("sold-out-%d", i), in(model.LabelInstanceType, sample.Name))
		if m, err := c.Provider.Create(t.Context(), only); !cloud.IsInsufficientCapacity(err) {
			t.Fatalf("machine %v, error %v; want insufficient capacity", m, err)
		}
	}
	for _, it := range c.types(t) {
		for _, o := range it.Offerings {
			if o.Available == (it.Name == sample.Name) {
				t.Errorf("%s in %s as %s: available is %v after %s ran out of capacity", it.Name, o.Zone(), o.CapacityType(), o.Available, sample.Name)
			}
		}
	}
	if len(c.types(t)) > 1 {
		if m := c.launch(t, c.claim(t, "anything-else")); m.Labels[model.LabelInstanceType] == sample.Name {
			t.Errorf("launched %s, which has no capacity", sample.Name)
		}
	}
}

func testGet(t *testing.T, c *Cloud) {
	if _, err := c.Provider.Get(t.Context(), "no-such:///machine"); !cloud.IsNotFound(err) {
		t.Errorf("unknown machine: %v, want not found", err)
	}
	claim := c.claim(t, "get")
	m, err := c.Provider.Create(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	c.record(t, claim, m)
	for _, when := range []string{"before it has come up", "after it has come up"} {
		got, err := c.Provider.Get(t.Context(), m.ProviderID)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got.ProviderID != m.ProviderID || got.Labels[model.LabelInstanceType] != m.Labels[model.LabelInstanceType] {
			t.Errorf("%s: got %s, %v", when, got.ProviderID, got.Labels)
		}
		c.settle(t)
	}
}

func testList(t *testing.T, c *Cloud) {
	if got := c.live(t); len(got) != 0 {
		t.Fatalf("instances %v at the start", got)
	}
	var want []string
	for i := range 5 {
		claim := c.claim(t, fmt.Sprintf("list-%d", i))
		m, err := c.Provider.Create(t.Context(), claim)
		if err != nil {
			t.Fatal(err)
		}
		c.record(t, claim, m)
		want = append(want, m.ProviderID)
		slices.Sort(want)
		if diff := cmp.Diff(want, c.live(t)); diff != "" {
			t.Errorf("before it has come up: %s", diff)
		}
		c.settle(t)
		if diff := cmp.Diff(want, c.live(t)); diff != "" {
			t.Errorf("after it has come up: %s", diff)
		}
	}
	machines, err := c.Provider.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := cloud.Orphans(machines, nil, machines[0].Created.Add(1<<40)); len(got) > 0 && len(got) != len(machines) {
		t.Errorf("%d of %d instances have a start time", len(got), len(machines))
	}
}

// remove calls Delete until it answers NotFound.
func (c *Cloud) remove(t *testing.T, claim *v1.NodeClaim) {
	t.Helper()
	for range 100 {
		err := c.Provider.Delete(t.Context(), claim)
		if cloud.IsNotFound(err) {
			return
		}
		if err != nil {
			t.Fatalf("delete %s: %v", claim.Name, err)
		}
		c.settle(t)
	}
	t.Fatalf("%s is still there after 100 deletes", claim.Name)
}

func testDelete(t *testing.T, c *Cloud) {
	other := c.launch(t, c.claim(t, "other"))
	for _, up := range []bool{true, false} {
		claim := c.claim(t, fmt.Sprintf("delete-%v", up))
		m, err := c.Provider.Create(t.Context(), claim)
		if err != nil {
			t.Fatal(err)
		}
		c.record(t, claim, m)
		if up {
			c.settle(t)
		}
		c.remove(t, claim)
		c.settle(t)
		if _, err := c.Provider.Get(t.Context(), m.ProviderID); !cloud.IsNotFound(err) {
			t.Errorf("up %v: get: %v, want not found", up, err)
		}
		if diff := cmp.Diff([]string{other.ProviderID}, c.live(t)); diff != "" {
			t.Errorf("up %v: list: %s", up, diff)
		}
	}
}

func testDeleteAgain(t *testing.T, c *Cloud) {
	claim := c.claim(t, "again")
	if err := c.Provider.Delete(t.Context(), claim); !cloud.IsNotFound(err) {
		t.Errorf("never launched: %v, want not found", err)
	}
	c.launch(t, claim)
	c.remove(t, claim)
	for range 3 {
		if err := c.Provider.Delete(t.Context(), claim); !cloud.IsNotFound(err) {
			t.Errorf("deleted before: %v, want not found", err)
		}
	}
	stranger := &cloud.Machine{ProviderID: "no-such:///machine"}
	if err := c.Provider.Delete(t.Context(), stranger.Remnant()); !cloud.IsNotFound(err) {
		t.Errorf("unknown machine: %v, want not found", err)
	}
}

func testDrift(t *testing.T, c *Cloud) {
	claim := c.claim(t, "drift")
	c.launch(t, claim)
	if reason, err := c.Provider.IsDrifted(t.Context(), claim); reason != "" || err != nil {
		t.Errorf("drift %q, error %v", reason, err)
	}
}

func testConcurrency(t *testing.T, c *Cloud) {
	var wg sync.WaitGroup
	var deleted []*v1.NodeClaim
	for i := range 8 {
		claim := c.claim(t, fmt.Sprintf("many-%d", i))
		if i%2 == 0 {
			deleted = append(deleted, claim)
		}
		wg.Go(func() {
			m, err := c.Provider.Create(t.Context(), claim)
			if err != nil {
				t.Error(err)
				return
			}
			c.record(t, claim, m)
			_, listErr := c.Provider.List(t.Context())
			_, typesErr := c.Provider.InstanceTypes(t.Context(), c.Pool)
			_, getErr := c.Provider.Get(t.Context(), m.ProviderID)
			if err := errors.Join(listErr, typesErr, getErr); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				if err := c.Provider.Delete(t.Context(), claim); err != nil && !cloud.IsNotFound(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, claim := range deleted {
		c.remove(t, claim)
	}
	c.settle(t)
	if got := c.live(t); len(got) != 4 {
		t.Errorf("instances %v, want 4", got)
	}
}
