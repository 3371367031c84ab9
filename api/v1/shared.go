// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NodeClassReference names the provider's resource that says how instances
// become nodes.
type NodeClassReference struct {
	// Kind of the node class, such as EC2NodeClass.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="kind may not be empty"
	// +required
	Kind string `json:"kind"`
	// Name of the node class.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="name may not be empty"
	// +required
	Name string `json:"name"`
	// Group is the API group of the node class, without a version, such as
	// karpenter.k8s.aws.
	// +kubebuilder:validation:XValidation:rule="self != ''",message="group may not be empty"
	// +kubebuilder:validation:Pattern=`^[^/]*$`
	// +required
	Group string `json:"group"`
}

// GroupKind returns the referenced group and kind.
func (r *NodeClassReference) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}
}

// NodeClassLabelKey returns the label key under which NodeClaims and Nodes
// carry the name of their node class, "<group>/<lower-case kind>".
func NodeClassLabelKey(gk schema.GroupKind) string {
	return gk.Group + "/" + strings.ToLower(gk.Kind)
}

// NodeSelectorRequirementWithMinValues constrains one label of a node. It is
// core's node selector requirement with two more operators, Gte and Lte, and
// with minValues.
type NodeSelectorRequirementWithMinValues struct {
	// Key is the label the requirement is about. The domain karpenter.sh is
	// restricted, but for karpenter.sh/capacity-type and, on a NodeClaim,
	// karpenter.sh/nodepool. In the domain karpenter.k8s.aws only the labels that
	// the AWS provider sets are allowed.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +kubebuilder:validation:XValidation:rule="self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^([^/]+)').endsWith('karpenter.sh')",message="label domain karpenter.sh is restricted"
	// +kubebuilder:validation:XValidation:rule="self in ['karpenter.k8s.aws/capacity-reservation-id', 'karpenter.k8s.aws/capacity-reservation-interruptible', 'karpenter.k8s.aws/capacity-reservation-type', 'karpenter.k8s.aws/ec2nodeclass', 'karpenter.k8s.aws/instance-accelerator-count', 'karpenter.k8s.aws/instance-accelerator-manufacturer', 'karpenter.k8s.aws/instance-accelerator-name', 'karpenter.k8s.aws/instance-capability-flex', 'karpenter.k8s.aws/instance-category', 'karpenter.k8s.aws/instance-cpu', 'karpenter.k8s.aws/instance-cpu-manufacturer', 'karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz', 'karpenter.k8s.aws/instance-ebs-bandwidth', 'karpenter.k8s.aws/instance-encryption-in-transit-supported', 'karpenter.k8s.aws/instance-family', 'karpenter.k8s.aws/instance-generation', 'karpenter.k8s.aws/instance-gpu-count', 'karpenter.k8s.aws/instance-gpu-manufacturer', 'karpenter.k8s.aws/instance-gpu-memory', 'karpenter.k8s.aws/instance-gpu-name', 'karpenter.k8s.aws/instance-hypervisor', 'karpenter.k8s.aws/instance-local-nvme', 'karpenter.k8s.aws/instance-memory', 'karpenter.k8s.aws/instance-network-bandwidth', 'karpenter.k8s.aws/instance-size', 'karpenter.k8s.aws/instance-tenancy', 'karpenter.k8s.aws/placement-group-id', 'karpenter.k8s.aws/placement-group-partition'] || !self.find('^([^/]+)').endsWith('karpenter.k8s.aws')",message="label domain karpenter.k8s.aws is restricted"
	// +kubebuilder:validation:XValidation:rule="self != 'kubernetes.io/hostname'",message="label kubernetes.io/hostname is restricted"
	// +required
	Key string `json:"key"`
	// Operator relates the label to the values: In, NotIn, Exists, DoesNotExist;
	// or Gt, Lt, Gte, Lte, which compare numbers.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt;Gte;Lte
	// +required
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values the operator works on: at least one for In; exactly one integer, 0 or
	// more, for Gt, Lt, Gte and Lte; ignored for Exists and DoesNotExist. NotIn
	// without values excludes nothing.
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
	// MinValues is how many different values of the key a NodeClaim must allow,
	// such as 15 instance types for Spot. If fewer are possible, the setting
	// min-values-policy decides. This field is alpha.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +optional
	MinValues *int `json:"minValues,omitempty"`
}

// Operators that core's node selectors do not know.
const (
	// NodeSelectorOpGte means greater than or equal.
	NodeSelectorOpGte = corev1.NodeSelectorOperator("Gte")
	// NodeSelectorOpLte means less than or equal.
	NodeSelectorOpLte = corev1.NodeSelectorOperator("Lte")
)

// Taint is core's Taint with the validation of the Karpenter CRDs. The two
// convert into each other: corev1.Taint(t).
type Taint struct {
	// Key of the taint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +required
	Key string `json:"key"`
	// Value of the taint.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +optional
	Value string `json:"value,omitempty"`
	// Effect on pods that do not tolerate the taint.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	// +required
	Effect corev1.TaintEffect `json:"effect"`
	// TimeAdded is when the taint was added; leave it to Kubernetes.
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// CoreTaints returns the taints as core's type. A nil slice gives nil.
func CoreTaints(taints []Taint) []corev1.Taint {
	if taints == nil {
		return nil
	}
	core := make([]corev1.Taint, len(taints))
	for i := range taints {
		core[i] = corev1.Taint(taints[i])
	}
	return core
}
