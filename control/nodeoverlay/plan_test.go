// SPDX-License-Identifier: Apache-2.0

package nodeoverlay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/cloud/overlay"
	"karpenter/cloud/wrap"
	"karpenter/control/controltest"
	"karpenter/control/nodeoverlay"
	"karpenter/kube/catalogue"
	"karpenter/kube/convert"
	"karpenter/model"
	"karpenter/solve"
	"karpenter/world"
)

// plant is everything between objects in the API and a plan.
type plant struct {
	*controltest.Cluster
	t         *testing.T
	convert   convert.Converter
	world     *world.World
	catalogue *catalogue.Catalogue
}

func newPlant(t *testing.T, script string) *plant {
	t.Helper()
	c := controltest.New(t)
	c.Cloud.SetTypes(cloudtest.DefaultTypes()...)
	if _, err := c.Do(script); err != nil {
		t.Fatal(err)
	}
	store := &overlay.Store{}
	c.Reconcilers[""] = &nodeoverlay.Reconciler{
		Client: c.Client, Provider: c.Cloud, Store: store, Labels: v1.DefaultLabels(), Clock: c.Clock, Changed: func() {},
	}
	axis := model.NewAxis()
	p := &plant{Cluster: c, t: t, convert: convert.Converter{
		Axis: axis, Labels: v1.DefaultLabels(), Overlaid: store.Applied,
		Manages: func(ref *v1.NodeClassReference) bool { return cloud.Manages(c.Cloud, ref) },
	}}
	p.world = world.New(axis, p.convert.WellKnown())
	p.catalogue = &catalogue.Catalogue{Reader: c.Client, Provider: wrap.Overlay(c.Cloud, store), Axis: axis, World: p.world}
	return p
}

func (p *plant) pools() map[string]*v1.NodePool {
	p.t.Helper()
	list := &v1.NodePoolList{}
	if err := p.Client.List(p.t.Context(), list); err != nil {
		p.t.Fatal(err)
	}
	out := map[string]*v1.NodePool{}
	for i := range list.Items {
		pool := &list.Items[i]
		set := pool.StatusConditions(p.Clock.Now())
		set.SetTrue(v1.ValidationSucceededCondition)
		set.SetTrue(v1.NodeClassReadyCondition)
		out[pool.Name] = pool
	}
	return out
}

// plan plans one pod with the request and tells each launch with the marks of
// its claim.
func (p *plant) plan(request corev1.ResourceList) string {
	p.t.Helper()
	if err := p.catalogue.Refresh(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	pools := p.pools()
	for _, pool := range pools {
		known, _ := p.convert.Pool(pool)
		p.world.SetPool(known)
	}
	p.world.SetPod(p.convert.Pod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "uid-of-x"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: request}}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}))
	plan := solve.Decide(p.world.Snapshot(p.Clock.Now()), model.DefaultPolicy())
	out := make([]string, 0, len(plan.Launches))
	for i := range plan.Launches {
		l := &plan.Launches[i]
		text := fmt.Sprintf("%s in %s for $%.3f", l.Type, l.Pool, plan.Cost.Dollars())
		annotations := p.convert.NodeClaimFor(l, pools[l.Pool], nil).Annotations
		for _, key := range []string{v1.PriceOverlayAppliedAnnotationKey, v1.CapacityOverlayAppliedAnnotationKey} {
			if value, ok := annotations[key]; ok {
				text += ", " + strings.TrimPrefix(key, v1.Group+"/") + "=" + value
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// From overlays in the API to a plan: it launches what the overlays made cheapest,
// or what they say has what the pod needs, and the claim tells so.
func TestPlan(t *testing.T) {
	on := func(types string) string {
		return "requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [" + types + "]}]"
	}
	core := corev1.ResourceList{"cpu": resource.MustParse("1")}
	fuse := corev1.ResourceList{"cpu": resource.MustParse("1"), "example.com/fuse": resource.MustParse("1")}
	for _, tc := range []struct {
		name, script string
		request      corev1.ResourceList
		want         string
	}{
		{"spec 20/147", "pool p", core, "small-instance-type in p for $0.056"},
		{"spec 20/147 nothing has it", "pool p", fuse, ""},
		{"spec 20/148", `
			pool p
			overlay a {spec: {` + on("large-instance-type") + `, price: "0.03"}}
			overlay b {spec: {` + on("default-instance-type") + `, price: "0.04", weight: 2}}
			overlay c {spec: {` + on("default-instance-type, large-instance-type") + `, price: "0.02", weight: 1}}
			overlay d {spec: {` + on("large-instance-type") + `, price: "0.05", weight: 1}}`,
			core, "default-instance-type in p for $0.040, price-overlay-applied=true"}, // d rejects c
		{"spec 20/150", `
			pool p
			pool q
			overlay o {spec: {requirements: [` +
			`{key: karpenter.sh/nodepool, operator: In, values: [q]}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}], priceAdjustment: "-50%"}}`,
			core, "small-instance-type in q for $0.040, price-overlay-applied=true"},
		{"spec 20/152", `
			pool p
			overlay o {spec: {` + on("default-instance-type") + `, priceAdjustment: "-100%"}}`,
			core, "default-instance-type in p for $0.000, price-overlay-applied=true"},
		{"a resource", `
			pool p
			overlay o {spec: {` + on("default-instance-type, large-instance-type") + `, capacity: {example.com/fuse: 20}}}`,
			fuse, "default-instance-type in p for $0.140, capacity-overlay-applied=true"},
		{"spec 20/154", `
			pool p
			overlay a {spec: {` + on("default-instance-type, large-instance-type") + `, capacity: {example.com/fuse: 20}}}
			overlay b {spec: {` + on("large-instance-type") + `, priceAdjustment: "-0.55"}}`,
			fuse, "large-instance-type in p for $0.010, price-overlay-applied=true, capacity-overlay-applied=true"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlant(t, tc.script)
			if got := p.plan(tc.request); got != "" { // spec 20/153, spec 45/24
				t.Errorf("before the first evaluation: %s", got)
			}
			if _, err := p.Do("reconcile all"); err != nil {
				t.Fatal(err)
			}
			if got := p.plan(tc.request); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// spec 20/153: a pool whose types cannot be had launches nothing, until they
// can; the other pool launches meanwhile.
func TestPlanWithFailingPool(t *testing.T) {
	p := newPlant(t, `
		pool p
		pool q
		overlay o {spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [p]}], priceAdjustment: "-50%"}}`)
	p.Cloud.FailPool("p", errors.New("no such class"))
	request := corev1.ResourceList{"cpu": resource.MustParse("1")}
	if _, err := p.Reconcilers[""].Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("the failure is not reported")
	}
	if got, want := p.plan(request), "small-instance-type in q for $0.056"; got != want {
		t.Errorf("while p fails: %q, want %q", got, want)
	}
	p.Cloud.FailPool("p", nil)
	if got, want := p.plan(request), "small-instance-type in q for $0.056"; got != want {
		t.Errorf("before p is evaluated: %q, want %q", got, want)
	}
	if _, err := p.Do("reconcile all"); err != nil {
		t.Fatal(err)
	}
	if got, want := p.plan(request), "small-instance-type in p for $0.028, price-overlay-applied=true"; got != want {
		t.Errorf("once p is evaluated: %q, want %q", got, want)
	}
	overlays := &v1alpha1.NodeOverlayList{}
	if err := p.Client.List(t.Context(), overlays); err != nil || len(overlays.Items) != 1 {
		t.Fatalf("%d overlays, error %v", len(overlays.Items), err)
	}
	if o := &overlays.Items[0]; !o.StatusConditions(p.Clock.Now()).IsTrue(v1alpha1.ValidationSucceededCondition) {
		t.Errorf("the overlay says %v", o.Status.Conditions)
	}
}
