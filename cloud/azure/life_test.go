// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/azurefake"
)

// TestList covers spec 71/58: all pages, only what Karpenter launched.
func TestList(t *testing.T) {
	r := newRegion(t)
	r.azure.PageSize(2)
	for i := range 5 {
		r.launch(r.claim(fmt.Sprint("claim-", i)))
	}
	r.azure.Retag(machinePool, "claim-3", v1beta1.NodePoolTagKey, "")
	calls := r.azure.Calls()["LIST machine"]
	list, err := r.List(t.Context())
	if err != nil || len(list) != 4 {
		t.Errorf("%d machines, %v", len(list), err)
	}
	if pages := r.azure.Calls()["LIST machine"] - calls; pages != 3 {
		t.Errorf("%d pages", pages)
	}
	for _, m := range list {
		if m.Claim == "claim-3" || m.ClaimUID != r.claim(m.Claim).UID || m.Created.IsZero() {
			t.Errorf("machine %+v", m)
		}
	}
	r.azure.RemovePool(machinePool)
	if list, err := r.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("without the pool: %v, %v", list, err)
	}
}

// TestIncomplete: a machine of which AKS does not tell when it was
// created is listed without a time, so that it is not taken for an old one; one of
// which it does not tell the virtual machine is left out, and the others are listed.
func TestIncomplete(t *testing.T) {
	r := newRegion(t)
	for _, name := range []string{"a", "b", "c"} {
		r.launch(r.claim(name))
	}
	r.azure.Forget(machinePool, "a", azurefake.CreationTimestamp)
	r.azure.Forget(machinePool, "b", azurefake.ResourceID)
	list, err := r.List(t.Context())
	must(t, err)
	got := map[string]bool{}
	for _, m := range list {
		got[m.Claim] = m.Created.IsZero()
	}
	if want := map[string]bool{"a": true, "c": false}; !maps.Equal(got, want) {
		t.Errorf("listed are, with whether their time is unknown, %v", got)
	}
}

// TestDelete covers spec 71/59: one request per machine, whoever asks.
func TestDelete(t *testing.T) {
	r := newRegion(t)
	claim := r.claim("a")
	r.launch(claim)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := r.Delete(t.Context(), claim); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	must(t, r.Delete(t.Context(), claim))
	if posts := r.azure.Calls()["POST deleteMachines"]; posts != 1 {
		t.Errorf("%d requests to delete", posts)
	}
	r.clock.Step(azurefake.DeletionTime)
	if err := r.Delete(t.Context(), claim); !cloud.IsNotFound(err) {
		t.Errorf("afterwards: %v", err)
	}
	// The machine vanishes between the question and the request.
	other := r.claim("b")
	r.launch(other)
	r.azure.Fail("POST deleteMachines", azurefake.Failure{Status: 400, Code: "InvalidParameter", Message: "Cannot find any valid machines to delete."})
	if err := r.Delete(t.Context(), other); !cloud.IsNotFound(err) {
		t.Errorf("unknown to deleteMachines: %v", err)
	}
}

// TestEviction: the virtual machine is gone, and its machine is left over.
func TestEviction(t *testing.T) {
	r := newRegion(t)
	claim := r.claim("a")
	m := r.launch(claim)
	r.clock.Step(time.Minute)
	r.azure.Evict(machinePool, "a")
	if _, err := r.Get(t.Context(), m.ProviderID); !cloud.IsNotFound(err) {
		t.Errorf("get: %v", err)
	}
	if list, err := r.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("list: %v, %v", list, err)
	}
	must(t, r.api.Delete(t.Context(), claim))
	list, err := r.List(t.Context())
	must(t, err)
	orphans := cloud.Orphans(list, nil, r.clock.Now())
	if len(orphans) != 1 {
		t.Fatalf("without the claim, %d machines are to be collected", len(orphans))
	}
	must(t, r.Delete(t.Context(), orphans[0].Remnant()))
	r.clock.Step(azurefake.DeletionTime)
	if left := r.azure.Machines(machinePool); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// TestOrphan covers the provider's part of spec 71/94: a machine without a claim is
// collected when it is old enough, and a new one under the name is not mistaken for
// it.
func TestOrphan(t *testing.T) {
	r := newRegion(t)
	claim := r.claim("a")
	m := r.launch(claim)
	r.clock.Step(5 * time.Minute)
	list, err := r.List(t.Context())
	must(t, err)
	if got := cloud.Orphans(list, nil, r.clock.Now().Add(-5*time.Minute)); len(got) != 0 {
		t.Errorf("at 5 minutes, %v is collected", got)
	}
	if got := cloud.Orphans(list, nil, r.clock.Now().Add(-4*time.Minute)); len(got) != 1 || got[0].ProviderID != m.ProviderID {
		t.Errorf("an older machine is not collected: %v", got)
	}
	must(t, r.Delete(t.Context(), claim))
	r.clock.Step(azurefake.DeletionTime)
	claim.Status = v1.NodeClaimStatus{}
	second := r.launch(claim)
	if second.ProviderID == m.ProviderID {
		t.Fatal("the second virtual machine has the name of the first")
	}
	if _, err := r.Get(t.Context(), m.ProviderID); !cloud.IsNotFound(err) {
		t.Errorf("get of the first: %v", err)
	}
	if err := r.Delete(t.Context(), (&cloud.Machine{Claim: "a", ProviderID: m.ProviderID}).Remnant()); !cloud.IsNotFound(err) {
		t.Errorf("delete of the first: %v", err)
	}
}

// TestDrift covers spec 71/64 and 71/100 for machines: each reason, and which comes
// first.
func TestDrift(t *testing.T) {
	type situation struct {
		r     *region
		claim *v1.NodeClaim
		node  *corev1.Node
	}
	class := func(s *situation) { s.claim.Annotations[v1beta1.HashAnnotationKey] = "1" }
	version := func(s *situation) { s.node.Status.NodeInfo.KubeletVersion = "v1.33.3" }
	image := func(s *situation) { s.claim.Status.ImageID = "AKSUbuntu-2204gen2containerd-202601.01.0" }
	recreate := func(s *situation) { s.r.azure.DriftAction(machinePool, "a", "Recreate") }
	for name, c := range map[string]struct {
		changes []func(*situation)
		want    string
	}{
		"nothing":         {nil, ""},
		"class":           {[]func(*situation){class}, "NodeClassDrift"},
		"version":         {[]func(*situation){version}, "K8sVersionDrift"},
		"image":           {[]func(*situation){image}, "ImageDrift"},
		"recreate":        {[]func(*situation){recreate}, "ClusterConfigDrift"},
		"unknown action":  {[]func(*situation){func(s *situation) { s.r.azure.DriftAction(machinePool, "a", "Repave") }}, "ClusterConfigDrift"},
		"all":             {[]func(*situation){class, version, image, recreate}, "NodeClassDrift"},
		"all but class":   {[]func(*situation){version, image, recreate}, "K8sVersionDrift"},
		"image, recreate": {[]func(*situation){image, recreate}, "ImageDrift"},
		"class of another hash version": {[]func(*situation){class, func(s *situation) {
			s.claim.Annotations[v1beta1.HashVersionAnnotationKey] = "v2"
		}}, ""},
		"no node": {[]func(*situation){version, func(s *situation) { s.claim.Status.NodeName = "" }}, ""},
		"node is gone": {[]func(*situation){version, func(s *situation) {
			s.claim.Status.NodeName = "another"
		}}, ""},
		"version not known": {[]func(*situation){version, func(s *situation) {
			s.r.class(func(c *v1beta1.AKSNodeClass) {
				c.StatusConditions(s.r.clock.Now()).SetFalse(v1beta1.KubernetesVersionReadyCondition, "Some", "reason")
			})
		}}, ""},
		"images not known": {[]func(*situation){image, func(s *situation) {
			s.r.class(func(c *v1beta1.AKSNodeClass) {
				c.StatusConditions(s.r.clock.Now()).SetFalse(v1beta1.ImagesReadyCondition, "Some", "reason")
			})
		}}, ""},
		"standalone claim": {[]func(*situation){class, func(s *situation) { s.claim.Labels = nil }}, ""},
		"pool is gone": {[]func(*situation){class, func(s *situation) {
			s.claim.Labels[v1.NodePoolLabelKey] = "gone"
		}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegion(t)
			s := &situation{r: r, claim: r.claim("a")}
			r.launch(s.claim)
			s.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
			s.node.Status.NodeInfo.KubeletVersion = "v" + kubernetesVersion
			s.claim.Status.NodeName = "node"
			for _, change := range c.changes {
				change(s)
			}
			must(t, r.api.Create(t.Context(), s.node))
			r.store(s.claim)
			r.clock.Step(2 * time.Minute) // what AKS says is remembered for one
			if got, err := r.IsDrifted(t.Context(), s.claim); got != c.want || err != nil {
				t.Errorf("drift %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestTagUpdate covers spec 71/65: a change of the class' tags reaches the machine,
// once the node has registered, and a conflict is repeated.
func TestTagUpdate(t *testing.T) {
	r := newRegion(t)
	claim := r.claim("a")
	r.launch(claim)
	update := func(what string, want bool, puts int) {
		t.Helper()
		before := r.azure.Calls()["PUT machine"]
		done, err := r.Update(t.Context(), claim)
		if err != nil || done != want {
			t.Errorf("%s: done %t, %v", what, done, err)
		}
		if got := r.azure.Calls()["PUT machine"] - before; got != puts {
			t.Errorf("%s: %d requests", what, got)
		}
	}
	update("nothing has changed", true, 0)
	r.class(func(c *v1beta1.AKSNodeClass) { c.Spec.Tags = map[string]string{"team/name": "shop"} })
	update("before the node has registered", false, 0)
	claim.Status.Conditions = []v1.Condition{{Type: v1.RegisteredCondition, Status: metav1.ConditionTrue, Reason: "Registered", LastTransitionTime: metav1.Now()}}
	r.store(claim)
	recorded := claim.Annotations[v1beta1.InPlaceUpdateHashAnnotationKey]
	r.azure.Fail("PUT machine", azurefake.Failure{Status: 412, Code: "ConditionNotMet", Message: "The condition is not met."})
	if done, err := r.Update(t.Context(), claim); err == nil || done || claim.Annotations[v1beta1.InPlaceUpdateHashAnnotationKey] != recorded {
		t.Errorf("overtaken: done %t, %v, annotations %v", done, err, claim.Annotations)
	}
	update("again", true, 1)
	update("afterwards", true, 0)
	want := map[string]string{
		"team_name": "shop", "karpenter.azure.com_cluster": "prod", "compute.aks.billing": "linux", "karpenter.sh_nodepool": "default",
		"karpenter.azure.com_aksmachine_nodeclaim": "a",
	}
	if got := r.azure.Tags(machinePool, "a"); !maps.Equal(got, want) {
		t.Errorf("tags %v, want %v", got, want)
	}
	// What others have changed of ours is overwritten with the next change; what they have
	// added stays.
	r.azure.Retag(machinePool, "a", v1beta1.MachineNodeClaimTagKey, "")
	r.azure.Retag(machinePool, "a", "owner", "somebody")
	want["owner"] = "somebody"
	r.class(func(c *v1beta1.AKSNodeClass) { c.Spec.Tags = nil })
	update("without tags", true, 1)
	delete(want, "team_name")
	if got := r.azure.Tags(machinePool, "a"); !maps.Equal(got, want) {
		t.Errorf("tags %v, want %v", got, want)
	}
}

// TestDriftCalls: whether many machines have drifted takes few lists, and
// no request for each.
func TestDriftCalls(t *testing.T) {
	r := newRegion(t)
	var claims []*v1.NodeClaim
	for i := range 20 {
		claim := r.claim(fmt.Sprint("claim-", i))
		r.launch(claim)
		claims = append(claims, claim)
	}
	r.clock.Step(2 * time.Minute)
	before := r.azure.Calls()
	var wg sync.WaitGroup
	for range 3 {
		for _, claim := range claims {
			wg.Go(func() {
				if drift, err := r.IsDrifted(t.Context(), claim); drift != "" || err != nil {
					t.Errorf("%s: %q, %v", claim.Name, drift, err)
				}
			})
		}
	}
	wg.Wait()
	after := r.azure.Calls()
	if lists, gets := after["LIST machine"]-before["LIST machine"], after["GET machine"]-before["GET machine"]; lists < 1 || lists > 3 || gets != 0 {
		t.Errorf("%d lists, %d machines read", lists, gets)
	}
}

// TestWaiting covers spec 71/63: what becomes of a claim whose machine AKS has accepted.
func TestWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*region, *v1.NodeClaim)
		rounds  int // after which the claim is gone
		why     string
	}{
		"it is being created": {func(*region, *v1.NodeClaim) {}, 0, ""},
		"it is being deleted": {func(r *region, claim *v1.NodeClaim) { must(r.t, r.Delete(r.t.Context(), claim)) }, 1, "was deleted before its node registered"},
		"it has failed, and AKS does not say why": {func(r *region, claim *v1.NodeClaim) {
			r.azure.Script(place("Standard_D4s_v3", "eastus-1", "spot"), azurefake.Refusal{Code: "AllocationFailed", Late: true})
			must(r.t, r.Delete(r.t.Context(), claim))
			r.clock.Step(azurefake.DeletionTime)
			claim.Status.ProviderID = ""
			r.launch(claim)
			r.clock.Step(azurefake.CreationTime)
			r.azure.Forget(machinePool, "a", azurefake.ProvisioningError)
		}, 1, "Azure does not say why"},
		"AKS does not tell its state": {func(r *region, _ *v1.NodeClaim) { r.azure.Forget(machinePool, "a", azurefake.ProvisioningState) }, 11, "does not tell the state"},
		"it is gone":                  {func(r *region, _ *v1.NodeClaim) { r.azure.RemovePool(machinePool) }, 1, "was deleted before its node registered"},
		"AKS has a pause": {func(r *region, _ *v1.NodeClaim) {
			r.azure.Fail("LIST machine", slices.Repeat([]azurefake.Failure{{Status: 503, Code: "ServiceUnavailable"}}, 12)...) // three calls, each with three more attempts
		}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegion(t)
			claim := r.claim("a", d4s("eastus-1", "spot")...)
			r.launch(claim)
			c.happens(r, claim)
			for round := 1; round <= 12; round++ {
				err := r.CheckLaunches(t.Context())
				if paused := name == "AKS has a pause" && round <= 3; (err != nil) != paused {
					t.Errorf("round %d: %v", round, err)
				}
				gone := r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), &v1.NodeClaim{}) != nil
				if want := c.rounds > 0 && round >= c.rounds; gone != want {
					t.Fatalf("after round %d, the claim is gone: %v", round, gone)
				}
			}
			if told := strings.Join(r.events, "\n"); !strings.Contains(told, c.why) || c.why == "" && told != "" {
				t.Errorf("events %q", told)
			}
		})
	}
}

// TestAgeless covers spec 71/97: an instance of which Azure does not tell when it was created is
// not taken for an old one.
func TestAgeless(t *testing.T) {
	r := newOwn(t)
	r.launch(r.claim("a"))
	r.clock.Step(time.Hour)
	r.azure.Forget("", "aks-a", azurefake.CreationTimestamp)
	list, err := r.List(t.Context())
	must(t, err)
	if len(list) != 1 || !list[0].Created.IsZero() {
		t.Fatalf("listed %+v", list)
	}
	if got := cloud.Orphans(list, nil, r.clock.Now()); len(got) != 0 {
		t.Errorf("collected is %+v", got[0])
	}
}
