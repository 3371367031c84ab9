// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/model"
)

// spec 20/163, spec 45/36: capacity that exists.
func TestFitsExistingCapacity(t *testing.T) {
	s := newStage(t)
	s.template("small")
	s.buffer("b", nil)
	s.must("default/b")
	if got := s.condition("default/b", provisioning); got != "none" {
		t.Errorf("before any pass: %s", got)
	}
	s.pool()
	s.node("n", 4, true)
	plan, asked := s.pass()
	if len(plan.Launches) > 0 || fmt.Sprint(asked) != "[default/b]" {
		t.Errorf("launches %v; to be looked at: %v", plan.Launches, asked)
	}
	s.must("default/b")
	s.wants("default/b", provisioning, "True FitsExistingCapacity: capacity for all 3 pods is available")
	if _, asked := s.pass(); len(asked) > 0 {
		t.Errorf("a pass that changes nothing has %v looked at", asked)
	}
	// The node is not empty, and nothing else keeps it: spec 40/31.
	if len(plan.Commands) > 0 {
		t.Errorf("removals %v", plan.Commands)
	}
	s.world.DeleteBuffer("default/b")
	if plan, _ := s.pass(); len(plan.Commands) != 1 {
		t.Errorf("without the buffer, stays %v", plan.Stays)
	}
}

// spec 20/163, spec 45/36: capacity that does not exist yet. Capacity on its
// way counts, so that nothing is launched twice, but it does not count as ready
// before it runs pods.
func TestRequiresNewCapacity(t *testing.T) {
	s := newStage(t)
	s.template("small")
	s.buffer("b", nil)
	s.must("default/b")
	s.pool()
	s.node("n", 1, true)
	plan, _ := s.pass()
	if len(plan.Launches) != 1 {
		t.Fatalf("launches %v", plan.Launches)
	}
	s.must("default/b")
	s.wants("default/b", provisioning, "False RequiresNewCapacity: capacity for 1 of 3 pods is available; 2 on nodes being launched")
	plan, asked := s.pass()
	if len(plan.Launches) != 0 || fmt.Sprint(asked) != "[default/b]" {
		t.Errorf("launches %v; to be looked at: %v", plan.Launches, asked)
	}
	s.must("default/b")
	s.wants("default/b", provisioning, "False RequiresNewCapacity: capacity for 1 of 3 pods is available; 2 fit on nodes that are starting")
	s.world.DeleteClaim("claim-0")
	s.node("m", 4, true)
	s.pass()
	s.must("default/b")
	s.wants("default/b", provisioning, "True FitsExistingCapacity: ")
}

// A pod without a place says why on its buffer, and only there.
func TestPodsWithoutPlace(t *testing.T) {
	s := newStage(t)
	template := s.template("small")
	template.Template.Spec.NodeSelector = map[string]string{"team": "nobody"}
	if err := s.Client.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	s.buffer("b", nil)
	s.must("default/b")
	s.pool()
	s.pass()
	s.must("default/b")
	s.wants("default/b", provisioning, "False RequiresNewCapacity: capacity for 0 of 3 pods is available; 3 nowhere: nodepool default: ")
	if got := s.condition("default/b", provisioning); !strings.Contains(got, "team") {
		t.Errorf("%s does not name the label", got)
	}
}

// spec 20/163: a buffer of no pods is empty, without a pass.
func TestBufferEmpty(t *testing.T) {
	s := newStage(t)
	s.template("small")
	s.buffer("b", func(b *v1beta1.CapacityBuffer) { b.Spec.Replicas = ptr.To(int32(0)) })
	s.must("default/b")
	s.wants("default/b", provisioning, "False BufferEmpty: ")
	if len(s.news) > 0 {
		t.Errorf("a pass was triggered: %v", s.news)
	}
}

// spec 45/36: the condition stays until a pass has planned the pods that the
// buffer has now.
func TestNoResult(t *testing.T) {
	s := newStage(t)
	s.template("small")
	s.buffer("b", nil)
	s.must("default/b")
	s.pool()
	s.node("n", 8, true)
	s.pass()
	s.must("default/b")
	s.wants("default/b", provisioning, "True FitsExistingCapacity: capacity for all 3 pods is available")
	b := s.get("default/b")
	b.Spec.Replicas = ptr.To(int32(10))
	if err := s.Client.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s.clock.SetTime(s.clock.Now().Add(time.Second))
	s.must("default/b")
	s.wants("default/b", provisioning, "True FitsExistingCapacity: capacity for all 3 pods is available")
	s.Planned(&model.Snapshot{}, &model.Plan{}) // a pass that knew of none
	s.must("default/b")
	s.wants("default/b", provisioning, "True FitsExistingCapacity: capacity for all 3 pods is available")
	s.pass()
	s.must("default/b")
	s.wants("default/b", provisioning, "False RequiresNewCapacity: capacity for 8 of 10 pods is available; 2 on nodes being launched")
}

// Rules between pods hold for pods that stand in: those that want a node each
// have capacity on as many.
func TestBufferWithPodAntiAffinity(t *testing.T) {
	s := newStage(t)
	template := s.template("small")
	template.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: template.Template.Labels},
		}},
	}}
	if err := s.Client.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	s.buffer("b", nil)
	s.must("default/b")
	s.pool()
	s.node("n", 8, true)
	plan, _ := s.pass()
	if len(plan.Launches) != 2 {
		t.Errorf("launches %v, want 2", plan.Launches)
	}
	s.must("default/b")
	s.wants("default/b", provisioning, "False RequiresNewCapacity: capacity for 1 of 3 pods is available; 2 on nodes being launched")
}
