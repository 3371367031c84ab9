// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool is a template for nodes, a limit on how many there are, and the
// rules by which they may be disrupted.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.nodes
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.template.spec.nodeClassRef.name",description=""
// +kubebuilder:printcolumn:name="Nodes",type="string",JSONPath=".status.nodes",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Weight",type="integer",JSONPath=".spec.weight",priority=1,description=""
// +kubebuilder:printcolumn:name="CPU",type="string",JSONPath=".status.resources.cpu",priority=1,description=""
// +kubebuilder:printcolumn:name="Memory",type="string",JSONPath=".status.resources.memory",priority=1,description=""
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec   NodePoolSpec   `json:"spec"`
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}

// NodePoolSpec is what nodes should be like, how many there may be, and when
// they may be disrupted.
//
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == has(oldSelf.replicas)",message="cannot transition between static (replicas set) and dynamic (replicas unset) provisioning; create another NodePool"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits)",message="only limits.nodes may be set when replicas is set"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.weight)",message="weight may not be set when replicas is set"
type NodePoolSpec struct {
	// Template of the NodeClaims that this NodePool creates, and so of its nodes. A
	// change makes the existing nodes drift. A change of requirements makes only
	// those nodes drift that no longer meet them.
	// +required
	Template NodeClaimTemplate `json:"template"`
	// Disruption says when Karpenter can remove or replace nodes, and how many at
	// once.
	// +kubebuilder:default:={consolidateAfter: "0s"}
	// +optional
	Disruption Disruption `json:"disruption"`
	// Limits bound the capacity of all nodes of the NodePool together, by resource.
	// The resource "nodes" bounds their number. At a limit, Karpenter launches no
	// more nodes, and removes none because of it. Unset means no limit.
	// +optional
	Limits Limits `json:"limits,omitempty"`
	// Weight orders NodePools. A NodePool gets nodes only for pods that no NodePool
	// of higher weight can run. Among NodePools of equal weight, the price decides.
	// Unset counts as 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// Replicas makes the NodePool static: it keeps this number of nodes,
	// independent of pods, and launches none for pending pods. You can set or omit
	// replicas only when you create the NodePool. This field is alpha and needs the
	// feature gate StaticCapacity.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// Limits cap resources by name. A resource that is absent is not limited.
type Limits corev1.ResourceList

// NodeClaimTemplate is the template of the NodeClaims of the pool. All of it
// except the requirements enters the drift hash.
type NodeClaimTemplate struct {
	// +optional
	ObjectMeta `json:"metadata,omitempty"`
	// +required
	Spec NodeClaimTemplateSpec `json:"spec"`
}

// LabelValue is a plain string; the alias carries the schema of label values.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue = string

// ObjectMeta is the metadata that NodeClaims and nodes of the pool get.
//
// +kubebuilder:object:generate=false
type ObjectMeta struct {
	// Labels of the NodeClaims and nodes. Pods can use them in node selectors and
	// affinity. Labels and requirements together can be at most 100.
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(x, x in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !x.find('^([^/]+)').endsWith('karpenter.sh'))",message="label domain karpenter.sh is restricted"
	// +kubebuilder:validation:XValidation:rule="self.all(x, x in ['karpenter.k8s.aws/capacity-reservation-id', 'karpenter.k8s.aws/capacity-reservation-interruptible', 'karpenter.k8s.aws/capacity-reservation-type', 'karpenter.k8s.aws/ec2nodeclass', 'karpenter.k8s.aws/instance-accelerator-count', 'karpenter.k8s.aws/instance-accelerator-manufacturer', 'karpenter.k8s.aws/instance-accelerator-name', 'karpenter.k8s.aws/instance-capability-flex', 'karpenter.k8s.aws/instance-category', 'karpenter.k8s.aws/instance-cpu', 'karpenter.k8s.aws/instance-cpu-manufacturer', 'karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz', 'karpenter.k8s.aws/instance-ebs-bandwidth', 'karpenter.k8s.aws/instance-encryption-in-transit-supported', 'karpenter.k8s.aws/instance-family', 'karpenter.k8s.aws/instance-generation', 'karpenter.k8s.aws/instance-gpu-count', 'karpenter.k8s.aws/instance-gpu-manufacturer', 'karpenter.k8s.aws/instance-gpu-memory', 'karpenter.k8s.aws/instance-gpu-name', 'karpenter.k8s.aws/instance-hypervisor', 'karpenter.k8s.aws/instance-local-nvme', 'karpenter.k8s.aws/instance-memory', 'karpenter.k8s.aws/instance-network-bandwidth', 'karpenter.k8s.aws/instance-size', 'karpenter.k8s.aws/instance-tenancy', 'karpenter.k8s.aws/placement-group-id', 'karpenter.k8s.aws/placement-group-partition'] || !x.find('^([^/]+)').endsWith('karpenter.k8s.aws'))",message="label domain karpenter.k8s.aws is restricted"
	// +kubebuilder:validation:XValidation:rule="self.all(x, x != 'karpenter.sh/nodepool')",message="label karpenter.sh/nodepool is restricted"
	// +kubebuilder:validation:XValidation:rule="self.all(x, x != 'kubernetes.io/hostname')",message="label kubernetes.io/hostname is restricted"
	// +mapType=atomic
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// Annotations of the NodeClaims and nodes, such as
	// karpenter.sh/do-not-disrupt.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// DeepCopyInto copies the metadata into out. It is written by hand because
// the generator cannot copy a map whose value type is an alias.
func (m *ObjectMeta) DeepCopyInto(out *ObjectMeta) {
	out.Labels = maps.Clone(m.Labels)
	out.Annotations = maps.Clone(m.Annotations)
}

// NodeClaimTemplateSpec is the spec of the NodeClaims of the pool.
type NodeClaimTemplateSpec struct {
	// Taints of the nodes. Only pods that tolerate them get nodes of this pool.
	// +listType=atomic
	// +optional
	Taints []Taint `json:"taints,omitempty"`
	// StartupTaints are on new nodes until another program removes them, such as
	// the DaemonSet of a network plugin. Pods don't need to tolerate them. The node
	// is not initialized while it has them.
	// +listType=atomic
	// +optional
	StartupTaints []Taint `json:"startupTaints,omitempty"`
	// Requirements constrain the labels of the nodes, and so the instance types,
	// zones, architectures and capacity types that the NodePool can use. All must
	// hold. An empty list allows everything. Without a requirement on
	// karpenter.sh/capacity-type, spot and on-demand are both allowed.
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.key != 'karpenter.sh/nodepool')",message="requirement key karpenter.sh/nodepool is restricted"
	// +kubebuilder:validation:XValidation:rule="self.all(x, x.operator != 'In' || (has(x.values) && x.values.size() > 0))",message="requirements with operator 'In' must have a value defined"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))",message="requirements with operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single non-negative integer value"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(x.operator == 'In' && has(x.minValues)) || (has(x.values) && x.values.size() >= x.minValues))",message="requirements with operator 'In' and minValues must have at least minValues values"
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +required
	Requirements []NodeSelectorRequirementWithMinValues `json:"requirements" hash:"ignore"`
	// NodeClassRef names the node class, which configures the instances. You cannot
	// change the group and the kind. A change of the name makes the nodes drift.
	// +kubebuilder:validation:XValidation:rule="self.group == oldSelf.group",message="nodeClassRef.group is immutable"
	// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",message="nodeClassRef.kind is immutable"
	// +required
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is how long a node can drain, such as 1h30m, from the
	// deletion of its NodeClaim. At first, pods are evicted within
	// PodDisruptionBudgets and do-not-disrupt. Karpenter deletes the remaining pods
	// early enough for their own grace period to end in time. If it is set, neither
	// of them keeps a drifted node from being replaced. If unset, a drain can wait
	// forever.
	// +kubebuilder:validation:Pattern=`^(([0-9]{1,6}h|[0-9]{1,7}m|[0-9]{1,9}s)+|(1[0-9]{6}|2[0-4][0-9]{5})h([0-9]{1,2}m)?([0-9]{1,2}s)?|[0-9]{8}m|[1-8][0-9]{9}s)$`
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Type=string
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which a node is removed, such as 720h. Budgets do
	// not delay it, and no replacement is launched first. Never keeps nodes. The
	// age counts from the creation of the NodeClaim. A change makes the existing
	// nodes drift. Default 720h.
	// +kubebuilder:default:="720h"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// Disruption says when nodes of a pool may be removed or replaced, and how
// many at once.
type Disruption struct {
	// ConsolidateAfter is how long no pod may have been added to or removed from a
	// node, such as 10m, before the node can be consolidated. Never disables
	// consolidation, and keeps drift and expiry. Ignored if replicas is set.
	// Default 0s.
	// +kubebuilder:default:="0s"
	// +optional
	ConsolidateAfter NillableDuration `json:"consolidateAfter,omitempty"`
	// ConsolidationPolicy says which nodes can be consolidated: only nodes without
	// pods that need another place (WhenEmpty); also nodes whose pods can run
	// elsewhere for less (WhenEmptyOrUnderutilized); or the latter only if the
	// saving is in proportion to the disruption (Balanced). Ignored if replicas is
	// set. Default WhenEmptyOrUnderutilized.
	// +kubebuilder:default:=WhenEmptyOrUnderutilized
	// +kubebuilder:validation:Enum=WhenEmpty;WhenEmptyOrUnderutilized;Balanced
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// Budgets limit how many nodes are disrupted at once. Nodes that are being
	// removed or not ready count, too. Of the budgets that are active and name the
	// reason, the smallest applies. Budgets do not delay expiry, interruptions or
	// deletions by users. Default: one budget of 10%.
	// +kubebuilder:validation:XValidation:rule="self.all(x, has(x.schedule) == has(x.duration))",message="schedule and duration must be set together"
	// +kubebuilder:default:={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Budgets []Budget `json:"budgets,omitempty"`
}

// Budget limits how many nodes of a pool may be disrupted at once.
type Budget struct {
	// Reasons the budget is for: Underutilized, Empty, Drifted, Unhealthy. Absent means all;
	// an empty list means none.
	// +kubebuilder:validation:MaxItems=50
	// +listType=set
	// +optional
	Reasons []DisruptionReason `json:"reasons,omitempty"`
	// Nodes is how many nodes can be disrupted at once: a number ("5") or a share
	// of the nodes of the NodePool, rounded up ("10%"). "0" allows none. Default
	// 10%.
	// +kubebuilder:validation:Pattern=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +kubebuilder:default:="10%"
	// +required
	Nodes string `json:"nodes"`
	// Schedule is when the budget becomes active, as five fields of cron or a macro
	// such as @daily, in UTC. Unset means always. A schedule needs a duration.
	// +kubebuilder:validation:Pattern=`^@(annually|yearly|monthly|weekly|daily|midnight|hourly)|\S+\s+\S+\s+\S+\s+\S+\s+\S+`
	// +optional
	Schedule *string `json:"schedule,omitempty"`
	// Duration is how long the budget stays active from each time of the schedule,
	// in hours and minutes. A duration needs a schedule.
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}h|[0-9]{1,8}m|[0-9]{1,6}h[0-9]{1,7}m)(0s)?$`
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Type=string
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// ConsolidationPolicy says which nodes may be consolidated.
type ConsolidationPolicy string

// The consolidation policies.
const (
	// ConsolidationPolicyWhenEmpty removes only nodes without workload pods.
	ConsolidationPolicyWhenEmpty ConsolidationPolicy = "WhenEmpty"
	// ConsolidationPolicyWhenEmptyOrUnderutilized also removes or replaces
	// nodes when their pods fit somewhere cheaper.
	ConsolidationPolicyWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized"
	// ConsolidationPolicyBalanced does so only when the saving is worth the
	// disruption.
	ConsolidationPolicyBalanced ConsolidationPolicy = "Balanced"
)

// DisruptionReason is why a node is disrupted voluntarily.
//
// +kubebuilder:validation:Enum=Underutilized;Empty;Drifted;Unhealthy
type DisruptionReason string

// The disruption reasons a budget can name.
const (
	DisruptionReasonUnderutilized DisruptionReason = "Underutilized"
	DisruptionReasonEmpty         DisruptionReason = "Empty"
	DisruptionReasonDrifted       DisruptionReason = "Drifted"
	DisruptionReasonUnhealthy     DisruptionReason = "Unhealthy"
)

// NodePoolStatus is what is known of a NodePool.
type NodePoolStatus struct {
	// Resources is the capacity of all nodes of the NodePool together, and their
	// number. Limits apply to these amounts.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Nodes is the number of the pool's nodes.
	// +kubebuilder:default:=0
	// +optional
	Nodes int64 `json:"nodes"`
	// NodeClassObservedGeneration is the generation of the node class that
	// NodeRegistrationHealthy is about.
	// +optional
	NodeClassObservedGeneration int64 `json:"nodeClassObservedGeneration,omitempty"`
	// Conditions of the NodePool. Ready needs ValidationSucceeded and
	// NodeClassReady. If it is not True, no nodes are launched.
	// NodeRegistrationHealthy says whether instances become nodes. RolledOut and
	// RolloutHalted show the progress of replacing drifted nodes.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// IsStatic reports whether the pool keeps a fixed number of nodes.
func (p *NodePool) IsStatic() bool { return p.Spec.Replicas != nil }

// WeightValue returns the weight of the pool, 0 when unset.
func (p *NodePool) WeightValue() int32 {
	if p.Spec.Weight == nil {
		return 0
	}
	return *p.Spec.Weight
}

// NodeLimit returns the most nodes the pool may have, at least 0, and whether
// there is such a limit.
func (p *NodePool) NodeLimit() (int64, bool) {
	limit, ok := p.Spec.Limits[ResourceNodes]
	switch {
	case limit.Sign() <= 0:
		return 0, ok
	case limit.CmpInt64(math.MaxInt64) >= 0: // Value would wrap around
		return math.MaxInt64, ok
	}
	return limit.Value(), ok
}
