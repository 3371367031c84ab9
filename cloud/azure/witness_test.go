// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	azfake "github.com/Azure/azure-sdk-for-go/sdk/azcore/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	computefake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	networkfake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"
	graphfake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph/fake"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud/azure/azurefake"
)

// witness shows every request to the fake servers that Microsoft generates with its SDK,
// before Azure in memory answers it: they must know it, and find the same names in it.
type witness struct {
	policy.Transporter
	servers []policy.Transporter

	mu   sync.Mutex
	seen map[string]int // calls that a server has understood
	odd  []string       // requests that none has, or other than Azure in memory
}

// understood notes a call. Names that are in the URL must be what the server has read.
func (w *witness) understood(call string, names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[call]++
	for _, name := range names {
		if name == "" {
			w.odd = append(w.odd, call+" without a name")
		}
	}
}

// Do implements policy.Transporter.
func (w *witness) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body) // from memory
	}
	again := func() *http.Request {
		out := r.Clone(r.Context())
		out.Body = io.NopCloser(bytes.NewReader(body))
		return out
	}
	if of := regexp.MustCompile(`/locations/[^/]+/operations/`); !of.MatchString(r.URL.Path) {
		known := false
		for _, server := range w.servers {
			answer, err := server.Do(again())
			known = known || err == nil && answer.StatusCode < http.StatusInternalServerError
		}
		if !known {
			w.mu.Lock()
			w.odd = append(w.odd, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
	}
	return w.Transporter.Do(again())
}

// newWitness returns one that knows the operations on virtual machines without AKS. A
// poll by the fake servers' own protocol cannot follow: each of them ends at once.
func newWitness(to policy.Transporter) *witness {
	w := &witness{Transporter: to, seen: map[string]int{}}
	vms := computefake.VirtualMachinesServer{
		BeginCreateOrUpdate: func(_ context.Context, group, name string, _ armcompute.VirtualMachine, o *armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions) (r azfake.PollerResponder[armcompute.VirtualMachinesClientCreateOrUpdateResponse], e azfake.ErrorResponder) {
			w.understood("PUT vm", group, name, *o.IfNoneMatch)
			r.SetTerminalResponse(http.StatusCreated, armcompute.VirtualMachinesClientCreateOrUpdateResponse{}, nil)
			return r, e
		},
		Get: func(_ context.Context, group, name string, _ *armcompute.VirtualMachinesClientGetOptions) (r azfake.Responder[armcompute.VirtualMachinesClientGetResponse], e azfake.ErrorResponder) {
			w.understood("GET vm", group, name)
			r.SetResponse(http.StatusOK, armcompute.VirtualMachinesClientGetResponse{}, nil)
			return r, e
		},
		BeginUpdate: func(_ context.Context, group, name string, _ armcompute.VirtualMachineUpdate, o *armcompute.VirtualMachinesClientBeginUpdateOptions) (r azfake.PollerResponder[armcompute.VirtualMachinesClientUpdateResponse], e azfake.ErrorResponder) {
			w.understood("PATCH vm", group, name, *o.IfMatch)
			r.SetTerminalResponse(http.StatusOK, armcompute.VirtualMachinesClientUpdateResponse{}, nil)
			return r, e
		},
		BeginDelete: func(_ context.Context, group, name string, o *armcompute.VirtualMachinesClientBeginDeleteOptions) (r azfake.PollerResponder[armcompute.VirtualMachinesClientDeleteResponse], e azfake.ErrorResponder) {
			w.understood("DELETE vm", group, name)
			if o == nil || o.ForceDeletion == nil || !*o.ForceDeletion {
				w.understood("DELETE vm without force", "")
			}
			r.SetTerminalResponse(http.StatusAccepted, armcompute.VirtualMachinesClientDeleteResponse{}, nil)
			return r, e
		},
	}
	extensions := computefake.VirtualMachineExtensionsServer{
		BeginCreateOrUpdate: func(_ context.Context, group, vm, name string, _ armcompute.VirtualMachineExtension, _ *armcompute.VirtualMachineExtensionsClientBeginCreateOrUpdateOptions) (r azfake.PollerResponder[armcompute.VirtualMachineExtensionsClientCreateOrUpdateResponse], e azfake.ErrorResponder) {
			w.understood("PUT extension", group, vm, name)
			r.SetTerminalResponse(http.StatusCreated, armcompute.VirtualMachineExtensionsClientCreateOrUpdateResponse{}, nil)
			return r, e
		},
		BeginUpdate: func(_ context.Context, group, vm, name string, _ armcompute.VirtualMachineExtensionUpdate, _ *armcompute.VirtualMachineExtensionsClientBeginUpdateOptions) (r azfake.PollerResponder[armcompute.VirtualMachineExtensionsClientUpdateResponse], e azfake.ErrorResponder) {
			w.understood("PATCH extension", group, vm, name)
			r.SetTerminalResponse(http.StatusOK, armcompute.VirtualMachineExtensionsClientUpdateResponse{}, nil)
			return r, e
		},
	}
	interfaces := networkfake.InterfacesServer{
		BeginCreateOrUpdate: func(_ context.Context, group, name string, _ armnetwork.Interface, _ *armnetwork.InterfacesClientBeginCreateOrUpdateOptions) (r azfake.PollerResponder[armnetwork.InterfacesClientCreateOrUpdateResponse], e azfake.ErrorResponder) {
			w.understood("PUT nic", group, name)
			r.SetTerminalResponse(http.StatusCreated, armnetwork.InterfacesClientCreateOrUpdateResponse{}, nil)
			return r, e
		},
		Get: func(_ context.Context, group, name string, _ *armnetwork.InterfacesClientGetOptions) (r azfake.Responder[armnetwork.InterfacesClientGetResponse], e azfake.ErrorResponder) {
			w.understood("GET nic", group, name)
			r.SetResponse(http.StatusOK, armnetwork.InterfacesClientGetResponse{}, nil)
			return r, e
		},
		UpdateTags: func(_ context.Context, group, name string, _ armnetwork.TagsObject, _ *armnetwork.InterfacesClientUpdateTagsOptions) (r azfake.Responder[armnetwork.InterfacesClientUpdateTagsResponse], e azfake.ErrorResponder) {
			w.understood("PATCH nic", group, name)
			r.SetResponse(http.StatusOK, armnetwork.InterfacesClientUpdateTagsResponse{}, nil)
			return r, e
		},
		BeginDelete: func(_ context.Context, group, name string, _ *armnetwork.InterfacesClientBeginDeleteOptions) (r azfake.PollerResponder[armnetwork.InterfacesClientDeleteResponse], e azfake.ErrorResponder) {
			w.understood("DELETE nic", group, name)
			r.SetTerminalResponse(http.StatusAccepted, armnetwork.InterfacesClientDeleteResponse{}, nil)
			return r, e
		},
	}
	balancers := networkfake.LoadBalancersServer{NewListPager: func(group string, _ *armnetwork.LoadBalancersClientListOptions) (r azfake.PagerResponder[armnetwork.LoadBalancersClientListResponse]) {
		w.understood("LIST loadBalancer", group)
		r.AddPage(http.StatusOK, armnetwork.LoadBalancersClientListResponse{}, nil)
		return r
	}}
	groups := networkfake.SecurityGroupsServer{NewListPager: func(group string, _ *armnetwork.SecurityGroupsClientListOptions) (r azfake.PagerResponder[armnetwork.SecurityGroupsClientListResponse]) {
		w.understood("LIST networkSecurityGroup", group)
		r.AddPage(http.StatusOK, armnetwork.SecurityGroupsClientListResponse{}, nil)
		return r
	}}
	graph := graphfake.Server{Resources: func(_ context.Context, q armresourcegraph.QueryRequest, _ *armresourcegraph.ClientResourcesOptions) (r azfake.Responder[armresourcegraph.ClientResourcesResponse], e azfake.ErrorResponder) {
		w.understood("POST resources", *q.Query, *q.Subscriptions[0])
		r.SetResponse(http.StatusOK, armresourcegraph.ClientResourcesResponse{}, nil)
		return r, e
	}}
	w.servers = []policy.Transporter{
		computefake.NewServerFactoryTransport(&computefake.ServerFactory{VirtualMachinesServer: vms, VirtualMachineExtensionsServer: extensions}),
		networkfake.NewServerFactoryTransport(&networkfake.ServerFactory{InterfacesServer: interfaces, LoadBalancersServer: balancers, SecurityGroupsServer: groups}),
		graphfake.NewServerTransport(&graph),
	}
	return w
}

// TestWitness holds every operation on virtual machines without AKS against the fake
// servers of Microsoft's SDK.
func TestWitness(t *testing.T) {
	r := newOwn(t)
	var w *witness
	r.through = func(to policy.Transporter) policy.Transporter {
		w = newWitness(to)
		return w
	}
	r.restart()
	claim := r.claim("a")
	r.launch(claim)
	r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "SkuNotAvailable"})
	if _, err := r.Create(t.Context(), r.claim("b", d4s("eastus-1", "spot")...)); err == nil {
		t.Error("what is sold out is launched")
	}
	r.clock.Step(azurefake.CreationTime)
	must(t, r.CheckLaunches(t.Context()))
	must(t, r.CheckBilling(t.Context()))
	claim.Status.Conditions = []v1.Condition{{Type: v1.RegisteredCondition, Status: "True", Reason: "Registered"}}
	r.store(claim)
	r.class(func(c *v1beta1.AKSNodeClass) { c.Spec.Tags = map[string]string{"team": "a"} })
	_, err := r.Update(t.Context(), claim)
	must(t, err)
	must(t, r.SweepInterfaces(t.Context()))
	must(t, r.Delete(t.Context(), claim))
	if len(w.odd) > 0 {
		t.Errorf("not understood: %q", w.odd)
	}
	calls := r.azure.Calls()
	if got, want := fmt.Sprint(w.seen), fmt.Sprint(calls); got != want {
		t.Errorf("the SDK's servers have understood %s; Azure in memory %s", got, want)
	}
	for _, call := range strings.Fields("GET_vm PUT_vm PATCH_vm DELETE_vm PUT_extension PATCH_extension PUT_nic GET_nic PATCH_nic DELETE_nic POST_resources LIST_loadBalancer LIST_networkSecurityGroup") {
		if name := strings.ReplaceAll(call, "_", " "); calls[name] == 0 {
			t.Errorf("%s was never called", name)
		}
	}
}
