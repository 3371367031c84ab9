// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func instant(second int) time.Time { return time.Unix(1_800_000_000+int64(second), 0) }

// A pod bound at 0, running from 10, its deletion seen at 100.
func sight() podSight {
	return podSight{bound: instant(0), running: instant(10), deleting: instant(100)}
}

func TestNextStep(t *testing.T) {
	options := Options{PodStartDelay: 2 * time.Second, PodStopDelay: 5 * time.Second, JobDuration: 60 * time.Second}
	type change func(*corev1.Pod)
	phase := func(p corev1.PodPhase) change { return func(pod *corev1.Pod) { pod.Status.Phase = p } }
	job := func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyNever }
	finalizer := func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/wait"} }
	deleted := func(grace int64) change {
		return func(pod *corev1.Pod) {
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: instant(100 + int(grace))}, &grace
		}
	}
	lasting := func(d string) change {
		return func(pod *corev1.Pod) { pod.Annotations = map[string]string{DurationAnnotation: d} }
	}
	for _, c := range []struct {
		name    string
		changes []change
		unready bool
		want    step
	}{
		{name: "starts after its delay", want: step{start, instant(2)}},
		{name: "waits for its node", unready: true},
		{name: "runs on", changes: []change{phase(corev1.PodRunning)}},
		{name: "runs on though its node is not ready", changes: []change{phase(corev1.PodRunning)}, unready: true},
		{name: "takes up a new spec", changes: []change{phase(corev1.PodRunning), func(p *corev1.Pod) { p.Generation = 2 }}, want: step{action: refresh}},
		{name: "completes", changes: []change{phase(corev1.PodRunning), job}, want: step{complete, instant(70)}},
		{name: "completes as annotated", changes: []change{phase(corev1.PodRunning), job, lasting("3s")}, want: step{complete, instant(13)}},
		{name: "ignores a broken duration", changes: []change{phase(corev1.PodRunning), job, lasting("soon")}, want: step{complete, instant(70)}},
		{name: "rests completed", changes: []change{phase(corev1.PodSucceeded), job}},
		{name: "stops after the stop delay", changes: []change{phase(corev1.PodRunning), deleted(30)}, want: step{remove, instant(105)}},
		{name: "stops after a shorter grace", changes: []change{phase(corev1.PodRunning), deleted(3)}, want: step{remove, instant(103)}},
		{name: "stops at once if not started", changes: []change{phase(corev1.PodPending), deleted(30)}, want: step{remove, instant(100)}},
		{name: "goes at once if completed", changes: []change{phase(corev1.PodSucceeded), job, deleted(30)}, want: step{remove, instant(100)}},
		{name: "a killed job pod fails first", changes: []change{phase(corev1.PodRunning), job, deleted(30)}, want: step{fail, instant(105)}},
		{name: "a pod with finalizers fails first", changes: []change{phase(corev1.PodRunning), finalizer, deleted(30)}, want: step{fail, instant(105)}},
		{name: "confirmed, it waits for its finalizers", changes: []change{phase(corev1.PodFailed), finalizer, deleted(0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}}
			for _, change := range c.changes {
				change(pod)
			}
			if got := nextStep(pod, sight(), !c.unready, options); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestRunningAndEndedStatus(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 3},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}},
			Containers:     []corev1.Container{{Name: "main", Image: "img"}},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}},
	}
	setRunning(pod, metav1.NewTime(instant(0)))
	if s := pod.Status; s.Phase != corev1.PodRunning || s.ObservedGeneration != 3 || s.InitContainerStatuses[0].State.Terminated == nil ||
		s.InitContainerStatuses[1].State.Running == nil || !s.ContainerStatuses[0].Ready || len(s.Conditions) != 5 {
		t.Errorf("running status %+v", s)
	}
	setEnded(pod, corev1.PodFailed, metav1.NewTime(instant(9)))
	end := pod.Status.ContainerStatuses[0].State.Terminated
	if end == nil || end.ExitCode != exitKilled || !end.StartedAt.Time.Equal(instant(0)) || !end.FinishedAt.Time.Equal(instant(9)) {
		t.Errorf("ended container %+v", end)
	}
	if init := pod.Status.InitContainerStatuses[0].State.Terminated; init.ExitCode != exitCompleted {
		t.Errorf("a completed init container was killed: %+v", init)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && (c.Status != corev1.ConditionFalse || !c.LastTransitionTime.Time.Equal(instant(9))) {
			t.Errorf("ready condition %+v", c)
		}
	}
}

func TestSightOfAPodThatRanBefore(t *testing.T) {
	began, grace := metav1.NewTime(instant(5)), int64(30)
	pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &began}}
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: instant(90)}, &grace
	var s podSight
	s.update(pod, true, instant(1000))
	if !s.running.Equal(instant(5)) || !s.deleting.Equal(instant(60)) {
		t.Errorf("running %v, deleting %v; want the pod's own times", s.running, s.deleting)
	}
}
