// SPDX-License-Identifier: Apache-2.0

package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/cloud/ec2"
)

// Terms are how workloads differ in the instances that can be launched.
type Terms struct {
	Spot     bool // beside on-demand
	Weighted bool // the ARM pool comes first, the tainted one last
	Limited  bool // pools have limits far above the use
}

// The taint and the label of the batch pool.
const (
	BatchTaint = "dedicated"
	BatchLabel = "workload"
	Batch      = "batch"
)

// SetPools gives the workload its three pools and two DaemonSets: general takes
// current c, m and r types of both architectures, arm any ARM type, and batch,
// which is tainted, any current amd64 type without devices.
func (w *Workload) SetPools(t Terms) {
	general := pool("general", t, in(ec2.LabelDomain+"/instance-category", "c", "m", "r"), gt(ec2.LabelDomain+"/instance-generation", "4"))
	arm := pool("arm", t, in(corev1.LabelArchStable, "arm64"))
	tainted := pool("batch", t, in(corev1.LabelArchStable, "amd64"), gt(ec2.LabelDomain+"/instance-generation", "3"),
		in(ec2.LabelDomain+"/instance-category", "c", "m", "r", "i", "d", "x"))
	tainted.Spec.Template.Spec.Taints = []v1.Taint{{Key: BatchTaint, Value: Batch, Effect: corev1.TaintEffectNoSchedule}}
	tainted.Spec.Template.Labels = map[string]string{BatchLabel: Batch}
	if t.Weighted {
		general.Spec.Weight, arm.Spec.Weight, tainted.Spec.Weight = new(int32(10)), new(int32(50)), new(int32(1))
	}
	w.Pools = []*v1.NodePool{general, arm, tainted}
	w.Daemons = []*appsv1.DaemonSet{daemon("node-agent", "100m", "200Mi"), daemon("log-shipper", "50m", "128Mi")}
}

func pool(name string, t Terms, more ...v1.NodeSelectorRequirementWithMinValues) *v1.NodePool {
	capacity := []string{v1.CapacityTypeOnDemand}
	if t.Spot {
		capacity = append(capacity, v1.CapacityTypeSpot)
	}
	p := &v1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("pool-" + name), Generation: 1},
	}
	p.Spec.Template.Spec.NodeClassRef = nodeClass()
	p.Spec.Template.Spec.Requirements = append([]v1.NodeSelectorRequirementWithMinValues{
		in(corev1.LabelOSStable, "linux"), in(v1.CapacityTypeLabelKey, capacity...),
	}, more...)
	if t.Limited {
		p.Spec.Limits = v1.Limits{corev1.ResourceCPU: resource.MustParse("100000"), corev1.ResourceMemory: resource.MustParse("1000Ti")}
	}
	p.Status.Conditions = []metav1.Condition{
		{Type: v1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: 1},
		{Type: "ValidationSucceeded", Status: metav1.ConditionTrue, Reason: "ValidationSucceeded", ObservedGeneration: 1},
		{Type: "NodeClassReady", Status: metav1.ConditionTrue, Reason: "NodeClassReady", ObservedGeneration: 1},
	}
	return p
}

func nodeClass() *v1.NodeClassReference {
	return &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
}

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func gt(key, value string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpGt, Values: []string{value}}
}

func daemon(name, cpu, memory string) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID("daemon-" + name)},
	}
	d.Spec.Template.Spec = corev1.PodSpec{
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers:  []corev1.Container{{Name: name, Image: name, Resources: requests(cpu, memory)}},
	}
	return d
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}
