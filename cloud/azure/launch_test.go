// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azurevm"
	"karpenter/model"
)

// d4s pins a claim to one offering.
func d4s(zone, capacityType string) []v1.NodeSelectorRequirementWithMinValues {
	return []v1.NodeSelectorRequirementWithMinValues{
		in(model.LabelInstanceType, "Standard_D4s_v3"), in(model.LabelZone, zone), in(model.LabelCapacityType, capacityType),
	}
}

// short returns the offerings of D4s_v3 that are not available.
func (r *region) shortages() []string {
	r.t.Helper()
	types, err := r.InstanceTypes(r.t.Context(), r.pool)
	must(r.t, err)
	var out []string
	for _, o := range named(types, "Standard_D4s_v3").Offerings {
		if !o.Available {
			out = append(out, o.Zone()+" "+o.CapacityType())
		}
	}
	slices.Sort(out)
	return out
}

func (r *region) wantShort(what string, want ...string) {
	r.t.Helper()
	slices.Sort(want)
	if got := r.shortages(); !slices.Equal(got, want) {
		r.t.Errorf("%s: short are %q, want %q", what, got, want)
	}
}

// TestLaunch covers spec 71/51 and 71/52: what a claim learns of its machine.
func TestLaunch(t *testing.T) {
	r := newRegion(t)
	for _, capacityType := range []string{"on-demand", "spot"} {
		claim := r.claim("default-"+capacityType, d4s("eastus-2", capacityType)...)
		calls := r.azure.Calls()
		m := r.launch(claim)
		after := r.azure.Calls()
		if puts, gets := after["PUT machine"]-calls["PUT machine"], after["GET machine"]-calls["GET machine"]; puts != 1 || gets != 2 {
			t.Errorf("%s: %d PUT, %d GET", capacityType, puts, gets)
		}
		if !strings.HasPrefix(m.ProviderID, "azure:///subscriptions/sub/resourceGroups/mc_shop_prod_eastus/providers/Microsoft.Compute/virtualMachines/aks-machines-default-"+capacityType+"-") {
			t.Errorf("provider ID %s", m.ProviderID)
		}
		if m.ImageID != "AKSUbuntu-2204gen2containerd-202607.10.0" {
			t.Errorf("image ID %s", m.ImageID)
		}
		wantAnnotations := map[string]string{
			v1beta1.MachineResourceIDAnnotationKey: "/subscriptions/sub/resourceGroups/Shop/providers/Microsoft.ContainerService/managedClusters/prod/agentPools/machines/machines/default-" + capacityType,
			v1beta1.HashVersionAnnotationKey:       "v3",
		}
		for key, want := range wantAnnotations {
			if m.Annotations[key] != want {
				t.Errorf("%s is %s, want %s", key, m.Annotations[key], want)
			}
		}
		priority := map[string]string{"on-demand": "regular", "spot": "spot"}[capacityType]
		for key, want := range map[string]string{
			model.LabelCapacityType: capacityType, model.LabelZone: "eastus-2", v1beta1.PlacementScopeLabelKey: "zonal",
			v1beta1.AKSPriorityLabelKey: priority, v1beta1.AKSScaleSetPriorityLabelKey: priority, v1beta1.SKUUltraSSDLabelKey: "false",
			v1.NodePoolLabelKey: "default", v1beta1.SKUNameLabelKey: "Standard_D4s_v3", v1beta1.AKSClusterLabelKey: "MC_Shop_prod_eastus",
		} {
			if m.Labels[key] != want {
				t.Errorf("%s: %s is %q, want %q", capacityType, key, m.Labels[key], want)
			}
		}
		got, err := r.Get(t.Context(), m.ProviderID)
		if err != nil || got.Labels[model.LabelCapacityType] != capacityType || got.ClaimUID != claim.UID {
			t.Errorf("%s: %+v, %v", capacityType, got, err)
		}
	}
	system := r.claim("system", d4s("0", "spot")...)
	system.Labels[v1beta1.AKSModeLabelKey] = "system"
	if m := r.launch(system); m.Labels[v1beta1.AKSModeLabelKey] != "" && m.Labels[v1beta1.AKSModeLabelKey] != "system" {
		t.Errorf("mode %s", m.Labels[v1beta1.AKSModeLabelKey])
	}
}

// TestNoCallWithoutOffering covers spec 71/45 and the second half of 71/11:
// without an offering, or with a class that is not ready, Azure is not called.
func TestNoCallWithoutOffering(t *testing.T) {
	r := newRegion(t)
	now := r.clock.Now()
	for _, facts := range r.facts {
		for _, zone := range []string{"0", "eastus-1", "eastus-2", "eastus-3"} {
			for _, capacityType := range []string{"spot", "on-demand"} {
				r.short.Size(&facts.SKU, zone, capacityType, now.Add(time.Hour), now)
			}
		}
	}
	if _, err := r.Create(t.Context(), r.claim("a")); !cloud.IsInsufficientCapacity(err) {
		t.Errorf("with all offerings short: %v", err)
	}
	r.clock.Step(2 * time.Hour)
	for name, change := range map[string]func(*v1beta1.AKSNodeClass){
		"images of another generation": func(c *v1beta1.AKSNodeClass) {
			for i := range c.Status.Conditions {
				if c.Status.Conditions[i].Type == v1beta1.ImagesReadyCondition {
					c.Status.Conditions[i].ObservedGeneration = 0
				}
			}
		},
		"not ready": func(c *v1beta1.AKSNodeClass) {
			c.StatusConditions(r.clock.Now()).SetFalse(v1beta1.SubnetsReadyCondition, v1beta1.SubnetNotFoundReason, "gone")
		},
		"readiness unknown": func(c *v1beta1.AKSNodeClass) {
			c.StatusConditions(r.clock.Now()).SetUnknown(v1beta1.SubnetsReadyCondition)
		},
		"localDNS, which machines cannot have": func(c *v1beta1.AKSNodeClass) { c.Status.LocalDNSState = new(v1beta1.LocalDNSStateEnabled) },
	} {
		r.class(change)
		m, err := r.Create(t.Context(), r.claim("b-"+strings.ReplaceAll(name, " ", "-")))
		if err == nil {
			t.Errorf("%s: launched %v", name, m)
		}
		if notReady := cloud.IsNodeClassNotReady(err); notReady != (name == "not ready") && !strings.Contains(name, "localDNS") {
			t.Errorf("%s: %v", name, err)
		}
		r.class(func(c *v1beta1.AKSNodeClass) { c.Status.LocalDNSState = nil })
	}
	if calls := r.azure.Calls(); calls["PUT machine"] != 0 {
		t.Errorf("calls: %v", calls)
	}
	must(t, r.api.Delete(t.Context(), &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}))
	if _, err := r.Create(t.Context(), r.claim("c")); !cloud.IsInsufficientCapacity(err) || len(r.events) != 1 || !strings.Contains(r.events[0], "NodeClassResolutionError") {
		t.Errorf("without the class: %v, events %q", err, r.events)
	}
}

// TestRefusedSize covers spec 71/55: AKS refuses a size at once, and the claim gets
// another.
func TestRefusedSize(t *testing.T) {
	r := newRegion(t)
	r.azure.Fail("PUT machine", azurefake.Failure{Status: http.StatusBadRequest, Code: "VMSizeNotSupported", Message: "The VM size is not supported."})
	claim := r.claim("a", in(model.LabelInstanceType, "Standard_D4s_v3", "Standard_E8s_v3"))
	if m := r.launch(claim); m.Labels[model.LabelInstanceType] != "Standard_E8s_v3" {
		t.Errorf("launched %s", m.Labels[model.LabelInstanceType])
	}
	all := []string{"0 on-demand", "0 spot", "eastus-1 on-demand", "eastus-1 spot", "eastus-2 on-demand", "eastus-2 spot", "eastus-3 on-demand", "eastus-3 spot"}
	r.wantShort("at first", all...)
	r.clock.Step(23*time.Hour - time.Second)
	r.wantShort("before 23 hours", all...)
	r.clock.Step(time.Second)
	r.wantShort("after 23 hours")
	r.azure.Fail("PUT machine", azurefake.Failure{Status: http.StatusBadRequest, Code: "VMSizeNotSupported", Message: "The VM size is not supported."})
	if _, err := r.Create(t.Context(), r.claim("b", in(model.LabelInstanceType, "Standard_D4s_v3"))); !cloud.IsInsufficientCapacity(err) {
		t.Errorf("with no other size: %v", err)
	}
}

// TestSoldOut covers spec 71/90: a shortage in zones leaves regional placement,
// and one of a zone leaves the others.
func TestSoldOut(t *testing.T) {
	r := newRegion(t)
	r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "SkuNotAvailable", Message: "sold out"})
	claim := r.claim("a", in(model.LabelInstanceType, "Standard_D4s_v3"), in(model.LabelCapacityType, "spot"), in(model.LabelZone, "eastus-1", "0"))
	if m := r.launch(claim); m.Labels[model.LabelZone] != "0" || m.Labels[v1beta1.PlacementScopeLabelKey] != "regional" {
		t.Errorf("launched in zone %s", m.Labels[model.LabelZone])
	}
	r.wantShort("the SKU", "eastus-1 spot", "eastus-2 spot", "eastus-3 spot")
	r.clock.Step(time.Hour)
	r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "ZonalAllocationFailed", Message: "sold out"})
	claim = r.claim("b", in(model.LabelInstanceType, "Standard_D4s_v3"), in(model.LabelCapacityType, "spot"), in(model.LabelZone, "eastus-1"))
	if _, err := r.Create(t.Context(), claim); !cloud.IsInsufficientCapacity(err) {
		t.Errorf("in a zone that is sold out: %v", err)
	}
	r.wantShort("the zone", "eastus-1 spot", "eastus-1 on-demand")
	claim = r.claim("c", in(model.LabelInstanceType, "Standard_D4s_v3"), in(model.LabelCapacityType, "spot"), in(model.LabelZone, "eastus-1", "eastus-2"))
	if m := r.launch(claim); m.Labels[model.LabelZone] != "eastus-2" {
		t.Errorf("launched in zone %s", m.Labels[model.LabelZone])
	}
}

// TestCreationFails covers spec 71/53, 71/54, 71/88 and 71/91: AKS accepts a
// machine whose creation fails later.
func TestCreationFails(t *testing.T) {
	const od, spot = "on-demand", "spot"
	quota := func(name string, limit int) string {
		return fmt.Sprintf("Operation could not be completed as it results in exceeding approved %s quota. Additional details - Current Limit: %d, Current Usage: 0.", name, limit)
	}
	everywhere := func(capacityType string) []string {
		return []string{"0 " + capacityType, "eastus-1 " + capacityType, "eastus-2 " + capacityType, "eastus-3 " + capacityType}
	}
	for name, c := range map[string]struct {
		capacityType string
		refusal      azurefake.Refusal
		short        []string
		lasts        time.Duration
	}{
		"no family quota":    {od, azurefake.Refusal{Code: "OperationNotAllowed", Message: quota("standardDSv3Family Cores", 0)}, everywhere(od), time.Hour},
		"family quota":       {od, azurefake.Refusal{Code: "OperationNotAllowed", Message: quota("standardDSv3Family Cores", 10)}, everywhere(od), 10 * time.Minute},
		"spot quota":         {spot, azurefake.Refusal{Code: "OperationNotAllowed", Message: quota("LowPriorityCores", 0)}, everywhere(spot), time.Hour},
		"regional quota":     {od, azurefake.Refusal{Code: "OperationNotAllowed", Message: quota("Total Regional Cores", 10)}, nil, 0},
		"zone":               {spot, azurefake.Refusal{Code: "ZonalAllocationFailed"}, []string{"eastus-1 spot", "eastus-1 on-demand"}, time.Hour},
		"zone, constraints":  {spot, azurefake.Refusal{Code: "OverconstrainedZonalAllocationRequest"}, []string{"eastus-1 spot"}, time.Hour},
		"constraints":        {spot, azurefake.Refusal{Code: "OverconstrainedAllocationRequest"}, []string{"eastus-1 spot", "eastus-2 spot", "eastus-3 spot"}, time.Hour},
		"SKU on demand":      {od, azurefake.Refusal{Code: "SkuNotAvailable"}, []string{"eastus-1 on-demand", "eastus-2 on-demand", "eastus-3 on-demand"}, 23 * time.Hour},
		"something else":     {od, azurefake.Refusal{Code: "InternalError", Message: "Sorry."}, nil, 0},
		"allocation of both": {od, azurefake.Refusal{Code: "AllocationFailed"}, append(everywhere(od)[1:], everywhere(spot)[1:]...), time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegion(t)
			c.refusal.Late = true
			r.azure.Script(place("Standard_D4s_v3", "eastus-1", c.capacityType), c.refusal)
			claim := r.claim("default-a1b2c", d4s("eastus-1", c.capacityType)...)
			other := r.claim("other-a1b2c", in(model.LabelInstanceType, "Standard_E8s_v3"))
			r.launch(claim)
			r.launch(other)
			must(t, r.CheckLaunches(t.Context()))
			r.wantShort("before the creation is over")
			r.clock.Step(azurefake.CreationTime)
			must(t, r.CheckLaunches(t.Context()))
			r.wantShort("afterwards", c.short...)
			if err := r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), &v1.NodeClaim{}); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the claim is there: %v", err)
			}
			must(t, r.api.Get(t.Context(), client.ObjectKeyFromObject(other), &v1.NodeClaim{}))
			if got := slices.Sorted(maps.Keys(r.azure.Machines(machinePool))); !slices.Equal(got, []string{"other-a1b2c"}) {
				t.Errorf("machines %q", got)
			}
			if len(r.events) != 1 || !strings.HasPrefix(r.events[0], "Warning AsyncProvisioningError default-a1b2c: Failed to register: ") {
				t.Errorf("events %q", r.events)
			}
			if c.lasts > 0 {
				r.clock.Step(c.lasts - time.Second)
				r.wantShort("shortly before the end", c.short...)
				r.clock.Step(time.Second)
				r.wantShort("at the end")
			}
			calls := r.azure.Calls()["LIST machine"]
			other.Status.Conditions = []v1.Condition{{Type: v1.RegisteredCondition, Status: metav1.ConditionTrue, Reason: "Registered", LastTransitionTime: metav1.Now()}}
			r.store(other)
			must(t, r.CheckLaunches(t.Context()))
			if got := r.azure.Calls()["LIST machine"]; got != calls {
				t.Errorf("Azure is asked though every node has registered")
			}
		})
	}
}

// TestQuotaOfCloud: the quota that the cloud counts itself makes launches fail.
func TestQuotaOfCloud(t *testing.T) {
	r := newRegion(t)
	r.azure.Quota("standardDSv3Family", 6)
	first, second := r.claim("a", d4s("eastus-1", "on-demand")...), r.claim("b", d4s("eastus-1", "on-demand")...)
	r.launch(first)
	r.launch(second)
	r.clock.Step(azurefake.CreationTime)
	must(t, r.CheckLaunches(t.Context()))
	if got := slices.Sorted(maps.Keys(r.azure.Machines(machinePool))); !slices.Equal(got, []string{"a"}) {
		t.Errorf("machines %q", got)
	}
	if used := r.azure.Usage("standardDSv3Family"); used != 4 {
		t.Errorf("%d vCPUs are used", used)
	}
}

// TestUnclassifiedRefusal covers spec 71/92: an error that nobody knows marks
// nothing and is retried.
func TestUnclassifiedRefusal(t *testing.T) {
	r := newRegion(t)
	r.azure.Fail("PUT machine", azurefake.Failure{Status: http.StatusBadRequest, Code: "InvalidParameter", Message: "The value is wrong."})
	claim := r.claim("a", d4s("eastus-1", "spot")...)
	var create *cloud.CreateError
	if _, err := r.Create(t.Context(), claim); !errors.As(err, &create) || create.Reason != "CreateInstanceFailed" || cloud.IsInsufficientCapacity(err) {
		t.Errorf("error %v", err)
	}
	r.wantShort("afterwards")
	r.launch(claim)
}

// TestAdoption covers spec 71/56, 71/57 and 71/101: a machine that exists under the
// claim's name is its own, or nobody's to touch.
func TestAdoption(t *testing.T) {
	r := newRegion(t)
	claim := r.claim("default-a1b2c", in(model.LabelInstanceType, "Standard_D4s_v3", "Standard_E8s_v3"), in(model.LabelZone, "eastus-1", "eastus-3"))
	first, err := r.Create(t.Context(), claim)
	must(t, err)
	r.restart() // before the answer was recorded
	// A new launch would choose something else.
	now := r.clock.Now()
	for _, capacityType := range []string{"spot", "on-demand"} {
		r.short.Size(&r.facts["Standard_D4s_v3"].SKU, first.Labels[model.LabelZone], capacityType, now.Add(time.Hour), now)
	}
	puts := r.azure.Calls()["PUT machine"]
	again, err := r.Create(t.Context(), claim)
	must(t, err)
	if again.ProviderID != first.ProviderID || again.Labels[model.LabelZone] != first.Labels[model.LabelZone] ||
		again.Labels[model.LabelInstanceType] != "Standard_D4s_v3" || again.Capacity.Cpu().Value() != 4 {
		t.Errorf("adopted %s, %v; launched %s, %v", again.ProviderID, again.Labels, first.ProviderID, first.Labels)
	}
	if got := r.azure.Calls()["PUT machine"]; got != puts || len(r.azure.Machines(machinePool)) != 1 {
		t.Errorf("%d more launches, machines %v", got-puts, r.azure.Machines(machinePool))
	}
	// The type is not offered any more.
	delete(r.facts, "Standard_D4s_v3")
	if again, err = r.Create(t.Context(), claim); err == nil && again.ProviderID != first.ProviderID {
		t.Errorf("without the type: %v, %v", again, err)
	}
}

// TestForeignMachine covers spec 71/57: the machine of another claim stays, though
// its name is the same.
func TestForeignMachine(t *testing.T) {
	r := newRegion(t)
	// AKS' names are shorter than claims' names: two claims can have one name.
	owner := r.claim("default-a1b2c")
	m := r.launch(owner)
	r.azure.Retag(machinePool, "default-a1b2c", v1beta1.MachineNodeClaimTagKey, "another-claim")
	claim := r.claim("default-a1b2c")
	claim.Status = v1.NodeClaimStatus{}
	if _, err := r.Create(t.Context(), claim); err == nil || !strings.Contains(err.Error(), "belongs to NodeClaim another-claim") {
		t.Errorf("create: %v", err)
	}
	if err := r.Delete(t.Context(), claim); !cloud.IsNotFound(err) {
		t.Errorf("delete: %v", err)
	}
	r.azure.Retag(machinePool, "default-a1b2c", v1beta1.MachineNodeClaimTagKey, "")
	if _, err := r.Create(t.Context(), claim); err == nil || !strings.Contains(err.Error(), "has no tag") {
		t.Errorf("create without tag: %v", err)
	}
	if got, err := r.Get(t.Context(), m.ProviderID); err != nil || got.Deleting {
		t.Errorf("the machine is %+v, %v", got, err)
	}
}

// TestLostAnswer: AKS has created the machine, and its answer is lost.
func TestLostAnswer(t *testing.T) {
	r := newRegion(t)
	claim := r.claim("default-a1b2c")
	r.azure.FailAfter("PUT machine", azurefake.Failure{Status: http.StatusBadGateway, Code: "BadGateway", Message: "lost"})
	m, err := r.Create(t.Context(), claim)
	must(t, err)
	if len(r.azure.Machines(machinePool)) != 1 || m.ProviderID == "" {
		t.Errorf("machines %v", r.azure.Machines(machinePool))
	}
}

// TestThrottling covers spec 71/93: a call that Azure throttles waits as Azure says.
func TestThrottling(t *testing.T) {
	r := newRegion(t)
	r.azure.Fail("GET machine", azurefake.Failure{Status: http.StatusTooManyRequests, Code: "TooManyRequests", RetryAfter: "1"})
	began := time.Now()
	r.launch(r.claim("a"))
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("the next request comes after %s, though Azure says 1 s", waited)
	}
}

// TestAdditionalPrice: what the user adds per vCPU counts when a claim is launched.
func TestAdditionalPrice(t *testing.T) {
	sizes := in(model.LabelInstanceType, "Standard_D4s_v3", "Standard_E8s_v3")
	for perVCPU, want := range map[model.Price]string{0: "Standard_E8s_v3", model.Dollar: "Standard_D4s_v3"} {
		r := newRegion(t)
		r.config.Additional = func(_ context.Context, pool string) ([]model.Extra, error) {
			if pool != "default" {
				t.Errorf("pool %s", pool)
			}
			return []model.Extra{{Name: "licence", Price: perVCPU, VCPU: true}}, nil
		}
		r.prices.OnDemand = map[string]model.Price{"Standard_D4s_v3": azurevm.Price(0.15), "Standard_E8s_v3": azurevm.Price(0.1)}
		if got := r.launch(r.claim("a", sizes)).Labels[model.LabelInstanceType]; got != want {
			t.Errorf("with %v per vCPU, %s was launched", perVCPU, got)
		}
	}
}

// TestLaunchEnds: the claim of a machine that is deleted, evicted or fails without a
// reason before its node has registered goes soon; one that is being created, or that
// lists do not show yet, stays.
func TestLaunchEnds(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(*region) // the launch
		goes          bool
	}{
		"nothing":      {goes: false},
		"lists lag":    {after: func(r *region) { r.azure.ListLag(time.Hour) }},
		"evicted":      {after: func(r *region) { r.azure.Evict(machinePool, "default-a1b2c") }, goes: true},
		"pool is gone": {after: func(r *region) { r.azure.RemovePool(machinePool) }, goes: true},
		"being deleted": {after: func(r *region) {
			r.azure.Evict(machinePool, "default-a1b2c")
			claim := &v1.NodeClaim{}
			must(r.t, r.api.Get(r.t.Context(), client.ObjectKey{Name: "default-a1b2c"}, claim))
			claim.Finalizers = []string{v1.TerminationFinalizer}
			must(r.t, r.api.Update(r.t.Context(), claim))
			must(r.t, r.api.Delete(r.t.Context(), claim))
		}},
		"no reason": {before: func(r *region) {
			r.azure.Script(place("Standard_D4s_v3", "eastus-1", model.OnDemand), azurefake.Refusal{Late: true})
		}, goes: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegion(t)
			if c.before != nil {
				c.before(r)
			}
			claim := r.claim("default-a1b2c", d4s("eastus-1", model.OnDemand)...)
			r.launch(claim)
			if c.after != nil {
				c.after(r)
			}
			r.clock.Step(azurefake.CreationTime)
			must(t, r.CheckLaunches(t.Context()))
			err := r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), &v1.NodeClaim{})
			if gone := client.IgnoreNotFound(err) == nil && err != nil; gone != c.goes {
				t.Errorf("the claim is gone: %v", gone)
			}
			if c.goes != (len(r.disrupted) == 1 && r.disrupted[0] == "default-a1b2c async_provisioning") || c.goes != (len(r.events) == 1) {
				t.Errorf("disrupted %q, events %q", r.disrupted, r.events)
			}
		})
	}
}
