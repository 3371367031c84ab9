// SPDX-License-Identifier: Apache-2.0

package obstacle

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "karpenter/api/v1"
	"karpenter/control/controltest"
)

// TestConcerned shows that budgets and pods wake the claims for which they may
// matter, and no others.
func TestConcerned(t *testing.T) {
	c := controltest.New(t)
	if _, err := c.Do(`
		claim calm {status: {providerID: "fake:///uid-of-calm"}}
		claim drifted {status: {providerID: "fake:///uid-of-drifted"}}
		condition claim/drifted Drifted=True
		node n1 calm
		node n2 drifted
	`); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: c.Client}
	if got := fmt.Sprint(r.concerned(context.Background(), &policyv1.PodDisruptionBudget{})); got != "[/drifted]" {
		t.Errorf("a budget wakes %s", got)
	}
	for node, want := range map[string]string{"n1": "[]", "n2": "[/drifted]", "gone": "[]"} {
		if got := fmt.Sprint(r.claimsOf(context.Background(), &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}})); got != want {
			t.Errorf("a pod on %s wakes %s, want %s", node, got, want)
		}
	}
}

func TestPodNews(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}
		change(p)
		return p
	}
	plain := pod(func(*corev1.Pod) {})
	for _, tt := range []struct {
		name     string
		old, now *corev1.Pod
		want     bool
	}{
		{"nothing", plain, plain, false},
		{"bound", pod(func(p *corev1.Pod) { p.Spec.NodeName = "" }), plain, true},
		{"labelled", plain, pod(func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }), true},
		{"protected", plain, pod(func(p *corev1.Pod) { p.Annotations = map[string]string{v1.DoNotDisruptAnnotationKey: "true"} }), true},
		{"annotated otherwise", plain, pod(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }), false},
		{"started", plain, pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), true},
		{"deleted", plain, pod(func(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }), true},
		{"unready", plain, pod(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		}), true},
		{"not bound", pod(func(p *corev1.Pod) { p.Spec.NodeName = "" }), pod(func(p *corev1.Pod) { p.Spec.NodeName, p.Labels = "", map[string]string{"a": "b"} }), false},
	} {
		if got := podNews().Update(event.UpdateEvent{ObjectOld: tt.old, ObjectNew: tt.now}); got != tt.want {
			t.Errorf("%s: looked at: %t, want %t", tt.name, got, tt.want)
		}
	}
	for _, first := range []bool{true, false} {
		if got := podNews().Create(event.CreateEvent{Object: plain, IsInInitialList: first}); got == first {
			t.Errorf("a pod that was there first = %t is news = %t", first, got)
		}
	}
}

func TestBudgetNews(t *testing.T) {
	one := intstr.FromInt32(1)
	budget := func(generation int64, expected, allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Generation: generation},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one},
			Status: policyv1.PodDisruptionBudgetStatus{
				ObservedGeneration: generation, ExpectedPods: expected, DesiredHealthy: 1, DisruptionsAllowed: allowed,
			},
		}
	}
	for _, tt := range []struct {
		name     string
		old, now *policyv1.PodDisruptionBudget
		want     bool
	}{
		{"allows fewer for a while", budget(1, 3, 2), budget(1, 3, 0), false},
		{"scaled to one", budget(1, 2, 1), budget(1, 1, 0), true},
		{"scaled from one", budget(1, 1, 0), budget(1, 2, 1), true},
		{"changed", budget(1, 2, 1), budget(2, 2, 1), true},
	} {
		if got := budgetNews().Update(event.UpdateEvent{ObjectOld: tt.old, ObjectNew: tt.now}); got != tt.want {
			t.Errorf("%s: looked at: %t, want %t", tt.name, got, tt.want)
		}
	}
}
