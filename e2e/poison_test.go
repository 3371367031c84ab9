// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"karpenter/e2e/harness"
)

// poisoned are objects that older CRDs accepted, each with the condition that
// must name the field at fault.
var poisoned = []struct{ manifest, condition, status, says string }{
	{`{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: poison-duration}, spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}},
	  disruption: {budgets: [{nodes: "1", schedule: "@daily", duration: 99999999h}]}}}`,
		"ValidationSucceeded", "False", "spec.disruption.budgets[0].duration"},
	{`{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: poison-limits}, spec: {limits: {cpu: "1e-999999999"}, template: {spec: {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}}`,
		"ValidationSucceeded", "False", "spec.limits[cpu]"},
	{`{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: poison}, spec: {terminationGracePeriod: 99999999h, resources: {requests: {cpu: "1e-999999999"}}, requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}`,
		"Launched", "Unknown", "spec.resources.requests[cpu]"},
	{`{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: poison}, spec: {requirements: [], capacity: {example.com/x: "1e-999999999"}}}`,
		"ValidationSucceeded", "False", "spec.capacity[example.com/x]"},
	{`{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: poison, namespace: default}, spec: {podTemplateRef: {name: x}, limits: {cpu: "1e-999999999"}}}`,
		"ReadyForProvisioning", "False", "spec.limits[cpu]"},
}

// TestPoisonStoredBefore starts the controller on objects that it cannot decode,
// stored before the CRDs rejected them: each says what is wrong with it, and
// everything else goes on.
func TestPoisonStoredBefore(t *testing.T) {
	cluster, err := harness.Start(t.Context(), harness.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, cluster.Stop()) })
	restore := loosen(t, cluster)
	for _, p := range poisoned {
		o := object(t, p.manifest)
		until(t, o.GetKind()+" is stored", func(ctx context.Context) error { return cluster.Client.Create(ctx, o.DeepCopy()) })
	}
	restore()

	cluster.StartController(t, "FEATURE_GATES=NodeOverlay=true,CapacityBuffer=true")
	check(t, cluster.Client.Create(t.Context(), object(t, `{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}`)))
	good := object(t, `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: good}, spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}}`)
	check(t, cluster.Client.Create(t.Context(), good))
	for _, p := range poisoned {
		o := object(t, p.manifest)
		until(t, fmt.Sprintf("%s %s says %s", o.GetKind(), o.GetName(), p.says), func(ctx context.Context) error {
			return said(ctx, cluster.Client, o, p.condition, p.status, p.says)
		})
	}
	until(t, "another pool is ready", func(ctx context.Context) error { return said(ctx, cluster.Client, good, "Ready", "True", "") })

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	check(t, cluster.Client.Create(t.Context(), pod))
	until(t, "another pool makes a node", func(ctx context.Context) error {
		claims := &unstructured.UnstructuredList{}
		claims.SetAPIVersion("karpenter.sh/v1")
		claims.SetKind("NodeClaimList")
		if err := cluster.Client.List(ctx, claims, client.MatchingLabels{"karpenter.sh/nodepool": "good"}); err != nil {
			return err
		}
		if len(claims.Items) != 1 {
			return fmt.Errorf("%d claims", len(claims.Items))
		}
		return said(ctx, cluster.Client, &claims.Items[0], "Launched", "True", "")
	})
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"metadata":{"labels":{"a key with spaces":"x"}}}}}`))
	check(t, cluster.Client.Patch(t.Context(), good, patch))
	until(t, "edits are seen", func(ctx context.Context) error {
		return said(ctx, cluster.Client, good, "ValidationSucceeded", "False", "a key with spaces")
	})
}

// loosen has the API server accept any spec of our kinds, and returns what puts
// the CRDs back.
func loosen(t *testing.T, cluster *harness.Cluster) (restore func()) {
	t.Helper()
	set := func(name string, spec *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
		var old apiextensionsv1.JSONSchemaProps
		until(t, "CRD "+name+" is changed", func(ctx context.Context) error {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := cluster.Client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
				return err
			}
			properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
			old, properties["spec"] = properties["spec"], *spec
			return cluster.Client.Update(ctx, crd)
		})
		return &old
	}
	names := []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "nodeoverlays.karpenter.sh", "capacitybuffers.autoscaling.x-k8s.io"}
	before := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, name := range names {
		before[name] = set(name, &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)})
	}
	return func() {
		for _, name := range names {
			set(name, before[name])
		}
	}
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	check(t, yaml.Unmarshal([]byte(strings.ReplaceAll(manifest, "\t", " ")), &o.Object))
	return o
}

// said returns how the object's condition differs from what is wanted.
func said(ctx context.Context, c client.Client, o *unstructured.Unstructured, condition, status, says string) error {
	now := o.DeepCopy()
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	all, _, err := unstructured.NestedSlice(now.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, one := range all {
		k, ok := one.(map[string]any)
		if ok && k["type"] == condition && k["status"] == status && strings.Contains(fmt.Sprint(k["message"]), says) {
			return nil
		}
	}
	return fmt.Errorf("conditions are %v", all)
}

// until tries until there is no error.
func until(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("not so: %s: %v", what, last)
	}
}
