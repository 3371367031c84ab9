// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
)

// StatusConditions opens the node class's conditions, of which Ready is the
// only one; see conditions.For.
func (c *KWOKNodeClass) StatusConditions(now time.Time) *conditions.Set {
	return conditions.For(c, conditions.Kind{}, now)
}

// GetConditions returns the stored conditions.
func (c *KWOKNodeClass) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the stored conditions.
func (c *KWOKNodeClass) SetConditions(cs []metav1.Condition) { c.Status.Conditions = cs }
