// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"karpenter/api/autoscaling/v1beta1"
)

// TestBuffersOfAWorkload has two buffers of one Workload of Kueue (spec 46/126): there is capacity for only
// one of them, so neither gets any. With capacity for both, one waits until the other has its capacity, too,
// and a buffer that is gone is not waited for. A buffer of no Workload waits for none.
func TestBuffersOfAWorkload(t *testing.T) {
	s := newStage(t)
	s.template("small")
	owned := func(b *v1beta1.CapacityBuffer) {
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kueue.x-k8s.io/v1beta1", Kind: "Workload", Name: "train", UID: "w", Controller: ptr.To(true)}}
	}
	s.buffer("a", owned)
	s.buffer("b", owned)
	both := func(a, b string) {
		t.Helper()
		s.must("default/a")
		s.must("default/b")
		s.wants("default/a", provisioning, a)
		s.wants("default/b", provisioning, b)
	}
	both("none", "none")
	s.node("n", 4, true)
	s.pass()
	const together = "False RequiresNewCapacity: capacity for 0 of 3 pods is available; 3 nowhere: "
	both(together, together)
	s.buffer("other", nil)
	s.must("default/other")
	s.pass()
	s.must("default/other")
	s.wants("default/other", provisioning, "True")
	if err := s.Client.Delete(t.Context(), s.get("default/other")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconcile("default/other"); err != nil {
		t.Fatal(err)
	}
	s.node("starts", 4, false)
	s.pass()
	both("False RequiresNewCapacity", "False RequiresNewCapacity")
	s.node("starts", 4, true)
	s.pass()
	both("True", "True")
	if err := s.Client.Delete(t.Context(), s.get("default/b")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconcile("default/b"); err != nil {
		t.Fatal(err)
	}
	s.must("default/a")
	s.wants("default/a", provisioning, "True")
	if groups := s.world.Snapshot(s.clock.Now()).Groups; len(groups) != 1 || groups[0].MinCount != 3 {
		t.Errorf("the world has the groups %v", groups)
	}
}

// TestBuffersOfAWorkloadBeyondLimits has the limits of the namespace leave the younger of two buffers of
// one Workload without pods: no node is planned for the older one either.
func TestBuffersOfAWorkloadBeyondLimits(t *testing.T) {
	s := newStage(t)
	s.Limits = corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("4Ti")}
	s.template("small")
	for name, minutes := range map[string]int{"old": 10, "young": 5} {
		s.buffer(name, func(b *v1beta1.CapacityBuffer) {
			asking(3, minutes)(b)
			b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kueue.x-k8s.io/v1beta1", Kind: "Workload", Name: "train", UID: "w", Controller: ptr.To(true)}}
		})
	}
	for range 2 {
		s.must("default/old")
		s.must("default/young")
	}
	s.node("n", 4, true)
	s.pass()
	s.must("default/old")
	s.wants("default/old", provisioning, "False RequiresNewCapacity: capacity for 0 of 3 pods is available; 3 nowhere: ")
	if groups := s.world.Snapshot(s.clock.Now()).Groups; len(groups) != 1 || groups[0].MinCount != 6 {
		t.Errorf("the world has the groups %v", groups)
	}
}
