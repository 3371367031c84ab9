// SPDX-License-Identifier: Apache-2.0

package deletioncost

import "github.com/prometheus/client_golang/prometheus"

// The results of writes.
const (
	updated         = "updated"
	skippedNotFound = "skipped_notfound"
	skippedConflict = "skipped_conflict"
	failed          = "error"
)

// Metrics shows what is written.
type Metrics struct {
	pending *prometheus.GaugeVec
	writes  *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "karpenter", Subsystem: "pod_deletion_cost", Name: "nodes_with_pending_annotation_writes",
			Help: "Number of nodes whose pods got another deletion cost in the last run, by node pool.",
		}, []string{"nodepool"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "karpenter", Subsystem: "pod_deletion_cost", Name: "pod_annotation_writes_total",
			Help: "Number of writes of deletion costs of pods, by result.",
		}, []string{"result"}),
	}
	reg.MustRegister(m.pending, m.writes)
	return m
}

func (m *Metrics) pend(nodes map[string]int) {
	m.pending.Reset()
	for pool, n := range nodes {
		m.pending.WithLabelValues(pool).Set(float64(n))
	}
}

func (m *Metrics) wrote(result string) { m.writes.WithLabelValues(result).Inc() }
