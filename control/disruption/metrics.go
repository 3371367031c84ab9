package disruption

import (
	"github.com/prometheus/client_golang/prometheus"

	"karpenter/kube/meter"
)

// Metrics shows what voluntary disruption finds and does.
type Metrics struct {
	evaluation        *prometheus.HistogramVec
	eligible          *prometheus.GaugeVec
	decisions         *prometheus.CounterVec
	decisionsByPool   *prometheus.CounterVec
	failedValidations *prometheus.CounterVec
	allowed           *prometheus.GaugeVec
	consuming         *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	const voluntary, pools = "voluntary_disruption", "nodepools"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "karpenter", Subsystem: voluntary, Name: name, Help: help}, labels)
	}
	gauge := func(subsystem, name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "karpenter", Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	m := &Metrics{
		evaluation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: voluntary, Name: "decision_evaluation_duration_seconds",
			Help: "Time it takes to decide which nodes to disrupt.", Buckets: meter.DurationBuckets(),
		}, []string{"reason", "consolidation_type"}),
		eligible:          gauge(voluntary, "eligible_nodes", "Number of nodes that may be disrupted for a reason.", "reason"),
		decisions:         counter("decisions_total", "Number of disruptions started.", "decision", "reason", "consolidation_type"),
		decisionsByPool:   counter("decisions_by_nodepool_total", "Number of disruptions started, by node pool.", "nodepool", "decision", "reason", "consolidation_type"),
		failedValidations: counter("failed_validations_total", "Number of nodes that were to be disrupted and turned out to be needed before it came to that.", "consolidation_type"),
		allowed:           gauge(pools, "allowed_disruptions", "Number of nodes the budgets of a node pool allow to be disrupted at once.", "nodepool", "reason"),
		consuming:         gauge(pools, "nodes_consuming_budgets", "Number of nodes of a node pool that count against its budgets now.", "nodepool", "reason"),
	}
	reg.MustRegister(m.evaluation, m.eligible, m.decisions, m.decisionsByPool, m.failedValidations, m.allowed, m.consuming)
	return m
}

// forget drops the gauges of a pool that is gone.
func (m *Metrics) forget(pool string) {
	m.allowed.DeletePartialMatch(prometheus.Labels{"nodepool": pool})
	m.consuming.DeletePartialMatch(prometheus.Labels{"nodepool": pool})
}
