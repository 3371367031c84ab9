// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/azure/v1beta1"
	"karpenter/api/conditions"
	"karpenter/api/hostile"
	v1 "karpenter/api/v1"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/nodeclass"
)

// TestHostileClasses has AKSNodeClasses with fields that no one would write looked at by their
// controllers, and machines launched and checked for drift by them. Nothing panics or hangs, and
// the class beside them launches as before.
func TestHostileClasses(t *testing.T) {
	var met encounters
	runs := hostile.Runs(t, 5, func(t *testing.T, seed uint64) { withHostileClasses(t, seed, &met) })
	t.Logf("%+v", met)
	if runs >= 5 && min(met.Ready, met.Launched, met.Refused) == 0 {
		t.Errorf("the classes are no test: %+v", met)
	}
}

// encounters counts what became of classes.
type encounters struct{ Classes, Ready, Launched, Refused int }

func withHostileClasses(t *testing.T, seed uint64, met *encounters) {
	h := hostile.New(seed, "Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux", "FIPS", "Disabled", "Required", "Preferred", "systemd-resolved", subnet, otherSubnet, "/subscriptions//",
		"single-numa-node", "static", "100%", "10Mi", "memory.available", "net.ipv4", "ssh-rsa AAAA", ".:53", "cluster.local", "ForceTCP", "VnetDNS")
	r := newRegion(t)
	reconciler, hash := r.classes(), &nodeclass.Hash{Client: r.api}
	sample := &v1beta1.AKSNodeClass{}
	must(t, r.api.Get(t.Context(), client.ObjectKey{Name: "default"}, sample))
	for n := range 20 {
		class := &v1beta1.AKSNodeClass{}
		sample.Spec.DeepCopyInto(&class.Spec)
		class.Name = fmt.Sprint("hostile-", n)
		if h.IntN(4) == 0 {
			h.Fill(reflect.ValueOf(&class.Spec).Elem(), 0)
		} else {
			h.Change(reflect.ValueOf(&class.Spec).Elem(), 1+h.IntN(3))
		}
		class, ok := hostile.Sent(class)
		if !ok {
			continue
		}
		met.Classes++
		r.try(class, reconciler, hash, met)
	}
	claim := r.claim("good", d4s("eastus-1", "on-demand")...)
	r.launch(claim)
	if reason, err := r.IsDrifted(t.Context(), claim); err != nil || reason != "" {
		t.Errorf("a machine of the class beside them: drifted for %q, %v", reason, err)
	}
}

// classes returns the controller of node classes, as the program has it.
func (r *region) classes() *nodeclass.Reconciler {
	return &nodeclass.Reconciler{Config: nodeclass.Config{
		Client: r.api, Clock: r.clock, Event: func(*v1beta1.AKSNodeClass, string, string, string) {},
		Subnet: subnet, NodeResourceGroup: "MC_Shop_prod_eastus", NetworkPlugin: "azure", SharedImages: true,
		Version: func(context.Context) (string, error) { return "v" + kubernetesVersion, nil },
		Newest: func(_ context.Context, w image.Wanted) ([]v1beta1.NodeImage, error) {
			var out []v1beta1.NodeImage
			for _, d := range w.Definitions() {
				out = append(out, d.Node(d.SharedID("sig", "202607.10.0")))
			}
			return out, nil
		},
		Window:       func(context.Context) (map[string]string, error) { return nil, nil },
		CheckSubnet:  func(context.Context, string) error { return nil },
		DNSConflicts: func(context.Context) (bool, error) { return false, nil },
	}}
}

// try takes a class through its life: it is looked at, launched with, and deleted. Errors are
// what is to be expected.
func (r *region) try(class *v1beta1.AKSNodeClass, reconciler *nodeclass.Reconciler, hash *nodeclass.Hash, met *encounters) {
	r.t.Helper()
	ctx, request := r.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(class)}
	must(r.t, r.api.Create(ctx, class))
	for range 3 {
		_, _ = hash.Reconcile(ctx, request)
		_, _ = reconciler.Reconcile(ctx, request)
	}
	must(r.t, r.api.Get(ctx, request.NamespacedName, class))
	if conditions.IsTrue(class, v1.ReadyCondition) {
		met.Ready++
	}
	_, _ = r.types(ctx, class)
	ref := *r.pool.Spec.Template.Spec.NodeClassRef
	ref.Name = class.Name
	claim := r.claim("of-"+class.Name, d4s("eastus-1", "on-demand")...)
	claim.Spec.NodeClassRef = &ref
	r.store(claim)
	m, err := r.Create(ctx, claim)
	if err != nil {
		met.Refused++
	} else {
		met.Launched++
		claim.Status.ProviderID, claim.Status.ImageID, claim.Annotations = m.ProviderID, m.ImageID, m.Annotations
		r.store(claim)
		_, _ = r.IsDrifted(ctx, claim)
	}
	must(r.t, r.api.Delete(ctx, class))
	for range 2 {
		_, _ = reconciler.Reconcile(ctx, request)
	}
}
