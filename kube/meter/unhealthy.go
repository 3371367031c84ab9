// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
)

// Unhealthy counts the NodeClaims that are disrupted because of a condition of
// their Node.
type Unhealthy struct {
	claims *prometheus.CounterVec
}

// NewUnhealthy registers the counter.
func NewUnhealthy(reg prometheus.Registerer) *Unhealthy {
	u := &Unhealthy{claims: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "karpenter", Subsystem: "nodeclaims", Name: "unhealthy_disrupted_total",
		Help: "Number of node claims disrupted because their node was unhealthy, by node condition.",
	}, []string{"condition", "nodepool", "capacity_type", "image_id", "termination_mode"})}
	reg.MustRegister(u.claims)
	return u
}

// Count counts the claim. The mode is the result of TerminationMode.
func (u *Unhealthy) Count(claim *v1.NodeClaim, condition corev1.NodeConditionType, mode string) {
	u.claims.WithLabelValues(Snake(string(condition)), claim.Labels[v1.NodePoolLabelKey],
		claim.Labels[v1.CapacityTypeLabelKey], claim.Status.ImageID, mode).Inc()
}
