// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"karpenter/kube/meter"
	"karpenter/model"
)

// Metrics shows what voluntary disruption finds and does.
type Metrics struct {
	evaluation        *prometheus.HistogramVec
	eligible          *prometheus.GaugeVec
	decisions         *prometheus.CounterVec
	decisionsByPool   *prometheus.CounterVec
	failedValidations *prometheus.CounterVec
	queueFailures     *prometheus.CounterVec
	terminatedFirst   *prometheus.CounterVec
	moves             *prometheus.CounterVec
	score             *prometheus.HistogramVec
	allowed           *prometheus.GaugeVec
	consuming         *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	const voluntary, pools = "voluntary_disruption", "nodepools"
	counter := func(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "karpenter", Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	gauge := func(subsystem, name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "karpenter", Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	m := &Metrics{
		evaluation: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: voluntary, Name: "decision_evaluation_duration_seconds",
			Help: "Time it takes to decide which nodes to disrupt. One plan is made for all reasons.", Buckets: meter.DurationBuckets(),
		}, []string{"reason", "consolidation_type"}),
		eligible:          gauge(voluntary, "eligible_nodes", "Number of nodes that may be disrupted for a reason.", "reason"),
		decisions:         counter(voluntary, "decisions_total", "Number of disruptions started.", "decision", "reason", "consolidation_type"),
		decisionsByPool:   counter(voluntary, "decisions_by_nodepool_total", "Number of disruptions started, by node pool.", "nodepool", "decision", "reason", "consolidation_type"),
		failedValidations: counter(voluntary, "failed_validations_total", "Number of nodes chosen for disruption that turned out to be needed before the disruption started.", "consolidation_type"),
		queueFailures:     counter(voluntary, "queue_failures_total", "Number of replacements that failed, so that the disruption was abandoned.", "decision", "reason", "consolidation_type"),
		terminatedFirst:   counter(voluntary, "terminate_first_decisions_total", "Number of nodes terminated before they are replaced, by why nothing could replace them first.", "nodepool", "reason", "terminate_first_reason"),
		moves:             counter("consolidation", "moves_total", "Number of consolidations found, by node pool, and whether the policy Balanced rejected them.", "decision", "nodepool", "policy"),
		score: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: "consolidation", Name: "score",
			Help:    "Share of the cost of a node pool that a consolidation saves, divided by the share of the pool that it disrupts.",
			Buckets: []float64{.1, .25, .33, .5, 1, 2, 5, 10},
		}, []string{"decision", "nodepool", "policy"}),
		allowed:   gauge(pools, "allowed_disruptions", "Number of nodes the budgets of a node pool allow to be disrupted at once.", "nodepool", "reason"),
		consuming: gauge(pools, "nodes_consuming_budgets", "Number of nodes of a node pool that count against its budgets now.", "nodepool", "reason"),
	}
	timeouts := counter(voluntary, "consolidation_timeouts_total", "Always 0: a plan looks at every node.", "consolidation_type")
	timeouts.WithLabelValues("multi")
	timeouts.WithLabelValues("single")
	reg.MustRegister(timeouts, m.evaluation, m.eligible, m.decisions, m.decisionsByPool, m.failedValidations, m.queueFailures, m.terminatedFirst, m.moves, m.score, m.allowed, m.consuming)
	return m
}

// decided publishes how long a plan took, and how many nodes are eligible for
// disruption for each reason: those that the plan removes, and those that it
// keeps only because of budgets, because their pods fit nowhere else, or
// because nothing is saved.
func (m *Metrics) decided(plan *model.Plan, took time.Duration) {
	for _, l := range [][2]string{
		{lower(model.Unhealthy), ""}, {lower(model.Empty), "empty"}, {lower(model.Drifted), ""}, {lower(model.Underutilized), "multi"}, {lower(model.Underutilized), "single"},
	} {
		m.evaluation.WithLabelValues(l[0], l[1]).Observe(took.Seconds())
	}
	eligible := map[model.Reason]int{model.Empty: 0, model.Drifted: 0, model.Underutilized: 0, model.Unhealthy: 0}
	for i := range plan.Commands {
		eligible[plan.Commands[i].Reason] += len(plan.Commands[i].Nodes)
	}
	for _, s := range plan.Stays {
		switch s.Cause {
		case model.ByBudget, model.ByPlace, model.ByPrice, model.Unexamined:
			eligible[s.Reason]++
		}
	}
	for reason, n := range eligible {
		m.eligible.WithLabelValues(lower(reason)).Set(float64(n))
	}
}

// forget drops the gauges of a pool that is gone.
func (m *Metrics) forget(pool string) {
	m.allowed.DeletePartialMatch(prometheus.Labels{"nodepool": pool})
	m.consuming.DeletePartialMatch(prometheus.Labels{"nodepool": pool})
}
