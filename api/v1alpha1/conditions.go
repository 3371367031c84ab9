// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
)

// ValidationSucceededCondition says whether the overlay passes
// ValidateNodeOverlay and conflicts with no other. It is the only dependent.
const ValidationSucceededCondition = "ValidationSucceeded"

// Reasons of ValidationSucceededCondition being False.
const (
	RuntimeValidationReason = "RuntimeValidation"
	ConflictReason          = "Conflict"
)

// StatusConditions opens the overlay's conditions; see conditions.For.
func (o *NodeOverlay) StatusConditions(now time.Time) *conditions.Set {
	return conditions.For(o, conditions.Kind{Dependents: []string{ValidationSucceededCondition}}, now)
}

// GetConditions returns the stored conditions.
func (o *NodeOverlay) GetConditions() []metav1.Condition { return o.Status.Conditions }

// SetConditions replaces the stored conditions.
func (o *NodeOverlay) SetConditions(cs []metav1.Condition) { o.Status.Conditions = cs }
