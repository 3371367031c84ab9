// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

// node is a Node with what matters of its labels.
type node struct {
	*corev1.Node
	instanceType, zone, arch string
	spot                     bool
	gpu, accelerator         string  // models, as instance types are labeled with them
	price                    float64 // dollars per hour
	priced                   bool
}

func newNode(n *corev1.Node) *node {
	label := func(keys ...string) string {
		for _, k := range keys {
			if v := n.Labels[k]; v != "" {
				return v
			}
		}
		return ""
	}
	return &node{
		Node:         n,
		instanceType: cmp.Or(label(corev1.LabelInstanceTypeStable, corev1.LabelInstanceType), sizeOf(n)),
		zone:         label(corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone),
		arch:         cmp.Or(label(corev1.LabelArchStable, "beta.kubernetes.io/arch"), n.Status.NodeInfo.Architecture, v1.ArchitectureAmd64),
		spot: strings.EqualFold(label(v1.CapacityTypeLabelKey, groupCapacity, "node.kubernetes.io/lifecycle",
			"node-lifecycle", "lifecycle"), "spot") || label("cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority") != "" && label("kubernetes.azure.com/scalesetpriority") != "regular",
	}
}

// sizeOf stands for the instance type of a node that names none, so that a price can
// be given for it: 16cpu-62Gi. It is "unknown" if the node does not say its size.
func sizeOf(n *corev1.Node) string {
	cpu, memory := n.Status.Capacity.Cpu(), n.Status.Capacity.Memory()
	if cpu.IsZero() || memory.IsZero() {
		return "unknown"
	}
	return fmt.Sprintf("%dcpu-%.0fGi", cpu.Value(), memory.AsApproximateFloat64()/(1<<30))
}

// leftOut says why the node is not part of the comparison; "" = it is.
func (n *node) leftOut() string {
	os := cmp.Or(n.Labels[corev1.LabelOSStable], n.Status.NodeInfo.OperatingSystem)
	_, controlPlane := n.Labels["node-role.kubernetes.io/control-plane"]
	_, master := n.Labels["node-role.kubernetes.io/master"]
	switch {
	case n.Labels["eks.amazonaws.com/compute-type"] == "fargate":
		return "on Fargate"
	case n.Labels["eks.amazonaws.com/compute-type"] == "hybrid":
		return "outside AWS (EKS Hybrid Nodes)"
	case n.Labels["type"] == "virtual-kubelet":
		return "of a virtual kubelet"
	case controlPlane || master:
		return "of the control plane"
	case os == string(corev1.Windows):
		return "with Windows"
	}
	return ""
}

// passing are taints that say how a node is at the moment, and not what it is for.
func passing(key string) bool {
	return strings.HasPrefix(key, "node.kubernetes.io/") || strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/") ||
		slices.Contains([]string{"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/unregistered"}, key)
}

// selected returns the label keys that pods ask for and that no instance type
// defines.
func selected(pods []*corev1.Pod, labels v1.Labels) map[string]bool {
	out := map[string]bool{}
	add := func(key string) {
		if key = labels.CanonicalKey(key); !labels.WellKnown.Has(key) && key != corev1.LabelHostname && key != groupCapacity || key == v1.NodePoolLabelKey {
			out[key] = true
		}
	}
	for _, p := range pods {
		for key := range p.Spec.NodeSelector {
			add(key)
		}
		for i := range p.Spec.TopologySpreadConstraints {
			add(p.Spec.TopologySpreadConstraints[i].TopologyKey)
		}
		a := p.Spec.Affinity
		if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			continue
		}
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				add(e.Key)
			}
		}
	}
	return out
}

// pool is a NodePool that stands for nodes with the same taints and the same labels
// that pods select.
type pool struct {
	name   string
	origin string // the NodePool of Karpenter that its nodes are of
	labels map[string]string
	taints []corev1.Taint
}

// pools returns a NodePool for each group of nodes with the same taints and the
// same values of the labels.
func pools(nodes []*node, keys map[string]bool) []pool {
	found := map[string]pool{}
	for _, n := range nodes {
		p := pool{labels: map[string]string{}}
		for key := range keys {
			if value, ok := n.Labels[key]; ok {
				p.labels[key] = value
			}
		}
		for _, t := range n.Spec.Taints {
			if !passing(t.Key) {
				p.taints = append(p.taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
			}
		}
		slices.SortFunc(p.taints, func(a, b corev1.Taint) int { return cmp.Compare(a.ToString(), b.ToString()) })
		found[p.key()] = p
	}
	var out []pool
	for i, key := range slices.Sorted(maps.Keys(found)) {
		p := found[key]
		p.name = cmp.Or(p.labels[v1.NodePoolLabelKey], fmt.Sprintf("group-%d", i+1))
		p.origin = p.labels[v1.NodePoolLabelKey]
		delete(p.labels, v1.NodePoolLabelKey)
		if slices.ContainsFunc(out, func(other pool) bool { return other.name == p.name }) {
			p.name = fmt.Sprintf("%s-%d", p.name, i+1)
		}
		out = append(out, p)
	}
	return out
}

func (p pool) key() string { return fmt.Sprint(p.labels, p.taints) }

// object returns the NodePool for a kind of plan.
func (p pool) object(k kind) *v1.NodePool {
	out := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	spec := &out.Spec.Template.Spec
	out.Spec.Template.Labels = p.labels
	spec.NodeClassRef = &v1.NodeClassReference{Group: classKind.Group, Kind: classKind.Kind, Name: "savings"}
	for _, t := range p.taints {
		spec.Taints = append(spec.Taints, v1.Taint(t))
	}
	in := func(key string, values ...string) {
		spec.Requirements = append(spec.Requirements, v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values})
	}
	capacity := []string{v1.CapacityTypeOnDemand}
	if k.spot {
		capacity = append(capacity, v1.CapacityTypeSpot)
	}
	in(v1.CapacityTypeLabelKey, capacity...)
	in(corev1.LabelOSStable, string(corev1.Linux))
	out.Status.Conditions = []metav1.Condition{{Type: v1.ReadyCondition, Status: metav1.ConditionTrue}}
	return out
}
