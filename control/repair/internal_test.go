// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"karpenter/control/controltest"
)

func TestUnhealthyNodesAllowed(t *testing.T) {
	for total, want := range map[int]int{0: 0, 1: 1, 3: 1, 5: 1, 6: 2, 10: 2, 11: 3, 100: 20} {
		if got := allowed(total); got != want {
			t.Errorf("%d of %d nodes may be unhealthy, want %d", got, total, want)
		}
	}
}

// TestRepairEventFilter shows which updates of Nodes are looked at.
func TestRepairEventFilter(t *testing.T) {
	c := controltest.New(t)
	r := &Reconciler{Provider: c.Cloud}
	node := func(ours bool, conditions ...corev1.NodeCondition) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}}
		if ours {
			n.Labels = map[string]string{"karpenter.kwok.sh/kwoknodeclass": "default"}
		}
		return n
	}
	ready := func(status corev1.ConditionStatus, since, heard int) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: corev1.NodeReady, Status: status,
			LastTransitionTime: metav1.NewTime(c.Clock.Now().Add(time.Duration(since) * time.Second)),
			LastHeartbeatTime:  metav1.NewTime(c.Clock.Now().Add(time.Duration(heard) * time.Second)),
		}
	}
	disk := corev1.NodeCondition{Type: "DiskDead", Status: corev1.ConditionFalse}
	pid := corev1.NodeCondition{Type: "PIDPressure", Status: corev1.ConditionFalse}
	for _, tt := range []struct {
		name     string
		old, now *corev1.Node
		want     bool
	}{
		{"a heartbeat", node(true, ready("True", 0, 0)), node(true, ready("True", 0, 9)), false},
		{"another status", node(true, ready("True", 0, 0)), node(true, ready("False", 0, 0)), true},
		{"another transition", node(true, ready("False", 0, 0)), node(true, ready("False", 5, 5)), true},
		{"one more condition", node(true, disk), node(true, disk, pid), true},
		{"one less", node(true, disk, pid), node(true, disk), true},
		{"one for another", node(true, disk), node(true, pid), true},
		{"order", node(true, disk, pid), node(true, pid, disk), false},
		{"it became ours", node(false, disk), node(true, disk), true},
		{"it is not ours", node(false, disk), node(false, disk, pid), false},
	} {
		if got := r.news().Update(event.UpdateEvent{ObjectOld: tt.old, ObjectNew: tt.now}); got != tt.want {
			t.Errorf("%s: looked at: %t, want %t", tt.name, got, tt.want)
		}
	}
	if r.news().Delete(event.DeleteEvent{Object: node(true)}) || !r.news().Create(event.CreateEvent{Object: node(true)}) {
		t.Error("a Node is looked at when it comes, and not when it is gone")
	}
}
