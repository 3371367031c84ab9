// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestPodsWithTheSameContainers covers pods that share their containers in memory, and of which
// some ask for something else nevertheless.
func TestPodsWithTheSameContainers(t *testing.T) {
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	two := []corev1.Container{
		{Name: "a", Resources: corev1.ResourceRequirements{Requests: cpu("1"), Limits: cpu("2")}},
		{Name: "b", Resources: corev1.ResourceRequirements{Requests: cpu("4")}},
	}
	large := []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: cpu("16")}}}
	resized := []corev1.ContainerStatus{{Name: "a", Resources: &corev1.ResourceRequirements{Requests: cpu("8"), Limits: cpu("8")}}}
	known := asked{}
	for i, tc := range []struct {
		spec             corev1.PodSpec
		statuses         []corev1.ContainerStatus
		requests, limits string
	}{
		{corev1.PodSpec{Containers: two}, nil, "5", "2"},
		{corev1.PodSpec{Containers: two}, nil, "5", "2"},
		{corev1.PodSpec{Containers: two[:1]}, nil, "1", "2"},
		{corev1.PodSpec{Containers: two[1:]}, nil, "4", "0"},
		{corev1.PodSpec{Containers: two, InitContainers: large}, nil, "16", "2"},
		{corev1.PodSpec{Containers: two, Overhead: cpu("3")}, nil, "8", "5"},
		{corev1.PodSpec{Containers: two, Resources: &corev1.ResourceRequirements{Requests: cpu("7")}}, nil, "7", "2"},
		{corev1.PodSpec{Containers: two}, resized, "12", "8"},
		{corev1.PodSpec{}, nil, "0", "0"},
		{corev1.PodSpec{Containers: two}, nil, "5", "2"},
	} {
		a := known.by(&corev1.Pod{Spec: tc.spec, Status: corev1.PodStatus{ContainerStatuses: tc.statuses}})
		if a.requests.Cpu().Cmp(resource.MustParse(tc.requests)) != 0 || a.limits.Cpu().Cmp(resource.MustParse(tc.limits)) != 0 {
			t.Errorf("pod %d asks for %s and at most %s, want %s and %s", i, a.requests.Cpu(), a.limits.Cpu(), tc.requests, tc.limits)
		}
	}
	if len(known) != 4 {
		t.Errorf("%d sorts of containers, want 4", len(known))
	}
}
