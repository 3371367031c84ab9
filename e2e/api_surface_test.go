// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// TestAPISurface prints what the API server says about each resource: names,
// scope, subresources, and the columns of kubectl get.
func TestAPISurface(t *testing.T) {
	cluster := shared.Cluster(t)
	disco, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	datadriven.RunTest(t, "testdata/api_surface", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		list, err := disco.ServerResourcesForGroupVersion(strings.TrimSpace(d.Input))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		slices.SortFunc(list.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
		for _, r := range list.APIResources {
			fmt.Fprintf(&out, "%s kind=%s", r.Name, r.Kind)
			if strings.Contains(r.Name, "/") {
				out.WriteByte('\n')
				continue
			}
			fmt.Fprintf(&out, " singular=%s namespaced=%t short=%v categories=%v\n", r.SingularName, r.Namespaced, r.ShortNames, r.Categories)
			for _, column := range columns(t, cluster, list.GroupVersion, r.Name) {
				wide := ""
				if column.Priority > 0 {
					wide = " (wide)"
				}
				fmt.Fprintf(&out, "  %s: %s%s\n", column.Name, column.Type, wide)
			}
		}
		return out.String()
	})
}

// columns returns what kubectl get shows of a resource.
func columns(t *testing.T, cluster *harness.Cluster, groupVersion, name string) []metav1.TableColumnDefinition {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.GroupVersion = &schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}
	config.NegotiatedSerializer = kubescheme.Codecs.WithoutConversion()
	c, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.Get().AbsPath("apis", groupVersion, name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	return table.ColumnDefinitions
}

// newPool returns a NodePool that the API server accepts.
func newPool(name string) *v1.NodePool {
	return &v1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.NodePoolSpec{Template: v1.NodeClaimTemplate{Spec: v1.NodeClaimTemplateSpec{
			Requirements: []v1.NodeSelectorRequirementWithMinValues{},
			NodeClassRef: &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
			ExpireAfter:  v1.MustParseNillableDuration("72h"),
		}}},
	}
}

// TestScaleStaticPool covers `kubectl scale` of spec 10/41: a static pool can
// be scaled, a dynamic one cannot.
func TestScaleStaticPool(t *testing.T) {
	c := shared.Cluster(t).Client
	static, dynamic := newPool("scale-static"), newPool("scale-dynamic")
	replicas := int64(1)
	static.Spec.Replicas = &replicas
	for _, pool := range []*v1.NodePool{static, dynamic} {
		create(t, c, pool)
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
		err := c.SubResource("scale").Update(t.Context(), pool, client.WithSubResourceBody(scale))
		if (err == nil) != pool.IsStatic() {
			t.Errorf("scale %s: %v", pool.Name, err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(static), static); err != nil {
		t.Fatal(err)
	}
	if *static.Spec.Replicas != 7 {
		t.Errorf("replicas are %d after scaling to 7", *static.Spec.Replicas)
	}
}

// TestTypedObjects writes the Go types and reads them back unchanged.
func TestTypedObjects(t *testing.T) {
	c := shared.Cluster(t).Client
	pool := newPool("typed")
	pool.Spec.Disruption = v1.Disruption{
		ConsolidateAfter:    v1.MustParseNillableDuration("Never"),
		ConsolidationPolicy: v1.ConsolidationPolicyWhenEmpty,
		Budgets:             []v1.Budget{{Nodes: "3"}},
	}
	wantPool, hash := pool.Spec.DeepCopy(), pool.Hash()
	create(t, c, pool)
	pool.StatusConditions(pool.CreationTimestamp.Time).SetTrue(v1.ValidationSucceededCondition)
	if err := c.Status().Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*wantPool, pool.Spec); diff != "" {
		t.Errorf("the pool's spec changed (-want +got):\n%s", diff)
	}
	if pool.Hash() != hash {
		t.Error("the pool's hash changed on its way through the API server")
	}

	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "typed"},
		Spec: v1.NodeClaimSpec{
			Taints:       []v1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}},
			Requirements: []v1.NodeSelectorRequirementWithMinValues{},
			NodeClassRef: pool.Spec.Template.Spec.NodeClassRef,
			ExpireAfter:  v1.MustParseNillableDuration("72h"),
			Resources:    v1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		},
	}
	wantClaim := claim.Spec.DeepCopy()
	create(t, c, claim)
	claim.Status.ProviderID = "kwok://typed"
	claim.StatusConditions(claim.CreationTimestamp.Time).SetTrue(v1.LaunchedCondition)
	wantStatus := claim.Status.DeepCopy()
	if err := c.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*wantClaim, claim.Spec); diff != "" {
		t.Errorf("the claim's spec changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(*wantStatus, claim.Status); diff != "" {
		t.Errorf("the claim's status changed (-want +got):\n%s", diff)
	}
}

// create creates the object and deletes it at the end of the test.
func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), object); err != nil {
			t.Error(err)
		}
	})
}
