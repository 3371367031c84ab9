// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	exitCompleted = 0
	exitKilled    = 143 // 128 + SIGTERM
)

// setRunning makes the status that of a pod whose init containers completed and whose others, sidecars included, run.
func setRunning(pod *corev1.Pod, now metav1.Time) {
	status := &pod.Status
	if status.StartTime == nil {
		status.StartTime = &now
	}
	started := *status.StartTime
	status.Phase = corev1.PodRunning
	status.ObservedGeneration = pod.Generation
	status.InitContainerStatuses = nil
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		s := runningStatus(pod, c, started)
		if !sidecar(c) {
			s.Started = new(bool)
			s.State = terminated(started, started, exitCompleted, "Completed")
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, s)
	}
	status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, runningStatus(pod, &pod.Spec.Containers[i], started))
	}
	setCondition(pod, corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", now)
	setCondition(pod, corev1.PodInitialized, corev1.ConditionTrue, "", now)
	setCondition(pod, corev1.ContainersReady, corev1.ConditionTrue, "", now)
	setCondition(pod, corev1.PodReady, corev1.ConditionTrue, "", now)
}

// setEnded makes the status that of a pod whose containers have all terminated, by themselves if the phase is
// Succeeded, else killed.
func setEnded(pod *corev1.Pod, phase corev1.PodPhase, now metav1.Time) {
	exit, reason, conditionReason := int32(exitCompleted), "Completed", "PodCompleted"
	if phase == corev1.PodFailed {
		exit, reason, conditionReason = exitKilled, "Error", "PodFailed"
	}
	status := &pod.Status
	status.Phase = phase
	status.ObservedGeneration = pod.Generation
	for _, statuses := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			if s.State.Terminated != nil {
				continue
			}
			started := now
			if s.State.Running != nil {
				started = s.State.Running.StartedAt
			}
			s.Ready, s.Started = false, new(bool)
			s.State = terminated(started, now, exit, reason)
		}
	}
	setCondition(pod, corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", now)
	setCondition(pod, corev1.ContainersReady, corev1.ConditionFalse, conditionReason, now)
	setCondition(pod, corev1.PodReady, corev1.ConditionFalse, conditionReason, now)
}

// sidecar reports whether an init container keeps running beside the main ones.
func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func runningStatus(pod *corev1.Pod, c *corev1.Container, started metav1.Time) corev1.ContainerStatus {
	yes := true
	return corev1.ContainerStatus{
		Name:               c.Name,
		Image:              c.Image,
		ImageID:            "sandbox://" + c.Image,
		ContainerID:        "sandbox://" + string(pod.UID) + "/" + c.Name,
		Ready:              true,
		Started:            &yes,
		State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		AllocatedResources: c.Resources.Requests,
		Resources:          &corev1.ResourceRequirements{Requests: c.Resources.Requests, Limits: c.Resources.Limits},
	}
}

func terminated(started, finished metav1.Time, exit int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: exit, Reason: reason, StartedAt: started, FinishedAt: finished,
	}}
}

// setCondition sets one condition of the pod, keeping its transition time if its status stays.
func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason string, now metav1.Time) {
	want := corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: now, ObservedGeneration: pod.Generation}
	for i := range pod.Status.Conditions {
		old := &pod.Status.Conditions[i]
		if old.Type != kind {
			continue
		}
		if old.Status == status {
			want.LastTransitionTime = old.LastTransitionTime
		}
		*old = want
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, want)
}
