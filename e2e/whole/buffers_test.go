// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/e2e/harness"
)

// TestCapacityBuffer keeps room for three pods: nodes come for pods that do not
// exist and stay although they are empty, also when the program is started again;
// pods that exist run there at once, and new room is made. Without the buffer the nodes go.
//
// spec 20/163, spec 45/28, spec 45/33, spec 45/35, spec 45/36, spec 40/31
func TestCapacityBuffer(t *testing.T) {
	f := setUp(t, time.Second)
	f.pool(nil)
	v := f.Watch(t, f.oneToOne)
	const gate = "FEATURE_GATES=CapacityBuffer=true"
	first := f.StartController(t, gate)
	buffer := f.buffer(3)
	v.Until("the room is there", patience, f.provisioning(v, v1beta1.FitsExistingCapacityReason))
	if got := *v.Buffer(f.name, "spare").Status.Replicas; got != 3 {
		t.Errorf("status.replicas %d", got)
	}
	kept, claims := map[string]bool{}, len(f.claims(v))
	for _, n := range f.nodes(v) {
		kept[n.Name] = true
	}
	v.Until("the nodes say why they stay", patience, func() string {
		for name := range kept {
			for _, message := range v.Events("DisruptionBlocked", name) {
				if strings.Contains(message, "CapacityBuffer "+f.name+"/spare keeps capacity on it") {
					return ""
				}
			}
		}
		return "no event names the buffer"
	})
	first.Kill() // who comes next knows of the buffers before it takes nodes away
	f.StartController(t, gate)
	v.Throughout(25 * time.Second) // longer than an empty node stays, and than two passes
	if n := len(f.claims(v)); n != claims || len(f.nodes(v)) != len(kept) {
		t.Fatalf("%d claims and %d nodes, were %d and %d", n, len(f.nodes(v)), claims, len(kept))
	}

	web := f.deployment(3, "1", "1Gi")
	v.Until("pods run", patience, f.running(v, 3))
	for _, p := range v.Pods(f.name) {
		if !kept[p.Spec.NodeName] {
			t.Errorf("pod %s runs on %s, which was not kept ready", p.Name, p.Spec.NodeName)
		}
	}
	v.Until("their room is missed", patience, f.provisioning(v, v1beta1.RequiresNewCapacityReason))
	v.Until("new room is there", patience, f.provisioning(v, v1beta1.FitsExistingCapacityReason))
	if n := len(f.nodes(v)); n <= len(kept) {
		t.Errorf("%d nodes, were %d without the pods", n, len(kept))
	}
	f.silent(v)

	f.scale(web, 0)
	if err := f.Client.Delete(t.Context(), buffer); err != nil {
		t.Fatal(err)
	}
	v.Until("nodes are gone", patience, f.empty(v))
}

// buffer keeps room for n pods like those of the test's deployment.
func (f *fixture) buffer(n int32) *v1beta1.CapacityBuffer {
	f.Helper()
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "web"}}
	template.Template.Spec = corev1.PodSpec{
		NodeSelector: map[string]string{"test": f.name},
		Containers: []corev1.Container{{Name: "web", Image: "web", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": quantity("1"), "memory": quantity("1Gi")}}}},
	}
	f.create(template)
	b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "spare"}}
	b.Spec.PodTemplateRef, b.Spec.Replicas = &v1beta1.LocalObjectRef{Name: "web"}, &n
	f.create(b)
	return b
}

// provisioning says what keeps the buffer from saying so.
func (f *fixture) provisioning(v *harness.View, reason string) func() string {
	return func() string {
		b := v.Buffer(f.name, "spare")
		if b == nil {
			return "there is no buffer"
		}
		if c := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ProvisioningCondition); c != nil && c.Reason == reason {
			return ""
		}
		return fmt.Sprintf("conditions %v, want %s", b.Status.Conditions, reason)
	}
}

// silent fails the test when anything was said about pods that do not exist.
func (f *fixture) silent(v *harness.View) {
	for _, reason := range []string{"Nominated", "FailedScheduling"} {
		for i := range 3 {
			if messages := v.Events(reason, fmt.Sprint("capacity-buffer-spare-", i+1)); len(messages) > 0 {
				f.Errorf("%s: %v", reason, messages)
			}
		}
	}
}
