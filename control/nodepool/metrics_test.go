// SPDX-License-Identifier: Apache-2.0

package nodepool_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/control/controltest"
)

// TestMetrics covers spec 50/12: karpenter_nodepools_limit and
// karpenter_nodepools_usage follow the pool, and go with it.
func TestMetrics(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	pool := &v1.NodePool{}
	pool.Name = "p"
	pool.Spec.Template.Spec.NodeClassRef = c.NewClaim("any").Spec.NodeClassRef
	pool.Spec.Limits = v1.Limits{corev1.ResourceCPU: resource.MustParse("2500m"), "ephemeral-storage": resource.MustParse("1Ki")}
	if err := c.Client.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		if _, err := c.Reconcilers["counter"].Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "p"}}); err != nil {
			t.Fatal(err)
		}
		if err := testutil.GatherAndCompare(c.Registry, strings.NewReader(want), "karpenter_nodepools_limit", "karpenter_nodepools_usage"); err != nil {
			t.Error(err)
		}
	}
	for _, words := range [][]string{{"a", "p", "1500", "2"}, {"b", "other", "1000"}} {
		if err := c.Commands["machine"](words); err != nil {
			t.Fatal(err)
		}
	}
	check(`
# HELP karpenter_nodepools_limit Limit of a node pool for a resource, in the unit of the resource: cores, bytes or a number.
# TYPE karpenter_nodepools_limit gauge
karpenter_nodepools_limit{nodepool="p",resource_type="cpu"} 2.5
karpenter_nodepools_limit{nodepool="p",resource_type="ephemeral_storage"} 1024
# HELP karpenter_nodepools_usage Amount of a resource that the nodes of a node pool have, in the unit of the resource: cores, bytes or a number.
# TYPE karpenter_nodepools_usage gauge
karpenter_nodepools_usage{nodepool="p",resource_type="cpu"} 1.5
karpenter_nodepools_usage{nodepool="p",resource_type="ephemeral_storage"} 0
karpenter_nodepools_usage{nodepool="p",resource_type="memory"} 0
karpenter_nodepools_usage{nodepool="p",resource_type="nodes"} 1
karpenter_nodepools_usage{nodepool="p",resource_type="nvidia.com/gpu"} 2
karpenter_nodepools_usage{nodepool="p",resource_type="pods"} 0
`)
	if err := c.Client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	check("")
}
