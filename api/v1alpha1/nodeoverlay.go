// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeOverlay changes the price of instance types, or adds extended resources to
// them, for Karpenter's decisions. This kind is alpha and needs the feature gate
// NodeOverlay.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeoverlays,scope=Cluster,categories=karpenter,shortName={overlays}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Weight",type="integer",JSONPath=".spec.weight",priority=1,description=""
type NodeOverlay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec   NodeOverlaySpec   `json:"spec"`
	Status NodeOverlayStatus `json:"status,omitempty"`
}

// NodeOverlayList is a list of NodeOverlays.
//
// +kubebuilder:object:root=true
type NodeOverlayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeOverlay `json:"items"`
}

// NodeOverlaySpec says which instance types are changed, and how. An overlay can
// change nothing.
//
// +kubebuilder:validation:XValidation:rule="!has(self.price) || !has(self.priceAdjustment)",message="price and priceAdjustment may not both be set"
type NodeOverlaySpec struct {
	// Requirements select the instance types and offerings to change, by their
	// labels and those of the NodePool's template; karpenter.sh/nodepool selects
	// NodePools. All must hold; an empty list selects everything. A price changes
	// for the offerings that match, a capacity for instance types with an offering
	// that does.
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(x.operator in ['In', 'NotIn']) || (has(x.values) && x.values.size() > 0))",message="requirements with operator 'In' or 'NotIn' must have a value defined"
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))",message="requirements with operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single non-negative integer value"
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +required
	Requirements []NodeSelectorRequirement `json:"requirements"`
	// PriceAdjustment changes the price per hour by a signed amount ("+0.5",
	// "-0.01") or a signed percentage ("+10%", "-25%"). The result is 0 at least.
	// Not together with price.
	// +kubebuilder:validation:Pattern=`^([+-][0-9]*\.?[0-9]+|\+[0-9]*\.?[0-9]+%|-[0-9]{1,2}(\.[0-9]+)?%|-100%)$`
	// +optional
	PriceAdjustment *string `json:"priceAdjustment,omitempty"`
	// Price replaces the price: dollars per hour (or the currency of the
	// provider), such as "0.85". Not together with priceAdjustment.
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +optional
	Price *string `json:"price,omitempty"`
	// Capacity adds extended resources to the instance types, or overrides them,
	// such as smarter-devices/fuse. It cannot change cpu, memory, ephemeral-storage
	// and pods.
	// +kubebuilder:validation:XValidation:rule="self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",message="capacity may not override cpu, memory, ephemeral-storage or pods"
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Weight orders overlays. If several overlays set the price of an offering, or
	// the same resource of an instance type, the one with the highest weight wins.
	// Two overlays of equal weight conflict, and the one whose name comes first in
	// the alphabet is not applied. Unset counts as 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// NodeSelectorRequirement constrains one label. It is core's node selector
// requirement with two more operators, Gte and Lte.
type NodeSelectorRequirement struct {
	// Key is the label the requirement is about. The domain karpenter.sh is
	// restricted, but for karpenter.sh/capacity-type and karpenter.sh/nodepool.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +kubebuilder:validation:XValidation:rule="self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^([^/]+)').endsWith('karpenter.sh')",message="label domain karpenter.sh is restricted"
	// +kubebuilder:validation:XValidation:rule="self != 'kubernetes.io/hostname'",message="label kubernetes.io/hostname is restricted"
	// +required
	Key string `json:"key"`
	// Operator relates the label to the values: In, NotIn, Exists, DoesNotExist;
	// or Gt, Lt, Gte, Lte, which compare numbers.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt;Gte;Lte
	// +required
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values the operator works on: at least one for In and NotIn; exactly one
	// integer, 0 or more, for Gt, Lt, Gte and Lte; ignored for Exists and
	// DoesNotExist.
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
}

// NodeOverlayStatus is what is known of a NodeOverlay.
type NodeOverlayStatus struct {
	// Conditions of the overlay. Ready needs ValidationSucceeded, which is False
	// with the reason RuntimeValidation or Conflict and says what to change.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WeightValue returns the weight of the overlay, 0 when unset.
func (o *NodeOverlay) WeightValue() int32 {
	if o.Spec.Weight == nil {
		return 0
	}
	return *o.Spec.Weight
}

// Compare orders overlays for use with slices.SortFunc: the overlay that wins
// comes first. Higher weight wins; among equal weights the name later in the
// alphabet.
func Compare(a, b *NodeOverlay) int {
	if c := cmp.Compare(b.WeightValue(), a.WeightValue()); c != 0 {
		return c
	}
	return cmp.Compare(b.Name, a.Name)
}
