// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"karpenter/sandbox/component"
	"karpenter/sandbox/controlplane"
	"karpenter/sandbox/kubelet"
)

// TestClusterLife follows one cluster through everything it promises: workloads run, a killed component comes back
// alone, a stop leaves no process, a second start finds the same objects under the same kubeconfig.
func TestClusterLife(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	cp, reports := startCluster(t, dir)
	host, client := connect(t, cp)

	createNode(t, client, "machine-1")
	createDeployment(t, client, "web", 3)
	createJob(t, client, "report")
	awaitPods(t, client, "app=web", 3, isReady)
	awaitPods(t, client, "app=report", 1, hasSucceeded)

	if err := syscall.Kill(cp.PID(component.Scheduler), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	createDeployment(t, client, "late", 1) // runs only if a scheduler does
	awaitPods(t, client, "app=late", 1, isReady)
	if !strings.Contains(reports.String(), component.Scheduler+" died") {
		t.Errorf("the killed scheduler went unreported; reports: %q", reports)
	}

	if err := client.AppsV1().Deployments("default").Delete(ctx, "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPods(t, client, "app=late", 0, isReady)

	if _, err := controlplane.Start(ctx, controlplane.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another sandbox") {
		t.Errorf("second start on a folder in use: got %v, want a clear refusal", err)
	}
	stopCluster(t, cp)

	cp, _ = startCluster(t, dir)
	hostAgain, client := connect(t, cp)
	if hostAgain != host {
		t.Errorf("the API server moved from %s to %s", host, hostAgain)
	}
	awaitPods(t, client, "app=web", 3, isReady)
	if _, err := client.BatchV1().Jobs("default").Get(ctx, "report", metav1.GetOptions{}); err != nil {
		t.Errorf("the job did not outlive the restart: %v", err)
	}
	stopCluster(t, cp)
}

// TestNodeAnnotations: sandbox/ready and sandbox/heartbeat take nodes out and bring them back.
func TestNodeAnnotations(t *testing.T) {
	cp, _ := startCluster(t, t.TempDir())
	defer stopCluster(t, cp)
	_, client := connect(t, cp)
	createNode(t, client, "machine-1")
	awaitNode(t, client, "machine-1", corev1.ConditionTrue)
	annotate(t, client, "machine-1", kubelet.ReadyAnnotation, `"false"`)
	awaitNode(t, client, "machine-1", corev1.ConditionFalse)
	annotate(t, client, "machine-1", kubelet.ReadyAnnotation, "null")
	awaitNode(t, client, "machine-1", corev1.ConditionTrue)
}

// TestDeadInstance: without heartbeats, the real node lifecycle controller marks a node
// as unreachable.
func TestDeadInstance(t *testing.T) {
	cp, _ := startCluster(t, t.TempDir(), component.ControllerManager, "--node-monitor-grace-period=12s")
	defer stopCluster(t, cp)
	_, client := connect(t, cp)
	createNode(t, client, "machine-1")
	awaitNode(t, client, "machine-1", corev1.ConditionTrue)
	annotate(t, client, "machine-1", kubelet.HeartbeatAnnotation, `"false"`)
	awaitNode(t, client, "machine-1", corev1.ConditionUnknown)
	annotate(t, client, "machine-1", kubelet.HeartbeatAnnotation, "null")
	awaitNode(t, client, "machine-1", corev1.ConditionTrue)
}

// lines collects reports of concurrent writers.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startCluster starts a control plane with fast simulated kubelets; extra is a component and an argument for it.
func startCluster(t *testing.T, dir string, extra ...string) (*controlplane.ControlPlane, *lines) {
	t.Helper()
	delays := kubelet.Options{
		NodeReadyDelay: 50 * time.Millisecond,
		PodStartDelay:  50 * time.Millisecond,
		PodStopDelay:   50 * time.Millisecond,
		JobDuration:    100 * time.Millisecond,
		RenewInterval:  10 * time.Second,
	}
	reports := &lines{}
	options := controlplane.Options{Dir: dir, Kubelets: &delays, Report: reports}
	if len(extra) == 2 {
		options.ExtraArgs = map[string][]string{extra[0]: {extra[1]}}
	}
	cp, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatalf("start: %v\n%s", err, reports)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	return cp, reports
}

// stopCluster stops the control plane and checks that none of its processes is left.
func stopCluster(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	pids := map[string]int{}
	for _, name := range []string{component.Etcd, component.APIServer, component.Scheduler, component.ControllerManager, controlplane.Kubelets} {
		if pids[name] = cp.PID(name); pids[name] == 0 {
			t.Errorf("%s does not run", name)
		}
	}
	if err := cp.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	for name, pid := range pids {
		if pid != 0 && syscall.Kill(pid, 0) == nil {
			t.Errorf("%s (process %d) outlived the stop", name, pid)
		}
	}
}

// connect returns the API server's address and a client for it.
func connect(t *testing.T, cp *controlplane.ControlPlane) (string, kubernetes.Interface) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cp.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	return config.Host, client
}

func createNode(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	size := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("50")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{kubelet.FakeNodeAnnotation: "fake"}},
		Status:     corev1.NodeStatus{Capacity: size, Allocatable: size},
	}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func template(app string, policy corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			RestartPolicy: policy,
			Containers:    []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
}

func createDeployment(t *testing.T, client kubernetes.Interface, app string, replicas int32) {
	t.Helper()
	_, err := client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
			Template: template(app, corev1.RestartPolicyAlways),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func createJob(t *testing.T, client kubernetes.Interface, app string) {
	t.Helper()
	_, err := client.BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec:       batchv1.JobSpec{Template: template(app, corev1.RestartPolicyNever)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func annotate(t *testing.T, client kubernetes.Interface, node, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value)
	_, err := client.CoreV1().Nodes().Patch(t.Context(), node, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.Status.PodIP != ""
		}
	}
	return false
}

func hasSucceeded(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }

// awaitPods returns when exactly count pods match the selector and all are as wanted.
func awaitPods(t *testing.T, client kubernetes.Interface, selector string, count int, wanted func(*corev1.Pod) bool) {
	t.Helper()
	await(t, cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "pods", "default",
		func(o *metav1.ListOptions) { o.LabelSelector = selector }), &corev1.Pod{}, func(all []any) bool {
		for _, pod := range all {
			if !wanted(pod.(*corev1.Pod)) {
				return false
			}
		}
		return len(all) == count
	})
}

// awaitNode returns when the node's Ready condition has the status.
func awaitNode(t *testing.T, client kubernetes.Interface, name string, status corev1.ConditionStatus) {
	t.Helper()
	await(t, cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "nodes", "",
		func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + name }), &corev1.Node{}, func(all []any) bool {
		for _, node := range all {
			for _, c := range node.(*corev1.Node).Status.Conditions {
				if c.Type == corev1.NodeReady {
					return c.Status == status
				}
			}
		}
		return false
	})
}

// await watches until all objects together satisfy done.
func await(t *testing.T, objects cache.ListerWatcher, kind runtime.Object, done func([]any) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var store cache.Store
	_, err := watchtools.UntilWithSync(ctx, objects, kind,
		func(s cache.Store) (bool, error) { store = s; return done(s.List()), nil },
		func(watch.Event) (bool, error) { return done(store.List()), nil })
	if err != nil {
		t.Fatalf("wait: %v; at last: %v", err, store.List())
	}
}
