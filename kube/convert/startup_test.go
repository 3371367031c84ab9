// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/model"
)

// What a pod took to start is the time from being bound to being ready.
func TestStartup(t *testing.T) {
	at := func(after time.Duration) metav1.Time { return metav1.NewTime(time.Unix(1000, 0).Add(after)) }
	for _, tc := range []struct {
		name  string
		ready corev1.ConditionStatus
		after time.Duration
		want  time.Duration
	}{
		{"ready", corev1.ConditionTrue, 90 * time.Second, 90 * time.Second},
		{"not ready", corev1.ConditionFalse, 90 * time.Second, 0},
		{"ready again after hours", corev1.ConditionTrue, 5 * time.Hour, 30 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(0)},
				{Type: corev1.PodReady, Status: tc.ready, LastTransitionTime: at(tc.after)},
			}}}
			if got := starts(p); got != tc.want {
				t.Errorf("it took %s, want %s", got, tc.want)
			}
		})
	}
}

func starts(p *corev1.Pod) time.Duration {
	c := convert.Converter{Axis: model.NewAxis(), Labels: v1.DefaultLabels()}
	return c.Pod(p).Startup
}

// The class of a pod is what tells how long it lives: only pods have one that are not
// replaced when they end.
func TestClassOfPod(t *testing.T) {
	for _, tc := range []struct{ kind, name, want string }{
		{"", "", "Pod"},
		{"Job", "nightly-29123456", "CronJob/nightly"},
		{"Job", "import", "Job"},
		{"Workflow", "etl-x7k2p", "Workflow"},
		{"ReplicaSet", "web-5d4f", ""},
		{"StatefulSet", "db", ""},
		{"DaemonSet", "agent", ""},
		{"CloneSet", "web", ""},
	} {
		p := &corev1.Pod{}
		if tc.kind != "" {
			controls := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: tc.kind, Name: tc.name, Controller: &controls}}
		}
		c := convert.Converter{Axis: model.NewAxis(), Labels: v1.DefaultLabels()}
		if got := c.Pod(p).Class; got != tc.want {
			t.Errorf("a pod of %s %s has the class %q, want %q", tc.kind, tc.name, got, tc.want)
		}
	}
}
