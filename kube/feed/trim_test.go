// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/feed"
	"karpenter/kube/pods"
	"karpenter/model"
)

func amounts(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

// servicePod is a pod of a workload as it comes from the API server.
func servicePod(name, node string) *corev1.Pod {
	always, grace, controller := corev1.ContainerRestartPolicyAlways, int64(7), true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, GenerateName: "web-", Labels: map[string]string{"app": "web"},
			Annotations: map[string]string{
				v1.DoNotDisruptAnnotationKey: "1h", corev1.PodDeletionCost: "7", "kubectl.kubernetes.io/last-applied-configuration": "{}",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: &controller}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, NodeSelector: map[string]string{"disk": "ssd"}, HostNetwork: true, TerminationGracePeriodSeconds: &grace,
			Overhead: amounts("10m"), ServiceAccountName: "web", Priority: new(int32(3)),
			InitContainers: []corev1.Container{{
				Name: "proxy", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: amounts("50m")},
				Ports: []corev1.ContainerPort{{HostPort: 15}},
			}},
			Containers: []corev1.Container{{
				Name: "main", Image: "web", Env: []corev1.EnvVar{{Name: "A", Value: "B"}},
				Resources: corev1.ResourceRequirements{Requests: amounts("1"), Limits: amounts("2")},
				Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: 80}, {HostPort: 443, Protocol: corev1.ProtocolTCP}},
			}},
			Volumes: []corev1.Volume{
				{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name}}},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1", StartTime: &metav1.Time{Time: time.Unix(100, 0)},
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(90, 0))},
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "main is not ready"},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "main", Image: "web", Resources: &corev1.ResourceRequirements{Requests: amounts("1"), Limits: amounts("2")}, AllocatedResources: amounts("1000m"),
			}},
		},
	}
}

// kept returns the object as a cache keeps it, of several that share one Trims.
func kept[T any](t *testing.T, all ...T) []T {
	t.Helper()
	trims := feed.Trims()
	out := make([]T, len(all))
	for i, o := range all {
		for kind, how := range trims {
			if fmt.Sprintf("%T", kind) != fmt.Sprintf("%T", o) {
				continue
			}
			trimmed, err := how.Transform(o)
			if err != nil {
				t.Fatal(err)
			}
			out[i] = trimmed.(T)
		}
	}
	return out
}

// whatIsRead is all that anyone asks of a pod in a cache.
func whatIsRead(c convert.Converter, p *corev1.Pod) map[string]any {
	options := helpers.PodResourcesOptions{UseStatusResources: true}
	return map[string]any{
		"pod": c.Pod(p), "requests": helpers.PodRequests(p, options), "limits": helpers.PodLimits(p, options),
		"protection": pods.ProtectionOf(p, time.Unix(200, 0)), "volumes": p.Spec.Volumes[len(p.Spec.Volumes)-1],
		"grace": *p.Spec.TerminationGracePeriodSeconds, "owner": p.OwnerReferences, "phase": p.Status.Phase,
	}
}

// A pod in a cache is read as the whole pod would be, also while its containers
// are resized.
func TestTrimmedPodsReadTheSame(t *testing.T) {
	c := convert.Converter{Axis: model.NewAxis(), Labels: v1.DefaultLabels()}
	for name, change := range map[string]func(*corev1.Pod){
		"as asked for": func(*corev1.Pod) {},
		"grows":        func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Resources.Requests = amounts("500m") },
		"shrinks":      func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Resources.Requests = amounts("3") },
		"limit":        func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Resources.Limits = amounts("9") },
		"allocated":    func(p *corev1.Pod) { p.Status.ContainerStatuses[0].AllocatedResources = amounts("4") },
		"infeasible": func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].Resources.Requests = amounts("500m")
			p.Status.ContainerStatuses[0].AllocatedResources = amounts("500m")
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
		},
		"infeasible in one of two": func(p *corev1.Pod) {
			other := corev1.Container{Name: "other", Resources: corev1.ResourceRequirements{Requests: amounts("3")}}
			p.Spec.Containers = append(p.Spec.Containers, other)
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "other", Resources: &corev1.ResourceRequirements{Requests: amounts("2")}})
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
		},
		"infeasible, as before": func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
		},
		"in progress": func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue})
		},
		"sidecar": func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", Resources: &corev1.ResourceRequirements{Requests: amounts("2")}}}
		},
		"waits": func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
			p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = corev1.ConditionFalse, corev1.PodReasonUnschedulable
		},
		"has ended": func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed },
	} {
		full := servicePod("a", "n")
		change(full)
		small := kept(t, full.DeepCopy())[0]
		if diff := cmp.Diff(whatIsRead(c, full), whatIsRead(c, small)); diff != "" {
			t.Errorf("%s: the pod in the cache is read as something else (-full +kept):\n%s", name, diff)
		}
		if small.Status.PodIP != "" || len(small.Spec.Volumes) != 1 || small.Spec.Containers[0].Env != nil || len(small.Annotations) != 2 {
			t.Errorf("%s: the pod is not trimmed: %+v", name, small)
		}
	}
}

// Pods of one workload share what they have in common, and nothing else.
func TestPodsShare(t *testing.T) {
	resized := servicePod("c", "n2")
	resized.Spec.Containers[0].Resources.Requests = amounts("5")
	all := kept(t, servicePod("a", "n1"), servicePod("b", "n2"), resized)
	if unsafe.SliceData(all[0].Spec.Containers) != unsafe.SliceData(all[1].Spec.Containers) {
		t.Error("two pods of a workload keep the same containers twice")
	}
	all[0].Labels["mark"] = "x"
	if all[1].Labels["mark"] != "x" {
		t.Error("two pods of a workload keep the same labels twice")
	}
	if all[0].Spec.NodeName != "n1" || all[1].Spec.NodeName != "n2" || all[1].Spec.Volumes[0].PersistentVolumeClaim.ClaimName != "data-b" {
		t.Errorf("pods share what is their own: %+v, %+v", all[0].Spec, all[1].Spec)
	}
	if got := all[2].Spec.Containers[0].Resources.Requests.Cpu().String(); got != "5" {
		t.Errorf("a pod that asks for 5 processors is kept as one that asks for %s", got)
	}
}

// Nodes and claims are kept whole but for what no one reads: patches are made
// from copies of them.
func TestSharedNodesAndClaimsStayWhole(t *testing.T) {
	node := func(name string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b", "name": name}, Annotations: map[string]string{"c": "d"}},
			Status: corev1.NodeStatus{
				Capacity: amounts("8"), Allocatable: amounts("7"),
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "ready"}},
				NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1", BootID: name},
			},
		}
	}
	claim := func(name string, types ...string) *v1.NodeClaim {
		return &v1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
			Spec: v1.NodeClaimSpec{
				Requirements: []v1.NodeSelectorRequirementWithMinValues{{Key: "type", Operator: "In", Values: types}, {Key: "z", Operator: "Exists"}},
				Resources:    v1.ResourceRequirements{Requests: amounts("3")},
			},
			Status: v1.NodeClaimStatus{Capacity: amounts("8"), Allocatable: amounts("7")},
		}
	}
	nodes := kept(t, node("a"), node("b"))
	if diff := cmp.Diff([]*corev1.Node{node("a"), node("b")}, nodes); diff != "" {
		t.Errorf("nodes are kept as something else:\n%s", diff)
	}
	claims := kept(t, claim("a", "x", "y"), claim("b", "x", "y"), claim("c", "x"))
	if diff := cmp.Diff([]*v1.NodeClaim{claim("a", "x", "y"), claim("b", "x", "y"), claim("c", "x")}, claims); diff != "" {
		t.Errorf("claims are kept as something else:\n%s", diff)
	}
	if unsafe.SliceData(claims[0].Spec.Requirements) != unsafe.SliceData(claims[1].Spec.Requirements) {
		t.Error("two claims keep the same requirements twice")
	}
}

// What is shared is forgotten when many others have come.
func TestSharedIsBounded(t *testing.T) {
	trims := feed.Trims()
	keep := func(name string) *corev1.Pod {
		p := servicePod(name, "n")
		p.Spec.NodeSelector = map[string]string{"only": name}
		for kind, how := range trims {
			if _, ok := kind.(*corev1.Pod); ok {
				if _, err := how.Transform(p); err != nil {
					t.Fatal(err)
				}
			}
		}
		return p
	}
	first := keep("first")
	for i := range 40_000 {
		keep(fmt.Sprint(i))
	}
	if again := keep("first"); unsafe.SliceData(again.Spec.Containers) == unsafe.SliceData(first.Spec.Containers) {
		t.Error("specs are kept although 40,000 others have come since")
	}
}
