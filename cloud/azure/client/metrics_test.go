// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azure/client"
)

// TestMetrics: a request that is answered at the second attempt counts once, and its
// attempts each; names of resources are in no label.
func TestMetrics(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 7, 20, 12, 0, 0, 0, time.UTC))
	azure := azurefake.New(azurefake.Config{Clock: clock, Subscription: "sub", Region: "eastus", Subnets: []string{subnet}})
	registry := prometheus.NewRegistry()
	options := azure.Options()
	client.NewMetrics(registry, clock).Extend(options)
	services, err := client.New("sub", azure.Credential(), options)
	must(t, err)
	azure.Fail("GET subnet", azurefake.Failure{Status: http.StatusServiceUnavailable, Code: "ServerBusy"})
	must(t, services.CheckSubnet(t.Context(), subnet))
	if services.CheckSubnet(t.Context(), subnet+"x") == nil {
		t.Error("there is a subnet that was not made")
	}
	for metric, want := range map[string]int{"azure_sdk_go_request_total": 2, "azure_sdk_go_request_attempt_total": 3, "azure_sdk_go_request_duration_seconds": 2} {
		if n, err := testutil.GatherAndCount(registry, metric); err != nil || n != want {
			t.Errorf("%s has %d series, want %d (%v)", metric, n, want, err)
		}
	}
	families, err := registry.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				want := map[string]string{"service": "Microsoft.Network", "action": "GET virtualNetworks/subnets"}[l.GetName()]
				if want != "" && l.GetValue() != want {
					t.Errorf("%s: %s is %s", f.GetName(), l.GetName(), l.GetValue())
				}
			}
		}
	}
}
