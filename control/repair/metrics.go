package repair

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/meter"
)

// Metrics counts repairs by what was wrong.
type Metrics struct {
	unhealthy *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{unhealthy: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "karpenter", Subsystem: "nodeclaims", Name: "unhealthy_disrupted_total",
		Help: "Number of node claims deleted because their node was unhealthy, by node condition.",
	}, []string{"condition", "nodepool", "capacity_type", "image_id"})}
	reg.MustRegister(m.unhealthy)
	return m
}

func (m *Metrics) replaced(claim *v1.NodeClaim, condition corev1.NodeConditionType) {
	m.unhealthy.WithLabelValues(meter.Snake(string(condition)), claim.Labels[v1.NodePoolLabelKey],
		claim.Labels[v1.CapacityTypeLabelKey], claim.Status.ImageID).Inc()
}
