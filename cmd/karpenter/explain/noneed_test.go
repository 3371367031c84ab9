// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestExplainPodWithoutNeed: for a pod that needs no node, the answer names the
// reason.
func TestExplainPodWithoutNeed(t *testing.T) {
	now := metav1.Now()
	for _, c := range []struct {
		name, want string
		edit       func(*corev1.Pod)
	}{
		{"bound", "it is bound to node n7", func(p *corev1.Pod) { p.Spec.NodeName = "n7" }},
		{"done", "it has finished (Succeeded)", func(p *corev1.Pod) { p.Status.Phase, p.Spec.NodeName = corev1.PodSucceeded, "n7" }},
		{"deleted", "it is being deleted", func(p *corev1.Pod) { p.DeletionTimestamp = &now }},
		{"gated", "scheduling gate quota", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }},
		{"preempting", "reserves capacity for it on node n8", func(p *corev1.Pod) { p.Status.NominatedNodeName = "n8" }},
		{"young", "has not reported it as unschedulable yet", func(*corev1.Pod) {}},
		{"daemon", "leaves it to others", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable}}
		}},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: c.name}}
		c.edit(p)
		var text strings.Builder
		if err := OfOther(p).Text(&text); err != nil {
			t.Fatal(err)
		}
		if want := "pod shop/" + c.name + " needs no new node: "; !strings.HasPrefix(text.String(), want) || !strings.Contains(text.String(), c.want) {
			t.Errorf("%s: got %q, want %q", c.name, text.String(), c.want)
		}
	}
}
