// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// action is what a kubelet does to a pod.
type action int

const (
	nothing  action = iota // until something changes
	start                  // report Running
	refresh                // report a changed spec as taken up
	complete               // report Succeeded
	fail                   // report Failed: killed before it completed
	remove                 // confirm the deletion
)

// step is the next action on a pod and when it is due.
type step struct {
	action action
	due    time.Time
}

// nextStep decides what happens to a pod next, on a live node.
func nextStep(pod *corev1.Pod, sight podSight, nodeReady bool, options Options) step {
	phase := pod.Status.Phase
	terminal := phase == corev1.PodSucceeded || phase == corev1.PodFailed
	switch {
	case pod.DeletionTimestamp != nil:
		return nextStepToEnd(pod, sight, terminal, options)
	case terminal:
		return step{}
	case phase != corev1.PodRunning:
		if !nodeReady {
			return step{}
		}
		return step{start, sight.bound.Add(options.PodStartDelay)}
	case pod.Status.ObservedGeneration < pod.Generation:
		return step{refresh, time.Time{}}
	case completes(pod):
		return step{complete, sight.running.Add(duration(pod, options))}
	}
	return step{}
}

// nextStepToEnd is nextStep of a pod being deleted. Someone may wait for the outcome of a pod meant to complete, or of one
// with finalizers (a Job, say): such a pod is Failed first, as by a real kubelet.
func nextStepToEnd(pod *corev1.Pod, sight podSight, terminal bool, options Options) step {
	due := sight.deleting
	if pod.Status.Phase == corev1.PodRunning {
		due = due.Add(min(gracePeriod(pod), options.PodStopDelay))
	}
	if !terminal && (completes(pod) || len(pod.Finalizers) > 0) {
		return step{fail, due}
	}
	if gracePeriod(pod) == 0 {
		return step{} // confirmed; finalizers are someone else's
	}
	return step{remove, due}
}

// completes reports whether the pod is meant to end by itself.
func completes(pod *corev1.Pod) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

// duration returns how long a pod meant to complete runs. An annotation that is no duration is ignored.
func duration(pod *corev1.Pod, options Options) time.Duration {
	if d, err := time.ParseDuration(pod.Annotations[DurationAnnotation]); err == nil && d >= 0 {
		return d
	}
	return options.JobDuration
}

// syncPod takes the pod's next step if it is due, else comes back when it is.
func (f *fleet) syncPod(ctx context.Context, key string) (time.Duration, error) {
	object, exists, err := f.pods.GetByKey(key)
	if err != nil || !exists {
		return 0, err
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return 0, fmt.Errorf("pod %s: unexpected %T in cache", key, object)
	}
	node, ok := f.liveNode(pod.Spec.NodeName)
	if !ok {
		return 0, nil
	}
	sight, ok := f.podSights.get(pod.UID)
	if !ok {
		return 0, nil // replaced by a namesake whose event is on its way
	}
	next := nextStep(pod, sight, ready(node), f.options)
	if next.action == nothing {
		return 0, nil
	}
	if early := next.due.Sub(f.now()); early > 0 {
		return early, nil
	}
	if err := f.take(ctx, next.action, pod, node); err != nil {
		return 0, fmt.Errorf("pod %s: %w", key, err)
	}
	return 0, nil
}

// take performs one action on the pod; the watch then tells of its effect.
func (f *fleet) take(ctx context.Context, what action, pod *corev1.Pod, node *corev1.Node) error {
	pods := f.client.CoreV1().Pods(pod.Namespace)
	if what == remove {
		options := metav1.NewDeleteOptions(0)
		options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
		return pods.Delete(ctx, pod.Name, *options)
	}
	pod = pod.DeepCopy()
	now := metav1.NewTime(f.now())
	switch what {
	case start:
		f.setAddresses(pod, node)
		setRunning(pod, now)
	case refresh:
		setRunning(pod, now)
	case complete:
		setEnded(pod, corev1.PodSucceeded, now)
	case fail:
		setEnded(pod, corev1.PodFailed, now)
	}
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (f *fleet) setAddresses(pod *corev1.Pod, node *corev1.Node) {
	host := internalIP(node)
	if host == "" {
		host = f.nodeIPs.assign(node.UID)
	}
	ip := host
	if !pod.Spec.HostNetwork {
		ip = f.podIPs.assign(pod.UID)
	}
	pod.Status.HostIP, pod.Status.HostIPs = host, []corev1.HostIP{{IP: host}}
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
}
