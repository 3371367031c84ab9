// SPDX-License-Identifier: Apache-2.0

package made

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

const (
	deployments = 20
	full        = 0.97             // of an instance's processors that its pods ask for
	perCore     = 1200 * (1 << 20) // bytes that pods ask for, for each core: no kind of instance has less
	hashKey     = "pod-template-hash"
)

// zones are those of the simulated cloud's region.
var zones = [...]string{"us-east-1a", "us-east-1b", "us-east-1c"}

// writer creates the first objects of a cluster through the API server.
type writer struct {
	*Cluster
	of      *pattern
	client  kubernetes.Interface
	untyped dynamic.Interface
}

func name(i int) string       { return fmt.Sprintf("service-%02d", i) }
func setName(d string) string { return d + "-made" }

// probe is what a pod asks for that has an instance for itself.
func (c *Cluster) probe() corev1.ResourceList {
	return requests(float64(c.Cores)*0.9*1000, int64(c.Cores)*perCore)
}

func requests(milli float64, bytes int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(milli), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(bytes, resource.BinarySI),
	}
}

// size is what pods of a deployment ask for. Those that share a node fill it; the largest is seven times the smallest.
func (w *writer) size(i int) corev1.ResourceList {
	perNode := w.Pods / w.Nodes
	weight := func(i int) float64 { return float64(1 + i%7) }
	total := 0.0
	for j := i / perNode * perNode; j < i/perNode*perNode+perNode; j++ {
		total += weight(j)
	}
	share := weight(i) / total
	return requests(share*full*float64(w.of.node.Status.Allocatable.Cpu().MilliValue()), int64(share*float64(w.Cores)*perCore))
}

// service is a deployment as they are in the wild: with a sidecar, probes, variables and mounted files.
func service(name string, requests corev1.ResourceList, replicas int) *appsv1.Deployment {
	labels := map[string]string{
		"app.kubernetes.io/name": name, "app.kubernetes.io/instance": name + "-production", "app.kubernetes.io/part-of": "shop",
		"app.kubernetes.io/version": "v1.27.4", "app.kubernetes.io/managed-by": "Helm", "team": "team-" + name,
	}
	one := int64(1)
	main := corev1.Container{
		Name: "main", Image: "registry.example.com/shop/" + name + ":v1.27.4", Command: []string{"/bin/service", "--config=/etc/service/config.yaml"},
		Resources: corev1.ResourceRequirements{Requests: requests, Limits: corev1.ResourceList{corev1.ResourceMemory: requests[corev1.ResourceMemory]}},
		Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9090}},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/healthz", Port: intstr.FromString("http"),
		}}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/readyz", Port: intstr.FromString("http"),
		}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/service"}, {Name: "scratch", MountPath: "/tmp"}},
	}
	for i := range 12 {
		main.Env = append(main.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: strings.Repeat("value", 6)})
	}
	sidecar := corev1.Container{
		Name: "proxy", Image: "registry.example.com/mesh/proxy:1.30", Args: []string{"proxy", "--log-level=info"},
		Ports: []corev1.ContainerPort{{Name: "proxy", ContainerPort: 15001}},
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
		}}},
	}
	files := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
					"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": strings.Repeat("0123456789abcdef", 4),
				}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{main, sidecar}, TerminationGracePeriodSeconds: &one,
					Volumes: []corev1.Volume{
						{Name: "config", VolumeSource: files(name)},
						{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
					},
				},
			},
		},
	}
}

// replicaSet is what the deployment's controller would have made. It finds it by its template.
func replicaSet(d *appsv1.Deployment) *appsv1.ReplicaSet {
	hash := map[string]string{hashKey: "made"}
	template := *d.Spec.Template.DeepCopy()
	maps.Copy(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	maps.Copy(selector.MatchLabels, hash)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: setName(d.Name), Labels: template.Labels, Annotations: map[string]string{"deployment.kubernetes.io/revision": "1"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: selector, Template: template},
	}
}

func claimName(i int) string { return fmt.Sprintf("default-%05d", i) }
func nodeName(i int) string  { return "kwok-" + claimName(i) }

func (c *Cluster) podName(i int) string {
	return fmt.Sprintf("%s-%06d", setName(name(i%deployments)), i)
}

// nodeOfPod returns the name of the node that the pod runs on.
func (c *Cluster) nodeOfPod(i int) string { return nodeName(i / (c.Pods / c.Nodes)) }

// alike makes the claim that of the i-th node.
func alike(claim *unstructured.Unstructured, i int) {
	claim.SetName(claimName(i))
	labels := claim.GetLabels()
	labels[corev1.LabelTopologyZone] = zones[i%len(zones)]
	claim.SetLabels(labels)
	_ = unstructured.SetNestedField(claim.Object, nodeName(i), "status", "nodeName")
	_ = unstructured.SetNestedField(claim.Object, "kwok://"+nodeName(i), "status", "providerID")
}

// placed makes the node the i-th, of the claim with the UID.
func placed(n *corev1.Node, i int, claim types.UID) {
	n.Name = nodeName(i)
	zone := zones[i%len(zones)]
	n.Labels[corev1.LabelHostname] = n.Name
	n.Labels[corev1.LabelTopologyZone], n.Labels[corev1.LabelFailureDomainBetaZone] = zone, zone
	n.OwnerReferences[0].Name, n.OwnerReferences[0].UID = claimName(i), claim
	n.Spec.ProviderID = "kwok://" + n.Name
	n.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.16.%d.%d", i/250, 1+i%250)}, {Type: corev1.NodeHostName, Address: n.Name},
	}
}

// runs makes the status of the pod that of the i-th pod, which runs.
func runs(pod *corev1.Pod, i int) {
	ip := fmt.Sprintf("10.%d.%d.%d", 128+i/62_500, i/250%250, 1+i%250)
	pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	pod.Status.ObservedGeneration = pod.Generation
	for j := range pod.Status.ContainerStatuses {
		s, k := &pod.Status.ContainerStatuses[j], &pod.Spec.Containers[j]
		s.Name, s.Image, s.ContainerID = k.Name, k.Image, fmt.Sprintf("sandbox://%s-%d", pod.UID, j)
		s.Resources, s.AllocatedResources = k.Resources.DeepCopy(), k.Resources.Requests.DeepCopy()
	}
}

// node creates the first claim and its node.
func (w *writer) node(ctx context.Context) error {
	claim := w.of.claim.DeepCopy()
	forget(claim)
	alike(claim, 0)
	status := claim.Object["status"]
	created, err := w.untyped.Resource(Claims).Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Object["status"] = status
	if _, err := w.untyped.Resource(Claims).UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return err
	}
	n := w.of.node.DeepCopy()
	n.ObjectMeta = metav1.ObjectMeta{
		Labels: n.Labels, Annotations: n.Annotations, Finalizers: n.Finalizers, OwnerReferences: n.OwnerReferences,
	}
	placed(n, 0, created.GetUID())
	_, err = w.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
	return err
}

func forget(o *unstructured.Unstructured) {
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	o.SetCreationTimestamp(metav1.Time{})
	o.SetGeneration(0)
	o.SetDeletionTimestamp(nil)
}

// pod creates the i-th pod, which runs, and returns its name.
func (w *writer) pod(ctx context.Context, set *appsv1.ReplicaSet, i int) (string, error) {
	template := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = w.podName(i)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	pod.Spec.NodeName = w.nodeOfPod(i)
	pods := w.client.CoreV1().Pods(namespace)
	pod, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	pod.Status = *w.of.pod.Status.DeepCopy()
	runs(pod, i)
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return pod.Name, err
}

// parallel does something for 0 to n-1, and returns the first error.
func parallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
