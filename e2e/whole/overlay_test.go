// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"

	"karpenter/e2e/harness"
)

// TestNodeOverlay has pods ask for a device no instance type is known to have,
// until an overlay says which one has it; another makes one of two such types
// the cheaper one, and a third that contradicts it is rejected.
func TestNodeOverlay(t *testing.T) {
	f := setUp(t, 0)
	f.StartController(t, "FEATURE_GATES=NodeOverlay=true")
	f.pool(nil)
	v := f.Watch(t, f.oneToOne)
	device := corev1.ResourceList{"cpu": quantity("500m"), "example.com/fuse": quantity("2")}
	f.pod("asks", func(s *corev1.PodSpec) {
		s.Containers[0].Resources = corev1.ResourceRequirements{Requests: device, Limits: device}
	})
	v.Until("the pod is refused", patience, func() string {
		told := v.Events("FailedScheduling", "asks")
		if strings.Contains(strings.Join(told, "\n"), "→ 0 after ") {
			return ""
		}
		return fmt.Sprintf("the events say %q", told)
	})

	f.overlay("cheap", `{requirements: [
  {key: karpenter.sh/nodepool, operator: In, values: [`+f.name+`]},
  {key: node.kubernetes.io/instance-type, operator: In, values: [m-8x-amd64-linux]}], price: "0.001"}`)
	f.overlay("has", `{requirements: [
  {key: karpenter.sh/nodepool, operator: In, values: [`+f.name+`]},
  {key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux, m-8x-amd64-linux]}], capacity: {example.com/fuse: 10}}`)
	v.Until("the pod runs", patience, f.running(v, 1))
	nodes, claims := f.nodes(v), f.claims(v)
	if len(nodes) != 1 || len(claims) != 1 {
		t.Fatalf("%d nodes and %d claims, want 1 of each", len(nodes), len(claims))
	}
	fuse := nodes[0].Status.Allocatable["example.com/fuse"]
	if it := nodes[0].Labels[corev1.LabelInstanceTypeStable]; it != "m-8x-amd64-linux" || fuse.Value() != 10 {
		t.Errorf("the node is a %s with %s devices, want the m-8x-amd64-linux with 10", it, fuse.String())
	}
	for _, key := range []string{v1.PriceOverlayAppliedAnnotationKey, v1.CapacityOverlayAppliedAnnotationKey} {
		if claims[0].Annotations[key] != "true" {
			t.Errorf("the claim has %s=%q", key, claims[0].Annotations[key])
		}
	}

	f.overlay("a-loser", `{requirements: [{key: karpenter.sh/nodepool, operator: In, values: [`+f.name+`]}], price: "0.002"}`)
	for name, want := range map[string]string{"has": "True ValidationSucceeded", "cheap": "True ValidationSucceeded", "a-loser": "False Conflict"} {
		var got string
		if !harness.Eventually(t, func(ctx context.Context) bool {
			o := &v1alpha1.NodeOverlay{}
			if err := f.Client.Get(ctx, client.ObjectKey{Name: f.name + "-" + name}, o); err != nil {
				t.Fatal(err)
			}
			if c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ValidationSucceededCondition); c != nil {
				got = fmt.Sprint(c.Status, " ", c.Reason)
			}
			return got == want
		}) {
			t.Errorf("overlay %s says %q, want %q", name, got, want)
		}
	}
}

// overlay makes a NodeOverlay.
func (f *fixture) overlay(name, spec string) {
	f.Helper()
	f.apply(fmt.Sprintf("apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: %s-%s}\nspec: %s", f.name, name, spec))
}
