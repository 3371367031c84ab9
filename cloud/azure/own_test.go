// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azure/bootstrap"
	"karpenter/cloud/azure/token"
	"karpenter/cloud/azure/vm"
	"karpenter/cloud/cloudtest"
	"karpenter/model"
)

const (
	securityGroup = "aks-agentpool-12345678-nsg"
	kubeletID     = "00000000-0000-0000-0000-0000000000bb"
)

// newOwn is a region in which Karpenter makes virtual machines itself, after change.
func newOwn(t *testing.T, change ...func(*vm.Config)) *region {
	t.Helper()
	r := newRegion(t)
	r.own = &vm.Config{
		Clock: r.clock, Subscription: "sub", NodeResourceGroup: "MC_Shop_prod_eastus", Region: "eastus", Subnet: subnet, SSHKey: "ssh-rsa AAAA", Billed: true,
		Cluster: bootstrap.Cluster{
			APIServer: "prod.hcp.eastus.azmk8s.io", Authority: "Q0E=", Subscription: "sub", NodeResourceGroup: "MC_Shop_prod_eastus", Region: "eastus",
			Cloud: "AzurePublicCloud", AdminUser: "azureuser", NetworkPlugin: "azure", NetworkPluginMode: "overlay", NetworkDataplane: "cilium",
			DNSServiceIP: "10.0.0.10", KubeletIdentity: kubeletID,
		},
		Token: func(context.Context) (string, error) { return "abcdef.0123456789abcdef", nil },
	}
	for _, c := range change {
		c(r.own)
	}
	r.azure.SecurityGroups(securityGroup, "another")
	r.azure.Balance("kubernetes", azurefake.BackendPool{Name: "aksOutboundBackendPool"}, azurefake.BackendPool{Name: "kubernetes"})
	r.class(func(*v1beta1.AKSNodeClass) {})
	r.restart()
	return r
}

// left is the names of all virtual machines and network interfaces.
func (r *region) left() (vms, interfaces []string) {
	for _, v := range r.azure.VMs() {
		if !v.Deleting {
			vms = append(vms, v.Name)
		}
	}
	return vms, slices.Sorted(maps.Keys(r.azure.Interfaces()))
}

// holds requires that these are all virtual machines and network interfaces.
func (r *region) holds(when string, vms, interfaces []string) {
	r.t.Helper()
	if v, i := r.left(); !slices.Equal(v, vms) || !slices.Equal(i, interfaces) {
		r.t.Errorf("%s: virtual machines %q and network interfaces %q; want %q and %q", when, v, i, vms, interfaces)
	}
}

// TestConformanceVM is the suite that every provider passes, with virtual machines that
// Karpenter makes itself.
func TestConformanceVM(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) *cloudtest.Cloud {
		r := newOwn(t)
		return &cloudtest.Cloud{
			Provider: r.Provider, Pool: r.pool, Class: *r.pool.Spec.Template.Spec.NodeClassRef,
			Store: func(t *testing.T, claim *v1.NodeClaim) {
				t.Helper()
				r.store(claim)
			},
			Settle: func(*testing.T) { r.clock.Step(time.Minute) },
			SellOut: func(instanceType, zone, capacityType string) {
				r.azure.Stock(place(instanceType, zone, capacityType), 0)
			},
		}
	})
}

// TestVMLife covers the names of spec 71/66: a virtual machine is launched with a network
// interface of its name, is read and listed, and goes with it.
func TestVMLife(t *testing.T) {
	r := newOwn(t, func(c *vm.Config) { c.Identities = []string{"/id/a"} })
	claim := r.claim("default-a1b2c", d4s("eastus-1", "spot")...)
	m := r.launch(claim)
	const id = "azure:///subscriptions/sub/resourceGroups/mc_shop_prod_eastus/providers/Microsoft.Compute/virtualMachines/aks-default-a1b2c"
	if m.ProviderID != id || !strings.HasPrefix(m.ImageID, "/CommunityGalleries/AKSUbuntu-") || m.Annotations[v1beta1.MachineResourceIDAnnotationKey] != "" {
		t.Errorf("launched %+v", m)
	}
	r.holds("after the launch", []string{"aks-default-a1b2c"}, []string{"aks-default-a1b2c"})
	r.clock.Step(time.Minute)
	got, err := r.Get(t.Context(), id)
	must(t, err)
	want := *m
	want.Annotations, want.Labels = nil, maps.Clone(m.Labels)
	delete(want.Labels, v1beta1.SKUUltraSSDLabelKey)
	delete(got.Labels, v1beta1.SKUUltraSSDLabelKey)
	if !reflect.DeepEqual(got, &want) {
		t.Errorf("got %+v\nwant %+v", got, &want)
	}
	claim.Status.ProviderID = strings.ToUpper(id) // who has recorded it may have taken Azure's spelling
	r.store(claim)
	list, err := r.List(t.Context())
	must(t, err)
	if len(list) != 1 || list[0].ClaimUID != claim.UID {
		t.Errorf("listed %+v", list)
	}
	claim.Status.ProviderID = id
	r.store(claim)
	must(t, r.Delete(t.Context(), claim))
	must(t, r.Delete(t.Context(), claim))
	if n := r.azure.Calls()["DELETE vm"]; n != 1 {
		t.Errorf("%d deletions", n)
	}
	r.clock.Step(time.Minute)
	if err := r.Delete(t.Context(), claim); !cloud.IsNotFound(err) {
		t.Errorf("after the deletion: %v", err)
	}
	r.holds("after the deletion", nil, nil)
}

// TestLongNames: NodePools may have names with which those of virtual machines would be
// longer than a node's. They are shortened, and lead to their claims all the same.
func TestLongNames(t *testing.T) {
	r := newOwn(t)
	pool := strings.Repeat("a-long-name", 6)[:63-6]
	var names []string
	for _, name := range []string{pool + "-a1b2c", pool + "-a1b2d", pool[:54] + "-a1b2c"} {
		claim := r.claim(name)
		m := r.launch(claim)
		r.restart()
		if again, err := r.Create(t.Context(), claim); err != nil || again.ProviderID != m.ProviderID {
			t.Errorf("%s: launched again: %+v, %v", name, again, err)
		}
		names = append(names, vm.Name(name))
	}
	slices.Sort(names)
	if distinct := slices.Compact(slices.Clone(names)); len(distinct) != len(names) || slices.ContainsFunc(names, func(n string) bool { return len(n) > 63 }) {
		t.Errorf("names %q", names)
	}
	r.holds("afterwards", names, names)
	r.clock.Step(time.Hour)
	r.restart()
	list, err := r.List(t.Context())
	must(t, err)
	if len(list) != len(names) {
		t.Errorf("listed %d", len(list))
	}
	for _, m := range list {
		if m.ClaimUID == "" || string(m.ClaimUID) != "uid-of-"+m.Claim {
			t.Errorf("listed %+v", m)
		}
	}
	must(t, r.SweepInterfaces(t.Context()))
	r.holds("after the sweep", names, names)
	// The tag that leads to the claim stays when others change.
	claim := r.claim(pool + "-a1b2c")
	claim.Status.Conditions = []v1.Condition{{Type: v1.RegisteredCondition, Status: metav1.ConditionTrue, Reason: "Registered", LastTransitionTime: metav1.Now()}}
	r.launch(claim)
	r.class(func(c *v1beta1.AKSNodeClass) { c.Spec.Tags = map[string]string{"team": "a"} })
	_, err = r.Update(t.Context(), claim)
	must(t, err)
	for _, v := range r.azure.VMs() {
		if v.Name == vm.Name(claim.Name) && (v.Tags["team"] != "a" || v.Tags[v1beta1.NodeClaimTagKey] != claim.Name) {
			t.Errorf("tags %v", v.Tags)
		}
	}
	claim.Status.ProviderID = "" // as if its launch had not been recorded
	r.store(claim)
	must(t, r.Delete(t.Context(), claim))
	r.clock.Step(time.Minute)
	if vms, _ := r.left(); len(vms) != len(names)-1 {
		t.Errorf("left are %q", vms)
	}
}

// TestManagedMachines covers spec 71/60.
func TestManagedMachines(t *testing.T) {
	r := newRegion(t)
	claim := r.claim("old")
	m := r.launch(claim)
	own := newOwn(t).own
	own.Clock = r.clock
	for _, managed := range []bool{false, true} {
		r.own, r.managed = own, managed
		r.restart()
		list, err := r.List(t.Context())
		must(t, err)
		if _, err := r.Get(t.Context(), m.ProviderID); len(list) == 1 != managed || cloud.IsNotFound(err) == managed {
			t.Errorf("managed %v: listed %d, get: %v", managed, len(list), err)
		}
		if err := r.Delete(t.Context(), claim); cloud.IsNotFound(err) == managed {
			t.Errorf("managed %v: delete: %v", managed, err)
		}
	}
	if n := r.azure.Calls()["POST deleteMachines"]; n != 1 {
		t.Errorf("%d deletions", n)
	}
}

// TestOwnBeforeMachines: a cluster has changed from VM mode to AKS machines. VMs of its
// NodeClaims are listed, and deleted with them.
func TestOwnBeforeMachines(t *testing.T) {
	r := newOwn(t)
	claim := r.claim("old")
	m := r.launch(claim)
	r.before = true
	r.restart()
	if list, err := r.List(t.Context()); err != nil || len(list) != 1 {
		t.Fatalf("%d instances, %v", len(list), err)
	}
	got, err := r.Get(t.Context(), m.ProviderID)
	if err != nil || got.ProviderID != m.ProviderID {
		t.Fatalf("%+v, %v", got, err)
	}
	must(t, r.Delete(t.Context(), claim))
	must(t, r.api.Delete(t.Context(), claim))
	if n := r.azure.Calls()["DELETE vm"]; n != 1 {
		t.Errorf("%d virtual machines were deleted: %v", n, r.azure.Calls())
	}
	r.clock.Step(time.Hour)
	if list, err := r.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d instances, %v", len(list), err)
	}
	// A process that has never made VMs need not be allowed to see them.
	denied := func() azurefake.Failure {
		return azurefake.Failure{Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "no"}
	}
	r.azure.Fail("POST resources", denied(), denied())
	r.azure.Fail("GET vm", denied(), denied())
	if list, err := r.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("without the right to see VMs: %d instances, %v", len(list), err)
	}
	must(t, r.SweepInterfaces(t.Context()))
	r.class(func(c *v1beta1.AKSNodeClass) { c.Status.Images = r.images(false) })
	r.launch(r.claim("new"))
	if err := r.Delete(t.Context(), r.claim("another")); !cloud.IsNotFound(err) {
		t.Errorf("delete what was not launched: %v", err)
	}
	// It must be, as long as there is one.
	claim.ResourceVersion = ""
	r.store(claim)
	r.azure.Fail("POST resources", denied())
	if _, err := r.List(t.Context()); err == nil {
		t.Error("VMs that this process may not see are none")
	}
}

// TestModeChanges: a process dies when Azure has accepted an instance, and its claim does not tell of
// it yet. The next one, of another mode, launches no second one, deletes it with its
// claim, and leaves nothing behind.
func TestModeChanges(t *testing.T) {
	for _, c := range []struct {
		name     string
		vms      bool   // before
		dies     string // the call after which the process does
		recorded bool   // the other mode has launched another one meanwhile
		goes     bool   // the claim
	}{
		{"VM, then its claim goes", true, "PUT vm", false, true},
		{"VM, then it is taken", true, "PUT vm", false, false},
		{"VM, its claim has a machine", true, "PUT vm", true, false},
		{"interface, then its claim goes", true, "PUT nic", false, true},
		{"machine, then its claim goes", false, "PUT machine", false, true},
		{"machine, then it is taken", false, "PUT machine", false, false},
		{"machine, its claim has a VM", false, "PUT machine", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newOwn(t)
			mode := func(vms bool) {
				r.before, r.managed = !vms, true
				r.class(func(class *v1beta1.AKSNodeClass) { class.Status.Images = r.images(vms) })
				r.restart()
			}
			mode(c.vms)
			claim := r.claim("a")
			var left, reached atomic.Int64
			left.Store(1 << 40)
			r.through = func(to policy.Transporter) policy.Transporter { return crash{to, true, &left, &reached, c.dies} }
			r.restart()
			if _, err := r.Create(t.Context(), claim); err == nil {
				t.Fatal("a launch of a dead process is none")
			}
			r.through = nil
			instances := func() int { return len(r.azure.VMs()) }
			before := instances()
			mode(!c.vms)
			if c.recorded {
				claim.CreationTimestamp = metav1.NewTime(r.clock.Now().Add(time.Minute)) // Azure is not asked then
				r.launch(claim)
			} else if !c.goes {
				r.launch(claim)
				if got := instances(); got != before {
					t.Errorf("%d instances before, and %d after the launch", before, got)
				}
			} else if err := r.Delete(t.Context(), claim); err != nil && !cloud.IsNotFound(err) {
				t.Error(err)
			}
			if c.goes {
				must(t, r.api.Delete(t.Context(), claim))
			}
			r.clock.Step(time.Hour)
			list, err := r.List(t.Context())
			must(t, err)
			stored := &v1.NodeClaimList{}
			must(t, r.api.List(t.Context(), stored))
			for _, m := range cloud.Orphans(list, stored.Items, r.clock.Now()) {
				must(t, r.Delete(t.Context(), m.Remnant()))
			}
			must(t, r.SweepInterfaces(t.Context()))
			r.clock.Step(time.Hour)
			want := 1
			if c.goes {
				want = 0
			}
			if got := instances(); got != want {
				t.Errorf("%d instances at the end, want %d", got, want)
			}
			own := 0
			for _, v := range r.azure.VMs() {
				if v.Machine == "" {
					own++
				}
			}
			if got := len(r.azure.Interfaces()); got != own {
				t.Errorf("%d network interfaces of %d VMs", got, own)
			}
		})
	}
}

// TestStalePools covers spec 71/70. A security group that is another one now is found, too.
func TestStalePools(t *testing.T) {
	r := newOwn(t)
	r.launch(r.claim("a"))
	r.azure.Balance("kubernetes", azurefake.BackendPool{Name: "new"})
	lists, puts := r.azure.Calls()["LIST loadBalancer"], r.azure.Calls()["PUT nic"]
	r.launch(r.claim("b"))
	r.launch(r.claim("c"))
	calls := r.azure.Calls()
	if calls["LIST loadBalancer"] != lists+1 || calls["PUT nic"] != puts+3 {
		t.Errorf("%d lists and %d requests for network interfaces", calls["LIST loadBalancer"]-lists, calls["PUT nic"]-puts)
	}
	pools := r.azure.Interfaces()["aks-b"].Properties.IPConfigurations[0].Properties.LoadBalancerBackendAddressPools
	if len(pools) != 1 || !strings.HasSuffix(*pools[0].ID, "/loadBalancers/kubernetes/backendAddressPools/new") {
		t.Errorf("%d pools", len(pools))
	}
	r.azure.SecurityGroups("aks-agentpool-87654321-nsg")
	r.launch(r.claim("e"))
	if group := r.azure.Interfaces()["aks-e"].Properties.NetworkSecurityGroup; !strings.HasSuffix(*group.ID, "/aks-agentpool-87654321-nsg") {
		t.Errorf("the security group is %s", *group.ID)
	}
	r.own.Subnet = network + "gone"
	r.restart()
	puts = r.azure.Calls()["PUT nic"]
	if _, err := r.Create(t.Context(), r.claim("d")); err == nil || !strings.Contains(err.Error(), "InvalidResourceReference") {
		t.Errorf("without the subnet: %v", err)
	}
	if n := r.azure.Calls()["PUT nic"] - puts; n != 1 {
		t.Errorf("%d requests, though no pool is missing", n)
	}
}

// TestSecurityGroup covers the errors of spec 71/68: without exactly one security group
// that AKS manages, nothing is made.
func TestSecurityGroup(t *testing.T) {
	for _, groups := range [][]string{nil, {"other"}, {securityGroup, "AKS-agentpool-87654321-nsg"}} {
		r := newOwn(t)
		r.azure.SecurityGroups(groups...)
		if _, err := r.Create(t.Context(), r.claim("a")); err == nil || !strings.Contains(err.Error(), "couldn't find managed NSG") {
			t.Errorf("%q: %v", groups, err)
		}
		if calls := r.azure.Calls(); calls["PUT nic"]+calls["PUT vm"] != 0 {
			t.Errorf("%q: calls %v", groups, calls)
		}
	}
}

// TestVMAdoption covers the first half of spec 71/71, and spec 71/101 for virtual machines: a
// virtual machine that exists is taken, if it is the claim's.
func TestVMAdoption(t *testing.T) {
	r := newOwn(t)
	claim := r.claim("default-a1b2c")
	first := r.launch(claim)
	r.restart()
	calls := r.azure.Calls()
	again, err := r.Create(t.Context(), claim)
	must(t, err)
	if again.ProviderID != first.ProviderID || !maps.Equal(again.Labels, first.Labels) {
		t.Errorf("adopted %+v\nlaunched %+v", again, first)
	}
	if now := r.azure.Calls(); now["PUT vm"] != calls["PUT vm"] || now["PUT nic"] != calls["PUT nic"] {
		t.Errorf("calls before %v and after %v", calls, now)
	}
}

// TestVMRefused covers the second half of spec 71/71, and spec 71/88 where Azure answers with an
// HTTP error: virtual machine and network interface are gone, what is short is known, and
// the next best is launched.
func TestVMRefused(t *testing.T) {
	quota := func(name string, limit int) string {
		return fmt.Sprintf("Operation could not be completed as it results in exceeding approved %s quota. Additional details - Current Limit: %d, Current Usage: 0.", name, limit)
	}
	for name, c := range map[string]struct {
		refusal azurefake.Refusal
		reason  string // "" = no other size would help
		short   []string
	}{
		"spot quota":     {azurefake.Refusal{Code: "OperationNotAllowed", Message: quota("LowPriorityCores", 0)}, "SubscriptionQuotaReached", []string{"0 spot", "eastus-1 spot", "eastus-2 spot", "eastus-3 spot"}},
		"family quota":   {azurefake.Refusal{Code: "OperationNotAllowed", Message: quota("standardDSv3Family Cores", 0)}, "SubscriptionQuotaReached", []string{"0 spot", "eastus-1 spot", "eastus-2 spot", "eastus-3 spot"}},
		"SKU":            {azurefake.Refusal{Code: "SkuNotAvailable"}, "SKUNotAvailable", []string{"eastus-1 spot", "eastus-2 spot", "eastus-3 spot"}},
		"zone":           {azurefake.Refusal{Code: "ZonalAllocationFailed"}, "ZonalAllocationFailure", []string{"eastus-1 spot", "eastus-1 on-demand"}},
		"allocation":     {azurefake.Refusal{Code: "AllocationFailed"}, "AllocationFailure", []string{"eastus-1 spot", "eastus-2 spot", "eastus-3 spot", "eastus-1 on-demand", "eastus-2 on-demand", "eastus-3 on-demand"}},
		"zone, tight":    {azurefake.Refusal{Code: "OverconstrainedZonalAllocationRequest"}, "OverconstrainedZonalAllocationFailure", []string{"eastus-1 spot"}},
		"tight":          {azurefake.Refusal{Code: "OverconstrainedAllocationRequest"}, "OverconstrainedAllocationFailure", []string{"eastus-1 spot", "eastus-2 spot", "eastus-3 spot"}},
		"regional quota": {azurefake.Refusal{Code: "OperationNotAllowed", Message: quota("Total Regional Cores", 10)}, "", nil},
		"something else": {azurefake.Refusal{Code: "InvalidParameter"}, "CreateInstanceFailed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newOwn(t)
			r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), c.refusal)
			claim := r.claim("a", d4s("eastus-1", "spot")...)
			delete(claim.Labels, v1.NodePoolLabelKey) // its error is returned as it is
			_, err := r.Create(t.Context(), claim)
			var create *cloud.CreateError
			if c.reason == "" && !cloud.IsInsufficientCapacity(err) || c.reason != "" && (!errors.As(err, &create) || create.Reason != c.reason) {
				t.Errorf("error %v", err)
			}
			r.wantShort("afterwards", c.short...)
			// Azure keeps the network interface for three minutes.
			r.holds("afterwards", nil, []string{"aks-a"})
			must(t, r.api.Delete(t.Context(), claim))
			r.clock.Step(3 * time.Minute)
			must(t, r.SweepInterfaces(t.Context()))
			r.holds("later", nil, nil)
			if c.short == nil {
				return
			}
			other := r.claim("b", in(model.LabelInstanceType, "Standard_D4s_v3", "Standard_E8s_v3"))
			r.launch(other)
			r.holds("with another", []string{"aks-b"}, []string{"aks-b"})
		})
	}
}

// TestReservedInterface: Azure reserves the network interface of a virtual machine that it
// has refused; it goes later. It covers spec 71/95, too: the interface of a claim that is
// being launched, and of a virtual machine without a claim, stay.
func TestReservedInterface(t *testing.T) {
	r := newOwn(t)
	r.launch(r.claim("b"))
	r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "SkuNotAvailable"})
	claim := r.claim("a", d4s("eastus-1", "spot")...)
	if _, err := r.Create(t.Context(), claim); !cloud.IsInsufficientCapacity(err) {
		t.Errorf("error %v", err)
	}
	both := []string{"aks-a", "aks-b"}
	r.clock.Step(5 * time.Minute)
	must(t, r.SweepInterfaces(t.Context()))
	r.holds("with its claim", []string{"aks-b"}, both)
	must(t, r.api.Delete(t.Context(), claim))
	must(t, r.api.Delete(t.Context(), &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "b"}}))
	must(t, r.SweepInterfaces(t.Context()))
	r.holds("without", []string{"aks-b"}, []string{"aks-b"})
}

// TestFullSubnet: a subnet without addresses is a reason of its own, and no size is short.
func TestFullSubnet(t *testing.T) {
	r := newOwn(t, func(c *vm.Config) { c.Cluster.NetworkPluginMode = "" })
	r.azure.Addresses(subnet, 59)
	r.launch(r.claim("a")) // takes 30
	var create *cloud.CreateError
	if _, err := r.Create(t.Context(), r.claim("b")); !errors.As(err, &create) || create.Reason != "SubnetFull" {
		t.Errorf("error %v", err)
	}
	r.wantShort("afterwards")
	r.holds("afterwards", []string{"aks-a"}, []string{"aks-a"})
}

// TestVMFailsLate covers spec 71/74: Azure accepts a virtual machine whose creation fails.
func TestVMFailsLate(t *testing.T) {
	r := newOwn(t)
	r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "AllocationFailed", Message: "Allocation failed.", Late: true})
	claim := r.claim("a", d4s("eastus-1", "spot")...)
	r.launch(claim)
	must(t, r.CheckLaunches(t.Context()))
	r.wantShort("before the creation is over")
	r.clock.Step(azurefake.CreationTime)
	must(t, r.CheckLaunches(t.Context()))
	zones := []string{"eastus-1 spot", "eastus-2 spot", "eastus-3 spot", "eastus-1 on-demand", "eastus-2 on-demand", "eastus-3 on-demand"}
	r.wantShort("afterwards", zones...)
	if err := r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), &v1.NodeClaim{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the claim is there: %v", err)
	}
	if !slices.Equal(r.disrupted, []string{"a async_provisioning"}) || len(r.events) != 1 {
		t.Errorf("disrupted %q, events %q", r.disrupted, r.events)
	}
	r.clock.Step(azurefake.DeletionTime)
	r.holds("afterwards", nil, nil)
	r.clock.Step(time.Hour)
	r.wantShort("an hour later")
}

// TestStandalone covers spec 71/75: a claim without a NodePool waits for its virtual
// machine, and gets the error of its creation.
func TestStandalone(t *testing.T) {
	r := newOwn(t)
	r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "AllocationFailed", Message: "Allocation failed.", Late: true})
	claim := r.claim("a", d4s("eastus-1", "spot")...)
	claim.Labels = nil
	ended := make(chan error)
	go func() {
		_, err := r.Create(t.Context(), claim)
		ended <- err
	}()
	var err error
	for waiting := true; waiting; {
		select {
		case err = <-ended:
			waiting = false
		case <-time.After(50 * time.Millisecond): // the SDK asks by the clock on the wall
			r.clock.Step(azurefake.CreationTime / 4)
		}
	}
	var create *cloud.CreateError
	if !errors.As(err, &create) || create.Reason != "AllocationFailure" {
		t.Errorf("error %v", err)
	}
	r.clock.Step(azurefake.DeletionTime)
	r.holds("afterwards", nil, nil)
}

// TestBilling covers spec 71/73: virtual machines that run get the extension, where AKS
// bills by it, once.
func TestBilling(t *testing.T) {
	r := newOwn(t)
	r.launch(r.claim("a"))
	r.launch(r.claim("b"))
	must(t, r.CheckBilling(t.Context()))
	if got := r.extended(); got != nil {
		t.Errorf("virtual machines that are being created have it: %q", got)
	}
	r.clock.Step(azurefake.CreationTime)
	r.azure.Fail("PUT extension", azurefake.Failure{Status: http.StatusConflict, Code: "Conflict"})
	if err := r.CheckBilling(t.Context()); err == nil {
		t.Error("a conflict is no error")
	}
	must(t, r.CheckBilling(t.Context()))
	if got := r.extended(); !slices.Equal(got, []string{"aks-a", "aks-b"}) {
		t.Errorf("the extension is on %q", got)
	}
	puts := r.azure.Calls()["PUT extension"]
	for range 2 { // until it is seen that they have it
		r.clock.Step(billingPeriod)
		must(t, r.CheckBilling(t.Context()))
	}
	calls := r.azure.Calls()
	must(t, r.CheckBilling(t.Context()))
	if !maps.Equal(calls, r.azure.Calls()) {
		t.Error("Azure is asked though all have it")
	}
	r.restart()
	must(t, r.CheckBilling(t.Context()))
	if n := r.azure.Calls()["PUT extension"] - puts; n != 0 {
		t.Errorf("%d requests after they were accepted, and after a restart", n)
	}
	unbilled := newOwn(t, func(c *vm.Config) { c.Billed = false })
	unbilled.launch(unbilled.claim("a"))
	unbilled.clock.Step(azurefake.CreationTime)
	must(t, unbilled.CheckBilling(t.Context()))
	if got := unbilled.azure.Calls(); got["PUT extension"]+got["POST resources"] != 0 {
		t.Errorf("calls %v where AKS does not bill by it", got)
	}
}

// extended are the virtual machines that have the billing extension.
func (r *region) extended() []string {
	var out []string
	for _, v := range r.azure.VMs() {
		if slices.Equal(v.Extensions, []string{"computeakslinuxbilling"}) {
			out = append(out, v.Name)
		}
	}
	return out
}

// TestBillingFails covers the failure of spec 71/73: a claim whose virtual machine cannot be
// billed goes, whether its node has registered or not; and nobody asks for it again.
func TestBillingFails(t *testing.T) {
	for name, fail := range map[string]func(*region){
		"refused": func(r *region) {
			r.azure.Fail("PUT extension", slices.Repeat([]azurefake.Failure{{Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "no"}}, 2)...)
		},
		"fails later": func(r *region) { r.azure.FailExtensions(2) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newOwn(t)
			claims := []*v1.NodeClaim{r.claim("a"), r.claim("b")}
			for _, claim := range claims {
				r.launch(claim)
			}
			claims[1].Status.Conditions = []v1.Condition{{Type: v1.RegisteredCondition, Status: metav1.ConditionTrue, Reason: "Registered", LastTransitionTime: metav1.Now()}}
			r.store(claims[1])
			r.clock.Step(azurefake.CreationTime)
			fail(r)
			var told error
			for range 10 {
				told = errors.Join(told, r.CheckBilling(t.Context()))
				r.clock.Step(billingPeriod)
			}
			if told == nil || !strings.Contains(told.Error(), "computeAksLinuxBilling") {
				t.Errorf("error %v", told)
			}
			slices.Sort(r.disrupted)
			if !slices.Equal(r.disrupted, []string{"a async_provisioning", "b async_provisioning"}) {
				t.Errorf("disrupted %q", r.disrupted)
			}
			if n := r.azure.Calls()["PUT extension"]; n != 2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestBillingRepaired: an extension that has failed under the process before is added again.
func TestBillingRepaired(t *testing.T) {
	r := newOwn(t)
	r.launch(r.claim("a"))
	r.clock.Step(azurefake.CreationTime)
	r.azure.FailExtensions(1)
	must(t, r.CheckBilling(t.Context()))
	r.clock.Step(time.Minute)
	r.restart()
	for range 10 {
		must(t, r.CheckBilling(t.Context()))
		r.clock.Step(billingPeriod)
	}
	if n := r.azure.Calls()["PUT extension"]; n != 2 || r.disrupted != nil {
		t.Errorf("%d requests, disrupted %q", n, r.disrupted)
	}
}

// TestBillingOfDeletedClaim: a virtual machine whose NodeClaim is being deleted goes on to run while
// its node drains, and is billed.
func TestBillingOfDeletedClaim(t *testing.T) {
	r := newOwn(t)
	claim := r.claim("a")
	claim.Finalizers = []string{"karpenter.sh/termination"}
	r.launch(claim)
	must(t, r.api.Delete(t.Context(), claim))
	r.clock.Step(azurefake.CreationTime)
	must(t, r.CheckBilling(t.Context()))
	if got := r.extended(); !slices.Equal(got, []string{"aks-a"}) {
		t.Errorf("billed are %q", got)
	}
	// Nothing is to be done about one that is refused.
	other := r.claim("b")
	other.Finalizers = claim.Finalizers
	r.launch(other)
	must(t, r.api.Delete(t.Context(), other))
	r.clock.Step(azurefake.CreationTime)
	r.azure.Fail("PUT extension", azurefake.Failure{Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "no"})
	must(t, r.CheckBilling(t.Context()))
	if len(r.events) != 0 {
		t.Errorf("events %q", r.events)
	}
}

// TestBillingStandalone: a virtual machine of a claim without a NodePool is billed, too.
func TestBillingStandalone(t *testing.T) {
	r := newOwn(t)
	claim := r.claim("a")
	delete(claim.Labels, v1.NodePoolLabelKey)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.launch(claim)
	}()
	for waiting := true; waiting; {
		select {
		case <-ended:
			waiting = false
		case <-time.After(50 * time.Millisecond): // the SDK asks by the clock on the wall
			r.clock.Step(azurefake.CreationTime / 4)
		}
	}
	r.clock.Step(time.Hour)
	must(t, r.CheckBilling(t.Context()))
	if got := r.extended(); !slices.Equal(got, []string{"aks-a"}) {
		t.Errorf("the extension is on %q", got)
	}
}

// TestNoToken covers spec 71/85, and the first part of spec 71/82: without a token nothing is
// made; the token is there before the virtual machine, and in its data.
func TestNoToken(t *testing.T) {
	r := newOwn(t)
	deny := errors.New("secrets is forbidden")
	keeper := token.New(token.Config{Live: r.api, Client: denying{r.api, &deny}, Clock: r.clock, Warn: func(string) {}})
	r.own.Token = keeper.Token
	r.restart()
	claim := r.claim("a")
	var create *cloud.CreateError
	if _, err := r.Create(t.Context(), claim); !errors.As(err, &create) || create.Reason != "BootstrapTokenUnavailable" {
		t.Errorf("error %v", err)
	}
	if calls := r.azure.Calls(); calls["PUT nic"]+calls["PUT vm"] != 0 {
		t.Errorf("calls %v", calls)
	}
	deny = nil
	r.launch(claim)
	list := &corev1.SecretList{}
	must(t, r.api.List(t.Context(), list))
	if len(list.Items) != 1 {
		t.Fatalf("%d Secrets", len(list.Items))
	}
	text := string(list.Items[0].Data["token-id"]) + "." + string(list.Items[0].Data["token-secret"])
	if data := r.azure.VMs()[0].CustomData; !strings.Contains(data, "\nTLS_BOOTSTRAP_TOKEN='"+text+"'\n") {
		t.Errorf("the script has not the token of the Secret:\n%s", data)
	}
	// It covers spec 71/87: the token is in nothing that people read.
	for _, text := range append(r.events, fmt.Sprintf("%+v", claim)) {
		if strings.Contains(text, string(list.Items[0].Data["token-secret"])) {
			t.Errorf("the token is shown: %s", text)
		}
	}
}

// denying refuses to create while there is a reason.
type denying struct {
	client.Client
	why *error
}

func (d denying) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if *d.why != nil {
		return *d.why
	}
	return d.Client.Create(ctx, o, options...)
}

// TestGraph covers spec 71/96: the list comes over several pages, with what Get returns;
// what is of AKS machines is not in it.
func TestGraph(t *testing.T) {
	r := newOwn(t)
	r.managed = true
	r.restart()
	want := map[string]*cloud.Machine{}
	for i := range 5 {
		m := r.launch(r.claim(fmt.Sprint("claim-", i)))
		want[m.ProviderID] = m
	}
	r.clock.Step(time.Hour)
	r.azure.PageSize(2)
	calls := r.azure.Calls()["POST resources"]
	list, err := r.List(t.Context())
	must(t, err)
	if pages := r.azure.Calls()["POST resources"] - calls; pages != 3 || len(list) != len(want) {
		t.Errorf("%d instances on %d pages", len(list), pages)
	}
	for _, m := range list {
		got, err := r.Get(t.Context(), m.ProviderID)
		must(t, err)
		if !reflect.DeepEqual(m, got) || want[m.ProviderID] == nil {
			t.Errorf("listed %+v\ngot    %+v", m, got)
		}
		delete(want, m.ProviderID) // once
	}
	r.azure.Fail("POST resources", slices.Repeat([]azurefake.Failure{{Status: http.StatusBadRequest, Code: "BadRequest"}}, 2)...)
	if _, err := r.List(t.Context()); err == nil {
		t.Error("a failure is an empty list")
	}
}

// TestGraphLag: what was launched a moment ago is listed though Azure does not show it;
// what is gone ends nothing that is alive.
func TestGraphLag(t *testing.T) {
	r := newOwn(t)
	r.azure.ListLag(time.Minute)
	claim := r.claim("a")
	m := r.launch(claim)
	r.clock.Step(10 * time.Second)
	if list, err := r.List(t.Context()); err != nil || len(list) != 1 || list[0].ProviderID != m.ProviderID {
		t.Errorf("listed %v, %v", list, err)
	}
	calls := r.azure.Calls()["GET vm"]
	must(t, r.CheckLaunches(t.Context()))
	if n := r.azure.Calls()["GET vm"] - calls; n != 0 {
		t.Errorf("%d reads of a virtual machine that was launched a moment ago", n)
	}
	r.clock.Step(time.Hour)
	r.azure.Evict("", "aks-a")
	list, err := r.List(t.Context())
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("Resource Graph does not lag: %v", list)
	}
	if err := r.Delete(t.Context(), claim); !cloud.IsNotFound(err) {
		t.Errorf("delete what is gone: %v", err)
	}
	must(t, r.CheckLaunches(t.Context())) // the claim never registered
	r.clock.Step(time.Minute)
	if list, err := r.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("in the end: %v, %v", list, err)
	}
}

// TestVMTags covers spec 71/99, and spec 71/98 for identities: network interface, extension and
// virtual machine get the tags, in this order; what fails is repeated; an identity is
// added, and none is removed.
func TestVMTags(t *testing.T) {
	r := newOwn(t, func(c *vm.Config) { c.Identities = []string{"/id/a"} })
	claim := r.claim("a")
	r.launch(claim)
	claim.Status.Conditions = []v1.Condition{{Type: v1.RegisteredCondition, Status: metav1.ConditionTrue, Reason: "Registered", LastTransitionTime: metav1.Now()}}
	r.store(claim)
	update := func() error {
		t.Helper()
		must(t, r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
		done, err := r.Update(t.Context(), claim)
		if err == nil && !done {
			t.Error("the update is not done")
		}
		return err
	}
	order := []string{"PATCH nic", "PATCH extension", "PATCH vm"}
	count := func() []int {
		var out []int
		for _, call := range order {
			out = append(out, r.azure.Calls()[call])
		}
		return out
	}
	r.clock.Step(azurefake.CreationTime)
	must(t, update())
	if got := count(); !slices.Equal(got, []int{0, 0, 0}) {
		t.Errorf("without a change, calls %v", got)
	}
	r.class(func(c *v1beta1.AKSNodeClass) { c.Spec.Tags = map[string]string{"team": "a"} })
	must(t, update()) // the extension is not there
	if got := count(); !slices.Equal(got, []int{1, 1, 1}) || r.azure.VMs()[0].Tags["team"] != "a" {
		t.Errorf("calls %v, tags %v", got, r.azure.VMs()[0].Tags)
	}
	must(t, r.CheckBilling(t.Context()))
	r.class(func(c *v1beta1.AKSNodeClass) { c.Spec.Tags = map[string]string{"team": "b"} })
	r.azure.Fail("PATCH extension", azurefake.Failure{Status: http.StatusForbidden, Code: "AuthorizationFailed"})
	if err := update(); err == nil {
		t.Error("a failure at the extension is none")
	}
	if got := count(); !slices.Equal(got, []int{2, 2, 1}) || r.azure.VMs()[0].Tags["team"] != "a" {
		t.Errorf("after the failure, calls %v, tags %v", got, r.azure.VMs()[0].Tags)
	}
	must(t, update())
	if got := count(); !slices.Equal(got, []int{3, 3, 2}) || r.azure.VMs()[0].Tags["team"] != "b" || *r.azure.Interfaces()["aks-a"].Tags["team"] != "b" {
		t.Errorf("repeated, calls %v, tags %v", got, r.azure.VMs()[0].Tags)
	}
	r.own.Identities = []string{"/id/a", "/id/b"}
	r.restart()
	must(t, update())
	if got := count(); !slices.Equal(got, []int{3, 3, 3}) {
		t.Errorf("for an identity, calls %v", got)
	}
	r.own.Identities = []string{"/id/b"}
	r.restart()
	must(t, update())
	if got := count(); !slices.Equal(got, []int{3, 3, 3}) {
		t.Errorf("for an identity less, calls %v", got)
	}
}

// hook calls something before the first request of a method to a path that ends so.
type hook struct {
	policy.Transporter
	method, path string
	once         *sync.Once
	do           func()
}

func (h hook) Do(r *http.Request) (*http.Response, error) {
	if r.Method == h.method && strings.HasSuffix(r.URL.Path, h.path) {
		h.once.Do(h.do)
	}
	return h.Transporter.Do(r)
}

// TestVMTagsOfOthers: tags that somebody else sets stay, also if he does so while Karpenter changes
// its own; and so does the identity that Azure Policy has given the virtual machine.
func TestVMTagsOfOthers(t *testing.T) {
	r := newOwn(t, func(c *vm.Config) { c.Identities = []string{"/id/a"} })
	r.class(func(c *v1beta1.AKSNodeClass) { c.Spec.Tags = map[string]string{"team": "a", "Cost": "1"} })
	claim := r.claim("a")
	r.launch(claim)
	claim.Status.Conditions = []v1.Condition{{Type: v1.RegisteredCondition, Status: metav1.ConditionTrue, Reason: "Registered", LastTransitionTime: metav1.Now()}}
	r.store(claim)
	r.clock.Step(azurefake.CreationTime)
	r.azure.Retag("", "aks-a", "owner", "somebody")
	r.azure.AssignSystemIdentity("aks-a")
	r.own.Identities = []string{"/id/a", "/id/b"}
	r.through = func(to policy.Transporter) policy.Transporter {
		return hook{to, http.MethodPatch, "/virtualMachines/aks-a", &sync.Once{}, func() { r.azure.Retag("", "aks-a", "audit", "2026") }}
	}
	r.restart()
	r.class(func(c *v1beta1.AKSNodeClass) { c.Spec.Tags = map[string]string{"team": "b"} })
	must(t, r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	if _, err := r.Update(t.Context(), claim); err == nil || !strings.Contains(err.Error(), "ConditionNotMet") {
		t.Errorf("overtaken: %v", err)
	}
	must(t, r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	_, err := r.Update(t.Context(), claim)
	must(t, err)
	v := r.azure.VMs()[0]
	want := map[string]string{
		"team": "b", "owner": "somebody", "audit": "2026",
		"karpenter.azure.com_cluster": "prod", "compute.aks.billing": "linux", "karpenter.sh_nodepool": "default",
	}
	if !maps.Equal(v.Tags, want) {
		t.Errorf("tags %v\nwant %v", v.Tags, want)
	}
	if !v.SystemIdentity || !slices.Equal(v.Identities, []string{"/id/a", "/id/b"}) {
		t.Errorf("its own identity: %v; identities %q", v.SystemIdentity, v.Identities)
	}
}

// TestSweepDuringLaunch covers the second half of spec 71/95: a network interface is there,
// and its virtual machine not yet, of a claim that came while the sweep was under way.
func TestSweepDuringLaunch(t *testing.T) {
	r := newOwn(t)
	r.launch(r.claim("b"))
	var left, reached atomic.Int64
	left.Store(1 << 40)
	r.through = func(to policy.Transporter) policy.Transporter { return crash{to, false, &left, &reached, "PUT vm"} }
	r.restart()
	launching := r.Provider
	r.through = func(to policy.Transporter) policy.Transporter {
		return hook{to, http.MethodPost, "/resources", &sync.Once{}, func() {
			if _, err := launching.Create(t.Context(), r.claim("a")); err == nil {
				t.Error("the launch is over")
			}
		}}
	}
	r.restart()
	must(t, r.SweepInterfaces(t.Context()))
	r.holds("after the sweep", []string{"aks-b"}, []string{"aks-a", "aks-b"})
}

// TestAnotherOffering: Azure refuses a virtual machine, and takes the next offering of the same
// call: its network interface is not deleted in between, for Azure could not make it
// again at once.
func TestAnotherOffering(t *testing.T) {
	r := newOwn(t)
	for _, zone := range []string{"eastus-1", "eastus-2", "eastus-3", "0"} {
		r.azure.Script(place("Standard_D4s_v3", zone, "spot"), azurefake.Refusal{Code: "SkuNotAvailable"})
	}
	r.launch(r.claim("a", in(model.LabelInstanceType, "Standard_D4s_v3")))
	calls := r.azure.Calls()
	if calls["PUT vm"] < 2 || calls["DELETE nic"] != 0 {
		t.Errorf("calls %v", calls)
	}
	r.holds("afterwards", []string{"aks-a"}, []string{"aks-a"})
	// What was given up is gone after a while, and can be launched then.
	claim := r.claim("b")
	r.azure.Fail("PUT vm", azurefake.Failure{Status: http.StatusBadRequest, Code: "InvalidParameter"})
	if _, err := r.Create(t.Context(), claim); err == nil {
		t.Fatal("a refused launch is none")
	}
	if _, err := r.Create(t.Context(), claim); err == nil || !strings.Contains(err.Error(), "AnotherOperationInProgress") {
		t.Errorf("while its network interface is being deleted: %v", err)
	}
	r.clock.Step(azurefake.InterfaceDeletion)
	r.launch(claim)
	r.holds("in the end", []string{"aks-a", "aks-b"}, []string{"aks-a", "aks-b"})
}

// TestVMDrift covers spec 71/100 for virtual machines.
func TestVMDrift(t *testing.T) {
	r := newOwn(t)
	claim := r.claim("a")
	r.launch(claim)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "aks-a"}}
	node.Status.NodeInfo.KubeletVersion = "v" + kubernetesVersion
	must(t, r.api.Create(t.Context(), node))
	claim.Status.NodeName = "aks-a"
	r.store(claim)
	label := func(id string) {
		t.Helper()
		node.Labels = map[string]string{bootstrap.KubeletIdentityLabel: id}
		must(t, r.api.Update(t.Context(), node))
	}
	is := func(when, want string) {
		t.Helper()
		if got, err := r.IsDrifted(t.Context(), claim); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", when, got, err, want)
		}
	}
	is("without the label", "")
	label(kubeletID)
	is("as it was launched", "")
	r.class(func(c *v1beta1.AKSNodeClass) { c.Status.Images = c.Status.Images[1:] })
	is("without its image", v1beta1.ImageDriftReason)
	label("another")
	is("with another identity", v1beta1.KubeletIdentityDriftReason)
	r.class(func(c *v1beta1.AKSNodeClass) { c.Status.KubernetesVersion = new("1.33.5") })
	is("with another version", v1beta1.K8sVersionDriftReason)
	r.class(func(c *v1beta1.AKSNodeClass) {
		c.Spec.VNETSubnetID = new(otherSubnet)
		c.Annotations[v1beta1.HashAnnotationKey] = c.Hash()
	})
	is("with another subnet", v1beta1.NodeClassDriftReason)
}

// crash is the death of the process at a call: before it is sent, or before its answer
// comes.
type crash struct {
	policy.Transporter
	after   bool
	left    *atomic.Int64 // calls until it dies
	reached *atomic.Int64 // how many calls there were
	at      string        // method and type of the resource at which it dies at the latest, such as PUT vm; "" = none
}

var errDead = errors.New("the process is dead")

// dead is an error after which the SDK makes no other attempt.
type dead struct{ error }

// NonRetriable tells the SDK.
func (dead) NonRetriable() {}

func (c crash) Do(r *http.Request) (*http.Response, error) {
	c.reached.Add(1)
	left := c.left.Add(-1)
	if kind := map[string]string{"virtualMachines": "vm", "networkInterfaces": "nic", "machines": "machine"}[path.Base(path.Dir(r.URL.Path))]; left > 0 && c.at == r.Method+" "+kind {
		c.left.Store(0)
		left = 0
	}
	if left < 0 || left == 0 && !c.after {
		return nil, dead{errDead}
	}
	answer, err := c.Transporter.Do(r)
	if left == 0 {
		return nil, dead{errDead}
	}
	return answer, err
}

// TestVMCrash covers spec 71/101 and spec 71/102 for virtual machines: wherever the process dies
// in a launch, the next one launches the same, once; and if the claim goes meanwhile,
// nothing is left. There is no wait in the background that a shutdown could interrupt:
// what is accepted is looked after by whoever leads.
func TestVMCrash(t *testing.T) {
	crashes := 0
	for _, late := range []string{"", "refused", "fails"} {
		for _, after := range []bool{false, true} {
			for at := int64(1); ; at++ {
				var left, reached atomic.Int64
				left.Store(at)
				r := newOwn(t)
				refusal := azurefake.Refusal{Code: "SkuNotAvailable", Late: late == "fails"}
				if late != "" {
					r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), refusal)
				}
				claim := r.claim("a", in(model.LabelInstanceType, "Standard_D4s_v3"), in(model.LabelZone, "eastus-1", "0"), in(model.LabelCapacityType, "spot"))
				r.through = func(to policy.Transporter) policy.Transporter { return crash{to, after, &left, &reached, ""} }
				r.restart()
				_, err := r.Create(t.Context(), claim)
				if reached.Load() < at {
					break // it had died after the launch
				}
				crashes++
				if err == nil && at < reached.Load() {
					t.Fatalf("%q, call %d: a launch of a dead process is none", late, at)
				}
				r.through = nil
				r.restart()
				if crashes%2 == 0 { // the claim goes
					err := r.Delete(t.Context(), claim)
					for err == nil {
						r.clock.Step(azurefake.DeletionTime)
						err = r.Delete(t.Context(), claim)
					}
					if !cloud.IsNotFound(err) {
						t.Fatalf("%q, call %d: delete: %v", late, at, err)
					}
					must(t, r.api.Delete(t.Context(), claim))
					r.clock.Step(3 * time.Minute) // for which Azure keeps network interfaces
					must(t, r.SweepInterfaces(t.Context()))
					r.holds(fmt.Sprintf("%q, call %d, after the claim", late, at), nil, nil)
					continue
				}
				m, err := r.Create(t.Context(), claim)
				must(t, err)
				again, err := r.Create(t.Context(), claim)
				must(t, err)
				if m.ProviderID != again.ProviderID {
					t.Errorf("%q, call %d: %s and %s", late, at, m.ProviderID, again.ProviderID)
				}
				r.holds(fmt.Sprintf("%q, call %d", late, at), []string{"aks-a"}, []string{"aks-a"})
			}
		}
	}
	t.Logf("%d crashes", crashes)
	if crashes < 20 {
		t.Errorf("the process died only %d times", crashes)
	}
}

// TestVMLostAnswer: Azure has made the virtual machine, and its answer is lost.
func TestVMLostAnswer(t *testing.T) {
	for _, call := range []string{"PUT nic", "PUT vm"} {
		r := newOwn(t)
		r.azure.FailAfter(call, azurefake.Failure{Status: http.StatusBadGateway, Code: "BadGateway", Message: "lost"})
		r.launch(r.claim("a"))
		r.holds(call, []string{"aks-a"}, []string{"aks-a"})
	}
}

// TestVMThrottled: what a launch has made stays when Azure throttles the rest, and the next one
// goes on with it.
func TestVMThrottled(t *testing.T) {
	r := newOwn(t)
	claim := r.claim("a")
	r.azure.Fail("PUT vm", azurefake.Failure{Status: http.StatusTooManyRequests, Code: "TooManyRequests", RetryAfter: "120"})
	if _, err := r.Create(t.Context(), claim); err == nil || !strings.Contains(err.Error(), "TooManyRequests") {
		t.Errorf("create: %v", err)
	}
	r.holds("while Azure throttles", nil, []string{"aks-a"})
	r.launch(claim)
	r.holds("then", []string{"aks-a"}, []string{"aks-a"})
	if n := r.azure.Calls()["DELETE nic"]; n != 0 {
		t.Errorf("%d network interfaces were deleted", n)
	}
}

// TestThousandVMs launches 1,000 claims at once and tells how many calls to Azure that
// takes, in both modes.
func TestThousandVMs(t *testing.T) {
	const n = 1000
	for _, own := range []bool{false, true} {
		r := newRegion(t)
		if own {
			r = newOwn(t)
		}
		r.azure.PageSize(n)
		claims := make([]*v1.NodeClaim, n)
		for i := range claims {
			claims[i] = r.claim(fmt.Sprint("default-", i))
		}
		var group sync.WaitGroup
		slots := make(chan struct{}, 50)
		for _, claim := range claims {
			group.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				m, err := r.Create(t.Context(), claim)
				if err != nil {
					t.Error(err)
					return
				}
				claim.Status.ProviderID = m.ProviderID
			})
		}
		group.Wait()
		for _, claim := range claims {
			r.store(claim)
		}
		if got := len(r.azure.VMs()); got != n {
			t.Fatalf("%d virtual machines", got)
		}
		launch := r.azure.Calls()
		for range int(azurefake.CreationTime / launchesPeriod) { // until they run
			r.clock.Step(launchesPeriod)
			must(t, r.CheckLaunches(t.Context()))
		}
		if own {
			must(t, r.CheckBilling(t.Context()))
		}
		all := r.azure.Calls()
		t.Logf("own virtual machines %v: launch of %d: %v; until they run and are billed: %v", own, n, launch, all)
		if want := map[string]int{"GET vm": n, "PUT nic": n, "PUT vm": n, "LIST networkSecurityGroup": 1, "LIST loadBalancer": 1}; own && !maps.Equal(launch, want) {
			t.Errorf("a launch of %d takes calls %v, want %v", n, launch, want)
		}
		if own && (all["PUT extension"] != n || all["GET vm"] != n || all["POST resources"] > 10) {
			t.Errorf("until they run: %v", all)
		}
	}
}

// TestUnsupported: what virtual machines cannot have is refused, and not ignored.
func TestUnsupported(t *testing.T) {
	for name, spec := range map[string]string{
		"":                               `{}`,
		"spec.kubelet of use":            `{"kubelet": {"cpuCFSQuotaPeriod": "100ms", "failSwapOn": false}}`,
		"spec.linuxOSConfig":             `{"linuxOSConfig": {"transparentHugePageEnabled": "never"}}`,
		"spec.artifactStreaming":         `{"artifactStreaming": {"enabled": true}}`,
		"spec.localDNS of mode Required": `{"localDNS": {"mode": "Required"}}`,
		"spec.kubelet.cpuCFSQuotaPeriod": `{"kubelet": {"cpuCFSQuotaPeriod": "50ms"}}`,
	} {
		class := &v1beta1.AKSNodeClass{}
		must(t, json.Unmarshal([]byte(spec), &class.Spec))
		want := name
		if name == "spec.kubelet of use" {
			want = ""
		}
		if got := vm.Unsupported(class); got != want {
			t.Errorf("%s: %q", spec, got)
		}
	}
}
