// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azure/machine"
	"karpenter/cloud/batch"
	"karpenter/model"
)

// newBatchingRegion is a region whose launches are batched.
func newBatchingRegion(t *testing.T) *region {
	t.Helper()
	r := newRegion(t)
	r.batching = &machine.Batching{Idle: time.Second, Most: 5 * time.Second, Items: 50, Metrics: batch.NewMetrics(prometheus.NewRegistry(), prometheus.DefBuckets)}
	r.restart()
	return r
}

// launchAll launches the claims at once, and returns their errors.
func (r *region) launchAll(claims []*v1.NodeClaim) []error {
	out := make([]error, len(claims))
	var wg sync.WaitGroup
	for i, claim := range claims {
		wg.Go(func() { _, out[i] = r.Create(r.t.Context(), claim) })
	}
	wg.Wait()
	return out
}

// pinned returns claims for D4s_v3 on demand, in the zones in turn.
func (r *region) pinned(n int, zones ...string) []*v1.NodeClaim {
	var out []*v1.NodeClaim
	for i := range n {
		out = append(out, r.claim(fmt.Sprintf("default-%05d", i), d4s(zones[i%len(zones)], model.OnDemand)...))
	}
	return out
}

// TestBatches covers spec 71/61: 60 claims within a second become requests for 50 and
// 10. Zones share a request, sizes do not.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBatchingRegion(t)
		claims := r.pinned(60, "eastus-1", "eastus-2", "0")
		for i, err := range r.launchAll(claims) {
			if err != nil {
				t.Errorf("%s: %v", claims[i].Name, err)
			}
		}
		if calls := r.azure.Calls(); calls["PUT batch"] != 2 || calls["PUT machine"] != 0 || len(r.azure.Machines(machinePool)) != 60 {
			t.Errorf("%d machines, calls %v", len(r.azure.Machines(machinePool)), calls)
		}
		zones := map[string]int{}
		for _, vm := range r.azure.VMs() {
			zones[vm.Zone]++
			if vm.Tags["karpenter.azure.com_aksmachine_nodeclaim"] != vm.Machine {
				t.Errorf("%s has tags %v", vm.Machine, vm.Tags)
			}
		}
		if zones["1"] != 20 || zones["2"] != 20 || zones[""] != 20 {
			t.Errorf("machines by zone: %v", zones)
		}
		other := []*v1.NodeClaim{r.claim("a", in(model.LabelInstanceType, "Standard_D4s_v3")), r.claim("b", in(model.LabelInstanceType, "Standard_E8s_v3"))}
		if err := errors.Join(r.launchAll(other)...); err != nil || r.azure.Calls()["PUT batch"] != 4 {
			t.Errorf("two sizes: %v, calls %v", err, r.azure.Calls())
		}
	})
}

// TestBatchFailures covers spec 71/62: one machine that fails leaves the others; an
// error about the whole request fails all.
func TestBatchFailures(t *testing.T) {
	gone := azurefake.Failure{Status: http.StatusInternalServerError, Code: "BatchMachineInternalServerError", Message: `{"details":[{"code":"x","message":"y","target":"stranger"}]}`}
	for name, c := range map[string]struct {
		refusal *azurefake.Refusal // of zone 3
		failure *azurefake.Failure // of the request
		fail    int
		reason  string
	}{
		"sold out":          {&azurefake.Refusal{Code: "SkuNotAvailable"}, nil, 1, "SKUNotAvailable"},
		"Azure's own fault": {&azurefake.Refusal{Code: "InternalServerError", Message: "Sorry."}, nil, 1, "CreateInstanceFailed"},
		"forbidden":         {nil, &azurefake.Failure{Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "No."}, 10, "CreateInstanceFailed"},
		"unknown target":    {nil, &gone, 10, "CreateInstanceFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newBatchingRegion(t)
				if c.refusal != nil {
					r.azure.Script(place("Standard_D4s_v3", "eastus-3", model.OnDemand), *c.refusal)
				}
				if c.failure != nil {
					r.azure.Fail("PUT batch", *c.failure)
				}
				claims := append(r.pinned(9, "eastus-1"), r.claim("last", d4s("eastus-3", model.OnDemand)...))
				failed := 0
				for i, err := range r.launchAll(claims) {
					reason := (*cloud.CreateError)(nil)
					switch {
					case err == nil:
						continue
					case cloud.IsInsufficientCapacity(err) && c.reason == "SKUNotAvailable": // the next attempt found nothing else
					case !errors.As(err, &reason) || reason.Reason != c.reason:
						t.Errorf("%s: %v", claims[i].Name, err)
					}
					failed++
				}
				if got := len(r.azure.Machines(machinePool)); failed != c.fail || got != len(claims)-c.fail {
					t.Errorf("%d claims failed, %d machines", failed, got)
				}
			})
		})
	}
}

// An answer of a batch that was lost: the machines are found, none is made twice.
func TestBatchAnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBatchingRegion(t)
		r.azure.FailAfter("PUT batch", azurefake.Failure{Status: http.StatusInternalServerError, Code: "InternalServerError", Message: "Sorry."})
		if err := errors.Join(r.launchAll(r.pinned(10, "eastus-1"))...); err != nil || len(r.azure.Machines(machinePool)) != 10 {
			t.Errorf("%d machines, %v", len(r.azure.Machines(machinePool)), err)
		}
	})
}
