// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/azurefake"
	"karpenter/model"
)

// TestForeignVM: a virtual machine that has the name of a claim's, and that another cluster, AKS or
// somebody else has made, is neither taken nor deleted: when the launch begins, when it
// appears meanwhile, and when the request for it fails.
func TestForeignVM(t *testing.T) {
	const name = "aks-default-a1b2c"
	notFound := azurefake.Failure{Status: http.StatusNotFound, Code: "ResourceNotFound"}
	rejected := azurefake.Failure{Status: http.StatusBadRequest, Code: "InvalidParameter"}
	for _, tag := range []struct{ key, value, want string }{
		{v1beta1.ClusterTagKey, "another", "its tag karpenter.azure.com_cluster is another, not prod"},
		{v1beta1.ClusterTagKey, "", "it has no tag karpenter.azure.com_cluster"},
		{v1beta1.NodeClaimTagKey, "somebody", "it belongs to NodeClaim somebody"},
		{v1beta1.MachineNodeClaimTagKey, "machine", "exists, and is not Karpenter's"},
	} {
		for when, fails := range map[string]map[string]azurefake.Failure{
			"before": nil, "meanwhile": {"GET vm": notFound}, "after a failure": {"GET vm": notFound, "PUT vm": rejected},
		} {
			for _, late := range []bool{false, true} { // its creation has failed
				r := newOwn(t)
				if late {
					r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "AllocationFailed", Late: true})
				}
				claim := r.claim("default-a1b2c", d4s("eastus-1", "spot")...)
				m := r.launch(claim)
				r.clock.Step(azurefake.CreationTime)
				r.azure.Retag("", name, tag.key, tag.value)
				claim.Status = v1.NodeClaimStatus{}
				r.store(claim)
				calls := r.azure.Calls()
				for call, failure := range fails {
					r.azure.Fail(call, failure)
				}
				_, err := r.Create(t.Context(), claim)
				created := (*cloud.CreateError)(nil)
				if when == "after a failure" && tag.key == v1beta1.MachineNodeClaimTagKey {
					if err == nil || cloud.IsNotFound(err) { // the failure is told
						t.Errorf("%s=%s %s, failed %v: %v", tag.key, tag.value, when, late, err)
					}
				} else if !errors.As(err, &created) || created.Reason != taken || cloud.IsNotFound(err) || !strings.Contains(created.Message, tag.want) || !strings.Contains(created.Message, name) {
					t.Errorf("%s=%s %s, failed %v: %v", tag.key, tag.value, when, late, err)
				}
				if err := r.Delete(t.Context(), claim); !cloud.IsNotFound(err) {
					t.Errorf("%s=%s: delete: %v", tag.key, tag.value, err)
				}
				if now := r.azure.Calls(); now["DELETE vm"] != calls["DELETE vm"] || when == "before" && tag.key != v1beta1.MachineNodeClaimTagKey && now["PUT nic"] != calls["PUT nic"] {
					t.Errorf("%s=%s %s: calls before %v and after %v", tag.key, tag.value, when, calls, now)
				}
				r.holds(tag.key+" "+when, []string{name}, []string{name})
				if tag.value != "another" || late {
					continue
				}
				listed := func() bool {
					list, err := r.List(t.Context())
					must(t, err)
					return slices.ContainsFunc(list, func(l *cloud.Machine) bool { return l.ProviderID == m.ProviderID })
				}
				if listed() {
					t.Error("a virtual machine of another cluster is listed, so that it is collected")
				}
				// It is ours if a claim says so: the cluster may have had another name.
				claim.Status.ProviderID = m.ProviderID
				r.store(claim)
				if !listed() {
					t.Error("the virtual machine of a claim is not listed")
				}
			}
		}
	}
}

// TestForeignInterface: the network interfaces that another cluster has left behind are its own
// to delete.
func TestForeignInterface(t *testing.T) {
	r := newOwn(t)
	r.cluster = "another"
	r.restart()
	r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "SkuNotAvailable"})
	claim := r.claim("a", in(model.LabelInstanceType, "Standard_D4s_v3"), in(model.LabelZone, "eastus-1"), in(model.LabelCapacityType, "spot"))
	if _, err := r.Create(t.Context(), claim); err == nil {
		t.Fatal("it was launched")
	}
	must(t, r.api.Delete(t.Context(), claim))
	for _, c := range []struct {
		cluster string
		left    []string
	}{{"prod", []string{"aks-a"}}, {"another", nil}} {
		r.cluster = c.cluster
		r.restart()
		r.clock.Step(5 * time.Minute)
		must(t, r.SweepInterfaces(t.Context()))
		r.holds("swept by "+c.cluster, nil, c.left)
	}
}
