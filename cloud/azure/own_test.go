// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
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
	if _, err := r.Create(t.Context(), r.claim(strings.Repeat("a", 60))); err == nil || !strings.Contains(err.Error(), "longer than 59 characters") {
		t.Errorf("a name that is too long: %v", err)
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
// NodeClaims are listed, and deleted with them; without any, nobody asks for VMs.
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
	questions := r.azure.Calls()["POST resources"]
	if list, err := r.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d instances, %v", len(list), err)
	}
	if r.azure.Calls()["POST resources"] != questions {
		t.Error("Resource Graph is asked, and no NodeClaim has a VM")
	}
}

// TestStalePools covers spec 71/70.
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
			r.holds("afterwards", nil, nil)
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
	r.azure.Reserve(3 * time.Minute)
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
// bills by it, once; if Azure refuses it, the claim goes.
func TestBilling(t *testing.T) {
	extended := func(r *region) []string {
		var out []string
		for _, v := range r.azure.VMs() {
			if slices.Equal(v.Extensions, []string{"computeakslinuxbilling"}) {
				out = append(out, v.Name)
			}
		}
		return out
	}
	r := newOwn(t)
	r.launch(r.claim("a"))
	r.launch(r.claim("b"))
	must(t, r.CheckBilling(t.Context()))
	if got := extended(r); got != nil {
		t.Errorf("virtual machines that are being created have it: %q", got)
	}
	r.clock.Step(azurefake.CreationTime)
	r.azure.Fail("PUT extension", azurefake.Failure{Status: http.StatusConflict, Code: "Conflict"})
	if err := r.CheckBilling(t.Context()); err == nil {
		t.Error("a conflict is no error")
	}
	must(t, r.CheckBilling(t.Context()))
	if got := extended(r); !slices.Equal(got, []string{"aks-a", "aks-b"}) {
		t.Errorf("the extension is on %q", got)
	}
	calls := r.azure.Calls()
	must(t, r.CheckBilling(t.Context()))
	if !maps.Equal(calls, r.azure.Calls()) {
		t.Error("Azure is asked though all have it")
	}
	r.restart()
	must(t, r.CheckBilling(t.Context()))
	if n := r.azure.Calls()["PUT extension"] - calls["PUT extension"]; n != 0 {
		t.Errorf("%d requests after a restart", n)
	}
	claim := r.claim("c")
	r.launch(claim)
	r.clock.Step(azurefake.CreationTime)
	r.azure.Fail("PUT extension", azurefake.Failure{Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "no"})
	if err := r.CheckBilling(t.Context()); err == nil || !strings.Contains(err.Error(), "AuthorizationFailed") {
		t.Errorf("error %v", err)
	}
	if err := r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), &v1.NodeClaim{}); err == nil || !slices.Equal(r.disrupted, []string{"c async_provisioning"}) {
		t.Errorf("the claim is there; disrupted %q", r.disrupted)
	}
	unbilled := newOwn(t, func(c *vm.Config) { c.Billed = false })
	unbilled.launch(unbilled.claim("a"))
	unbilled.clock.Step(azurefake.CreationTime)
	must(t, unbilled.CheckBilling(t.Context()))
	if got := unbilled.azure.Calls(); got["PUT extension"]+got["POST resources"] != 0 {
		t.Errorf("calls %v where AKS does not bill by it", got)
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
}

var errDead = errors.New("the process is dead")

// dead is an error after which the SDK makes no other attempt.
type dead struct{ error }

// NonRetriable tells the SDK.
func (dead) NonRetriable() {}

func (c crash) Do(r *http.Request) (*http.Response, error) {
	c.reached.Add(1)
	left := c.left.Add(-1)
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
				r.through = func(to policy.Transporter) policy.Transporter { return crash{to, after, &left, &reached} }
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
