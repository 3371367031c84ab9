// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	v1 "karpenter/api/v1"
	"karpenter/cloud/kwok"
)

// machines adds nodes of the general and the arm pool that run the DaemonSets
// and a few pods each; with room left those take 50 % to 100 % of what the
// daemons leave, otherwise all of its processors.
func (w *Workload) machines(rng *rand.Rand, count int, room bool) {
	kinds := []struct{ pool, instance string }{
		{"general", "m6i.2xlarge"}, {"general", "c6i.4xlarge"}, {"general", "r6g.2xlarge"}, {"arm", "m7g.4xlarge"}, {"general", "c7g.8xlarge"},
	}
	for i := range count {
		k := kinds[rng.IntN(len(kinds))]
		e := w.entry(k.instance)
		o := e.Offerings[rng.IntN(len(e.Offerings))]
		m := NewMachine(fmt.Sprintf("%s-%05d", k.pool, i), w.pool(k.pool), e, o)
		used := 1.0
		if room {
			used = 0.5 + 0.5*rng.Float64()
		}
		w.fill(&m, used)
		w.Machines = append(w.Machines, m)
	}
}

// NewMachine returns an initialized machine of the pool without pods.
func NewMachine(name string, pool *v1.NodePool, e *kwok.Entry, o kwok.OfferingEntry) Machine {
	m := Machine{Claim: claim(name, pool.Name, e, o)}
	maps.Copy(m.Claim.Labels, pool.Spec.Template.Labels)
	m.Claim.Spec.Taints = pool.Spec.Template.Spec.Taints
	m.Node = node(m.Claim)
	m.Node.Spec.Taints = v1.CoreTaints(m.Claim.Spec.Taints)
	return m
}

func (w *Workload) pool(name string) *v1.NodePool {
	for _, p := range w.Pools {
		if p.Name == name {
			return p
		}
	}
	panic("the workload has no NodePool " + name)
}

func (w *Workload) entry(name string) *kwok.Entry {
	for i := range w.Entries {
		if w.Entries[i].Name == name {
			return &w.Entries[i]
		}
	}
	panic("the price list has no " + name)
}

// Allocatable returns what pods can use of a node of the type.
func Allocatable(e *kwok.Entry) corev1.ResourceList {
	out := e.Resources.DeepCopy()
	for name, q := range out {
		q.Sub(e.Overhead[name])
		out[name] = q
	}
	return out
}

func claim(name, pool string, e *kwok.Entry, o kwok.OfferingEntry) *v1.NodeClaim {
	labels := map[string]string{
		corev1.LabelInstanceTypeStable: e.Name, corev1.LabelArchStable: e.Architecture, corev1.LabelOSStable: "linux",
		v1.NodePoolLabelKey: pool, v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true",
		v1.NodeClassLabelKey(nodeClass().GroupKind()): nodeClass().Name,
	}
	for _, r := range append(e.Requirements, o.Requirements...) {
		if len(r.Values) == 1 {
			labels[r.Key] = r.Values[0]
		}
	}
	c := &v1.NodeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: metav1.NewTime(Start())},
	}
	c.Spec.NodeClassRef = nodeClass()
	c.Status.ProviderID, c.Status.NodeName = "kwok://"+name, name
	c.Status.Capacity, c.Status.Allocatable = e.Resources, Allocatable(e)
	for _, kind := range []string{"Launched", "Registered", "Initialized", "Ready"} {
		c.Status.Conditions = append(c.Status.Conditions, v1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind})
	}
	return c
}

func node(c *v1.NodeClaim) *corev1.Node {
	n := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, UID: c.UID, Labels: map[string]string{corev1.LabelHostname: c.Name}, CreationTimestamp: c.CreationTimestamp},
		Spec:       corev1.NodeSpec{ProviderID: c.Status.ProviderID},
		Status: corev1.NodeStatus{
			Capacity: c.Status.Capacity, Allocatable: c.Status.Allocatable,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
		},
	}
	for k, v := range c.Labels {
		n.Labels[k] = v
	}
	return n
}

// fill binds a pod of each DaemonSet and four others to the machine, so that
// they use a part of its processors and memory.
func (w *Workload) fill(m *Machine, used float64) {
	w.BindDaemons(m)
	cpu, memory := m.Free()
	const others = 4
	for i := range others {
		d := Deployment{Name: fmt.Sprintf("old-%s-%d", m.Node.Name, i), CPU: int64(used*float64(cpu)) / others, Memory: int64(used*float64(memory)) / others}
		m.Bind(d.Pod(0))
	}
}

// BindDaemons binds a pod of each DaemonSet that runs there to the machine.
func (w *Workload) BindDaemons(m *Machine) {
	for _, d := range w.Daemons {
		c := d.Spec.Template.Spec.Containers[0].Resources.Requests
		p := (&Deployment{Name: d.Name + "-" + m.Node.Name, CPU: c.Cpu().MilliValue(), Memory: c.Memory().Value() >> 20}).Pod(0)
		p.Namespace, p.Spec.Tolerations, p.Spec.NodeSelector = d.Namespace, d.Spec.Template.Spec.Tolerations, d.Spec.Template.Spec.NodeSelector
		if !Accepts(m.Node, p) {
			continue
		}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, UID: d.UID, Controller: new(true)}}
		m.Bind(p)
	}
}

// Bind has the pod run on the machine.
func (m *Machine) Bind(p *corev1.Pod) {
	p.Spec.NodeName = m.Node.Name
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning}
	m.Bound = append(m.Bound, p)
}

// Pods counts the pods bound to the machine that are of no DaemonSet.
func (m *Machine) Pods() int {
	count := 0
	for _, p := range m.Bound {
		if owner := metav1.GetControllerOf(p); owner == nil || owner.Kind != "DaemonSet" {
			count++
		}
	}
	return count
}

// Consolidatable has the machine wait for consolidation.
func (m *Machine) Consolidatable() {
	m.Claim.Status.Conditions = append(m.Claim.Status.Conditions, v1.Condition{
		Type: v1.ConsolidatableCondition, Status: metav1.ConditionTrue, Reason: v1.ConsolidatableCondition,
	})
}

// Free returns the millicores and the MiB that no pod on the machine requests.
func (m *Machine) Free() (cpu, memory int64) {
	cpu, memory = m.Node.Status.Allocatable.Cpu().MilliValue(), m.Node.Status.Allocatable.Memory().Value()>>20
	for _, p := range m.Bound {
		r := p.Spec.Containers[0].Resources.Requests
		cpu, memory = cpu-r.Cpu().MilliValue(), memory-r.Memory().Value()>>20
	}
	return cpu, memory
}

// Accepts reports whether the labels and taints of the node let the pod run there.
func Accepts(n *corev1.Node, p *corev1.Pod) bool {
	ok, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n)
	return Tolerates(n, p) && ok && err == nil
}

// Tolerates reports whether the pod tolerates the taints of the node.
func Tolerates(n *corev1.Node, p *corev1.Pod) bool {
	_, bad := schedulingv1.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, p.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule
	}, false)
	return !bad
}

// Requests returns what a pod asks of its node, itself included.
func Requests(p *corev1.Pod) corev1.ResourceList {
	out := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)}
	for _, c := range p.Spec.Containers {
		for name, q := range c.Resources.Requests {
			sum := out[name]
			sum.Add(q)
			out[name] = sum
		}
	}
	return out
}
