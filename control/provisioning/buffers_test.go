// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/model"
	"karpenter/world"
)

// buffer has n pods stand in for a buffer.
func (s *stage) buffer(name, cpu string, n int) {
	priority := int32(math.MinInt32)
	p := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	}}}}
	p.Namespace, p.Spec.Priority = "default", &priority
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	var pods []world.Pod
	for i := range n {
		pod := s.Convert.Pod(p)
		pod.Name, pod.UID = fmt.Sprintf("capacity-buffer-%s-%d", name, i+1), fmt.Sprintf("uid-%s-%d", name, i+1)
		pods = append(pods, pod)
	}
	s.world.SetBuffer("default/"+name, pods)
}

// planned returns where the pods of buffers are planned: pod → node or claim.
func (s *stage) planned() map[string]string {
	out := map[string]string{}
	for _, pending := range s.world.Snapshot(s.clock.Now()).Pending {
		for _, p := range pending.Pods {
			if p.Buffer != "" {
				out[p.Name] = p.Planned
			}
		}
	}
	return out
}

// spec 20/163: pods of a buffer on capacity that exists. Their node is kept from
// counting as empty, but not nominated, so that it may be replaced.
func TestBufferOnExistingCapacity(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.node("n", "default", nil)
	s.buffer("b", "1", 3)
	s.mustPass()
	s.wantClaims(0)
	for name, node := range s.planned() {
		if node != "n" {
			t.Errorf("%s is planned on %q", name, node)
		}
	}
	if len(s.planned()) != 3 {
		t.Errorf("planned %v", s.planned())
	}
	for _, n := range s.world.Snapshot(s.clock.Now()).Nodes {
		if n.Disruption.Blocked != "" {
			t.Errorf("node %s is blocked: %s", n.Name, n.Disruption.Blocked)
		}
	}
	if got := s.said(); len(got) > 0 {
		t.Errorf("events %v about pods that do not exist", got)
	}
}

// spec 20/163: pods of a buffer have nodes launched like any, once. Nothing is
// said about them, and they are no pods in the metrics.
func TestBufferLaunches(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.buffer("b", "3", 3)
	s.mustPass()
	s.wantClaims(3)
	for range 2 {
		s.mustPass()
		s.wantClaims(3)
	}
	s.showClaims()
	for range 2 {
		s.mustPass()
		s.wantClaims(3)
	}
	s.buffer("huge", "1000", 1)
	s.mustPass()
	if got := s.said(); len(got) > 0 {
		t.Errorf("events %v about pods that do not exist", got)
	}
	const unplaced = "karpenter_scheduler_unschedulable_pods_count"
	want := fmt.Sprintf("# HELP %s Number of pods that the latest decision could not schedule.\n# TYPE %s gauge\n%s{controller=\"provisioner\"} 0\n", unplaced, unplaced, unplaced)
	if err := testutil.GatherAndCompare(s.registry, strings.NewReader(want), unplaced); err != nil {
		t.Error(err)
	}
}

// If a real pod uses the capacity of a buffer, the next pass, which needs no
// trigger, launches capacity again.
func TestBufferIsRefilled(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	s.node("n", "default", nil)
	s.buffer("b", "1", 3)
	s.mustPass()
	s.wantClaims(0)
	s.pod("taker", "3", func(p *corev1.Pod) { p.Spec.NodeName = "n" })
	if after := s.reconcile(); after <= 0 || after > RetryAfter {
		t.Errorf("comes back after %v", after)
	}
	s.clock.SetTime(s.clock.Now().Add(RetryAfter))
	s.reconcile()
	if n := len(s.claims()); n == 0 {
		t.Error("no new room")
	}
	here := 0
	for _, node := range s.planned() {
		if node == "n" {
			here++
		}
	}
	if here != 1 {
		t.Errorf("%d pods of the buffer are planned on the node that has room for one: %v", here, s.planned())
	}
	s.world.DeletePod("default", "taker")
	s.world.DeleteBuffer("default/b")
	s.mustPass()
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	if after := s.reconcile(); after != 0 {
		t.Errorf("comes back after %v although nothing is pending", after)
	}
}

// Done is called with the plan of each pass.
func TestProvisioningDoneCallback(t *testing.T) {
	s := newStage(t)
	s.pool("default", nil)
	var launched []int
	s.Done = func(_ *model.Snapshot, plan *model.Plan) { launched = append(launched, len(plan.Launches)) }
	s.buffer("b", "1", 1)
	s.mustPass()
	s.mustPass()
	if fmt.Sprint(launched) != "[1 0]" {
		t.Errorf("launches of the passes %v, want [1 0]", launched)
	}
}
