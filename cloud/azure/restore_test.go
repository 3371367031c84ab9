// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azure/machine"
	"karpenter/cloud/batch"
	"karpenter/model"
)

// TestRestoredAzure: Azure in memory is the same again after everything that the provider asks of
// it, be it refused, and after what happens to instances; and goes on as it would have.
func TestRestoredAzure(t *testing.T) {
	for launch, begin := range map[string]func(*testing.T) *region{
		"PUT machine": newRegion,
		"PUT batch": func(t *testing.T) *region {
			r := newRegion(t)
			r.batching = &machine.Batching{Idle: time.Millisecond, Most: time.Millisecond, Items: 1, Metrics: batch.NewMetrics(prometheus.NewRegistry(), prometheus.DefBuckets)}
			r.restart()
			return r
		},
		"PUT vm": func(t *testing.T) *region { return newOwn(t) },
	} {
		t.Run(launch, func(t *testing.T) {
			r := begin(t)
			pool := machinePool
			if r.own != nil {
				pool = ""
				r.settings.SecurityGroups = []string{securityGroup, "another"}
				r.settings.Balancers = map[string][]azurefake.BackendPool{"kubernetes": {{Name: "aksOutboundBackendPool"}, {Name: "kubernetes"}}}
			}
			spot := in(model.LabelCapacityType, "spot")
			var claims []*v1.NodeClaim
			for _, name := range []string{"a", "b", "c", "d"} {
				claim := r.claim(name, spot)
				r.launch(claim)
				claims = append(claims, claim)
				r.clock.Step(20 * time.Second)
			}
			// It is carried out, and refused when it is repeated.
			r.azure.FailAfter(launch, azurefake.Failure{Status: http.StatusBadGateway, Code: "BadGateway", Message: "lost"})
			r.launch(r.claim("e"))
			must(t, r.Delete(t.Context(), claims[0]))
			claims[1].Status.Conditions = []v1.Condition{{Type: v1.RegisteredCondition, Status: metav1.ConditionTrue, Reason: "Registered", LastTransitionTime: metav1.Now()}}
			r.store(claims[1])
			r.class(func(c *v1beta1.AKSNodeClass) { c.Spec.Tags = map[string]string{"team": "shop"} })
			if done, err := r.Update(t.Context(), claims[1]); !done || err != nil {
				t.Fatalf("tags: %v, %v", done, err)
			}
			evicted := map[string]string{"": "aks-c", machinePool: "c"}[pool]
			r.azure.Evict(pool, evicted)
			vms := r.azure.VMs()
			if !r.azure.Preempt(vms[len(vms)-1].Name) {
				t.Fatal("nothing is preempted")
			}
			text, err := json.Marshal(r.entries) // as a journal keeps them
			must(t, err)
			var entries []azurefake.Entry
			must(t, json.Unmarshal(text, &entries))
			r.settings.Record = nil
			again, err := azurefake.Restore(r.settings, entries)
			must(t, err)
			for _, after := range []time.Duration{0, 40 * time.Second, 10 * time.Minute} {
				r.clock.Step(after)
				if got, want := again.VMs(), r.azure.VMs(); len(want) == 0 || !reflect.DeepEqual(got, want) {
					t.Errorf("after %s\n%+v, want\n%+v", after, got, want)
				}
				if got, want := again.Interfaces(), r.azure.Interfaces(); len(got) != len(want) {
					t.Errorf("after %s %d network interfaces, want %d", after, len(got), len(want))
				}
			}
			entries[len(entries)-1].Serial++
			if _, err := azurefake.Restore(r.settings, entries); err == nil || !strings.Contains(err.Error(), "names are given out after Preempt") {
				t.Errorf("entries of another version: %v", err)
			}
			entries[0].Target = nil
			if _, err := azurefake.Restore(r.settings, entries); err == nil || !strings.Contains(err.Error(), "unknown name") {
				t.Errorf("an entry that is none: %v", err)
			}
		})
	}
}
