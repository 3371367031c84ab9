// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "karpenter/api/v1"
)

// grace is how long pods that are ending still run: too long for a plan to count on
// what they leave.
const grace = 10 * time.Minute

// Labels the drawn nodes and pods are about. "tier" holds numbers, mostly.
func labelValues(key string) []string {
	switch key {
	case corev1.LabelTopologyZone:
		return []string{"a", "b"}
	case corev1.LabelArchStable:
		return []string{"amd64", "arm64"}
	case "tier":
		return []string{"1", "2", "05", "gold", "3"}
	case corev1.LabelHostname:
		return []string{"host-0", "host-1"}
	case v1.CapacityTypeLabelKey:
		return []string{v1.CapacityTypeOnDemand, v1.CapacityTypeSpot}
	case corev1.LabelInstanceTypeStable, corev1.LabelInstanceType:
		return []string{"small", "medium", "large"}
	case corev1.LabelFailureDomainBetaZone:
		return []string{"a", "b"}
	case "beta.kubernetes.io/arch":
		return []string{"amd64", "arm64"}
	}
	return []string{"red", "blue", ""}
}

func labelKeys() []string {
	return []string{corev1.LabelTopologyZone, corev1.LabelArchStable, "team", "team", "tier", "tier", "example.com/color", "nobody-has-it"}
}

func taintPool() []corev1.Taint {
	return []corev1.Taint{
		{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule},
		{Key: "dedicated", Value: "y", Effect: corev1.TaintEffectNoExecute},
		{Key: "dedicated", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "gpu", Effect: corev1.TaintEffectNoSchedule},
		{Key: "level", Value: "5", Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
	}
}

const gpu = corev1.ResourceName("example.com/gpu")

// situation draws existing nodes with what runs on them, and pods that wait.
func (g dice) situation(nodes, pending int) *situation {
	s := &situation{}
	for i := range nodes {
		n := g.node(i)
		s.nodes = append(s.nodes, n)
		if g.maybe(40) {
			s.claims = append(s.claims, g.manage(n))
		}
	}
	for i := range pick(g, 0, 0, 1, 2) {
		s.daemons = append(s.daemons, g.daemon(i))
	}
	for _, n := range s.nodes {
		s.pods = append(s.pods, g.bound(n, s.daemons)...)
	}
	for i := range pending {
		s.pods = append(s.pods, g.pending(fmt.Sprintf("pending-%d", i), s))
	}
	return s
}

func (g dice) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("node-%d", i), UID: types.UID(fmt.Sprintf("uid-node-%d", i)),
		Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("host-%d", i)},
	}}
	for _, key := range labelKeys()[:7] {
		if g.maybe(60) {
			n.Labels[key] = pick(g, labelValues(key)...)
		}
	}
	n.Spec.Taints = some(g, 5, taintPool()...)
	if g.maybe(8) {
		n.Spec.Unschedulable = true
		if g.maybe(70) { // its controller adds the taint soon after
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	n.Status.Capacity = g.quantities(3000, 4<<10)
	if g.maybe(70) {
		n.Status.Capacity[corev1.ResourceCPU] = resource.MustParse(pick(g, "2", "4500m", "8"))
		n.Status.Capacity[corev1.ResourceMemory] = resource.MustParse(pick(g, "4Gi", "7.5Gi", "16G"))
	}
	if g.maybe(60) {
		n.Status.Capacity[gpu] = *resource.NewQuantity(g.Int64N(5), resource.DecimalSI)
		n.Status.Capacity[corev1.ResourceEphemeralStorage] = resource.MustParse("20Gi")
	}
	n.Status.Capacity[corev1.ResourcePods] = *resource.NewQuantity(int64(g.IntN(14)), resource.DecimalSI)
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	if g.maybe(5) {
		delete(n.Status.Allocatable, corev1.ResourcePods)
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// quantities draws up to the given amount of cpu in m and memory in Mi.
func (g dice) quantities(cpu, memory int64) corev1.ResourceList {
	out := corev1.ResourceList{}
	if g.maybe(85) {
		out[corev1.ResourceCPU] = pick(g, *resource.NewMilliQuantity(g.Int64N(cpu), resource.DecimalSI),
			resource.MustParse(fmt.Sprintf("%dm", cpu/4)), resource.MustParse(fmt.Sprintf("%d.5", cpu/2000)), resource.MustParse("100500u"))
	}
	if g.maybe(75) {
		out[corev1.ResourceMemory] = pick(g, *resource.NewQuantity(g.Int64N(memory<<20), resource.BinarySI),
			resource.MustParse(fmt.Sprintf("%dMi", memory/4)), resource.MustParse("1G"), resource.MustParse("1500m"))
	}
	if g.maybe(10) {
		out[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(g.Int64N(memory<<20), resource.BinarySI)
	}
	if g.maybe(10) {
		out[gpu] = *resource.NewQuantity(g.Int64N(3), resource.DecimalSI)
	}
	if g.maybe(2) {
		out["hugepages-2Mi"] = *resource.NewQuantity(g.Int64N(3)<<21, resource.BinarySI)
	}
	return out
}

// manage turns the node into one of ours.
func (g dice) manage(n *corev1.Node) *v1.NodeClaim {
	n.Spec.ProviderID = "machine://" + n.Name
	n.Labels[v1.NodePoolLabelKey] = "pool"
	n.Labels[corev1.LabelInstanceTypeStable] = "type"
	n.Labels[v1.NodeRegisteredLabelKey] = "true"
	n.Labels[v1.NodeInitializedLabelKey] = "true"
	class := nodeClass()
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "claim-of-" + n.Name, UID: types.UID("uid-claim-" + n.Name),
		Labels: map[string]string{v1.NodePoolLabelKey: "pool"},
	}}
	c.Spec.NodeClassRef = &class
	c.Status.ProviderID, c.Status.NodeName = n.Spec.ProviderID, n.Name
	c.Status.Capacity, c.Status.Allocatable = n.Status.Capacity, n.Status.Allocatable
	if g.maybe(30) { // still starting: what goes by itself does not count
		delete(n.Labels, v1.NodeInitializedLabelKey)
		startup := v1.Taint{Key: "example.com/starting", Effect: corev1.TaintEffectNoSchedule}
		c.Spec.StartupTaints = append(c.Spec.StartupTaints, startup)
		n.Spec.Taints = append(n.Spec.Taints, v1.CoreTaints(c.Spec.StartupTaints)...)
	}
	return c
}

// settled returns the nodes as they are once they have started, without those
// that are going away.
func (s *situation) settled() []*corev1.Node {
	var out []*corev1.Node
	for _, n := range s.nodes {
		if n.DeletionTimestamp != nil {
			continue
		}
		n = n.DeepCopy()
		if n.Labels[v1.NodeRegisteredLabelKey] == "true" && n.Labels[v1.NodeInitializedLabelKey] != "true" {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
				return t.Key == "example.com/starting" || t.Key == corev1.TaintNodeNotReady
			})
			n.Labels[v1.NodeInitializedLabelKey] = "true"
		}
		out = append(out, n)
	}
	return out
}

func (g dice) daemon(i int) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: fmt.Sprintf("daemon-%d", i), UID: types.UID(fmt.Sprintf("uid-daemon-%d", i))}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: g.quantities(400, 256)}}}
	d.Spec.Template.Spec.Tolerations = g.tolerations()
	if g.maybe(30) {
		d.Spec.Template.Spec.NodeSelector = g.selector()
	}
	if g.maybe(20) {
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: g.affinity(nil)}
	}
	return d
}

// bound draws the pods of the node: some of its daemons, and others.
func (g dice) bound(n *corev1.Node, daemons []*appsv1.DaemonSet) []*corev1.Pod {
	var out []*corev1.Pod
	for _, d := range daemons {
		if p := daemonPod(d, n); p != nil && g.maybe(50) {
			name(p, "system", d.Name+"-"+n.Name)
			p.OwnerReferences = []metav1.OwnerReference{ownedBy(d)}
			out = append(out, p)
		}
	}
	for i := range g.IntN(4) {
		p := &corev1.Pod{Spec: g.work()}
		name(p, pick(g, "default", "other"), fmt.Sprintf("bound-%d-%s", i, n.Name))
		p.Spec.NodeName = n.Name
		p.Labels = g.podLabels()
		p.Status.Phase = pick(g, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed)
		if g.maybe(10) {
			p.DeletionTimestamp = ptr.To(metav1.NewTime(now().Add(grace)))
		}
		if g.maybe(15) {
			g.resize(p)
		}
		if g.maybe(5) {
			g.repel(p)
		}
		out = append(out, p)
	}
	return out
}

func ownedBy(d *appsv1.DaemonSet) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, UID: d.UID, Controller: ptr.To(true)}
}

func name(p *corev1.Pod, namespace, name string) {
	p.Namespace, p.Name, p.UID = namespace, name, types.UID("uid-"+namespace+"-"+name)
	p.CreationTimestamp = metav1.NewTime(now())
}

// resize makes the pod one whose containers are being resized in place.
func (g dice) resize(p *corev1.Pod) {
	for _, k := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:               k.Name,
			AllocatedResources: g.quantities(500, 512),
			Resources:          &corev1.ResourceRequirements{Requests: g.quantities(500, 512)},
		})
	}
	if g.maybe(30) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible})
	}
}

// work draws containers of every kind.
func (g dice) work() corev1.PodSpec {
	var spec corev1.PodSpec
	for i := range 1 + g.IntN(2) {
		k := corev1.Container{Name: fmt.Sprintf("main-%d", i), Resources: corev1.ResourceRequirements{Requests: g.quantities(900, 1<<10)}}
		if g.maybe(4) {
			k.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: pick[int32](g, 8080, 9090), HostIP: pick(g, "", "10.0.0.1"), Protocol: corev1.ProtocolTCP}}
		}
		spec.Containers = append(spec.Containers, k)
	}
	if g.maybe(15) {
		spec.Containers[0].Resources.Requests = nil // best effort, perhaps
	}
	for i := range pick(g, 0, 0, 1, 2) {
		k := corev1.Container{Name: fmt.Sprintf("init-%d", i), Resources: corev1.ResourceRequirements{Requests: g.quantities(1200, 1<<10)}}
		if g.maybe(50) {
			k.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		spec.InitContainers = append(spec.InitContainers, k)
	}
	if g.maybe(15) {
		spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: resource.MustParse("20Mi")}
	}
	if g.maybe(15) {
		spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1200m"), corev1.ResourceMemory: resource.MustParse("900Mi")}}
	}
	return spec
}

func (g dice) podLabels() map[string]string {
	return map[string]string{"app": pick(g, "web", "db"), "version": pick(g, "1", "2")}
}

// pending draws a pod the scheduler has found no node for.
func (g dice) pending(podName string, s *situation) *corev1.Pod {
	p := &corev1.Pod{Spec: g.work()}
	name(p, pick(g, "default", "other"), podName)
	p.Labels = g.podLabels()
	p.Spec.Tolerations = g.tolerations()
	if g.maybe(30) {
		p.Spec.NodeSelector = g.selector()
	}
	if g.maybe(50) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: g.affinity(s)}
	}
	if g.maybe(3) {
		g.repel(p)
	}
	if g.maybe(3) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: pick(g, corev1.LabelTopologyZone, corev1.LabelHostname),
			WhenUnsatisfiable: pick(g, corev1.DoNotSchedule, corev1.ScheduleAnyway), LabelSelector: selecting("app", p.Labels["app"]),
		}}
	}
	p.Spec.Priority = ptr.To(pick[int32](g, 0, 0, 100))
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
}

// repel gives the pod an affinity to pods, or against them.
func (g dice) repel(p *corev1.Pod) {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	terms := []corev1.PodAffinityTerm{{LabelSelector: selecting("app", pick(g, "web", "db")), TopologyKey: pick(g, corev1.LabelTopologyZone, corev1.LabelHostname)}}
	if g.maybe(60) {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	} else {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func (g dice) selector() map[string]string {
	out := map[string]string{}
	for range pick(g, 1, 1, 2) {
		key := pick(g, g.keys...)
		out[key] = pick(g, labelValues(key)...)
	}
	return out
}

// affinity draws required terms; one that can name nodes needs the situation.
func (g dice) affinity(s *situation) *corev1.NodeAffinity {
	selector := &corev1.NodeSelector{}
	for range 1 + g.IntN(3) {
		var term corev1.NodeSelectorTerm
		for range pick(g, 0, 1, 1, 2, 3) {
			term.MatchExpressions = append(term.MatchExpressions, g.expression())
		}
		if s != nil && g.maybe(5) {
			term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{pick(g, s.nodes...).Name}}}
		}
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, term)
	}
	out := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}
	if s != nil && g.maybe(5) {
		out.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{
			Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{g.expression()}},
		}}
	}
	return out
}

func (g dice) expression() corev1.NodeSelectorRequirement {
	key := pick(g, g.keys...)
	if g.maybe(2) {
		key = corev1.LabelHostname
	}
	e := corev1.NodeSelectorRequirement{Key: key, Operator: pick(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn,
		corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)}
	switch e.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		e.Values = some(g, 50, labelValues(key)...)
		if len(e.Values) == 0 {
			e.Values = labelValues(key)[:1]
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if key != "tier" && g.maybe(70) {
			e.Key = "tier"
		}
		e.Values = []string{pick(g, "0", "1", "2", "4", "05", "9223372036854775807")}
		if g.maybe(3) {
			e.Values = []string{pick(g, "-3", "many")}
		}
	}
	return e
}

func (g dice) tolerations() []corev1.Toleration {
	var out []corev1.Toleration
	for _, t := range some(g, 35, taintPool()...) {
		o := corev1.Toleration{Key: t.Key, Operator: pick(g, "", corev1.TolerationOpEqual, corev1.TolerationOpExists), Effect: pick(g, "", t.Effect, t.Effect, corev1.TaintEffectNoSchedule)}
		if o.Operator != corev1.TolerationOpExists {
			o.Value = pick(g, t.Value, t.Value, "x", "")
		}
		if t.Key == "level" && g.maybe(10) {
			o.Operator, o.Value = pick(g, corev1.TolerationOpGt, corev1.TolerationOpLt), pick(g, "4", "6")
		}
		if o.Effect == corev1.TaintEffectNoExecute && g.maybe(50) {
			o.TolerationSeconds = ptr.To[int64](300)
		}
		out = append(out, o)
	}
	switch {
	case g.maybe(5):
		out = append(out, corev1.Toleration{Operator: corev1.TolerationOpExists})
	case g.maybe(5):
		out = append(out, corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	case g.maybe(5):
		out = append(out, corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})
	}
	return out
}
