// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
)

// Metrics counts the outcomes of claims.
type Metrics struct {
	nodesCreated        *prometheus.CounterVec
	terminated          *prometheus.CounterVec
	termination         *prometheus.HistogramVec
	instanceTermination *prometheus.HistogramVec
}

// NewMetrics returns the metrics, registered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		nodesCreated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "karpenter", Subsystem: "nodes", Name: "created_total",
			Help: "Number of nodes registered.",
		}, []string{"nodepool", "zone"}),
		terminated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "karpenter", Subsystem: "nodeclaims", Name: "terminated_total",
			Help: "Number of node claims terminated.",
		}, []string{"nodepool", "capacity_type", "zone"}),
		termination: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: "nodeclaims", Name: "termination_duration_seconds",
			Help:    "Time from the deletion of a node claim until it was gone.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}, []string{"nodepool"}),
		instanceTermination: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: "nodeclaims", Name: "instance_termination_duration_seconds",
			Help:    "Time from the request to terminate an instance until it was gone.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 11),
		}, []string{"nodepool"}),
	}
	reg.MustRegister(m.nodesCreated, m.terminated, m.termination, m.instanceTermination)
	return m
}

func (m *Metrics) nodeCreated(claim *v1.NodeClaim) {
	m.nodesCreated.WithLabelValues(claim.Labels[v1.NodePoolLabelKey], claim.Labels[corev1.LabelTopologyZone]).Inc()
}

// machineGone observes how long the instance took to terminate.
func (m *Metrics) machineGone(claim *v1.NodeClaim, took time.Duration) {
	m.instanceTermination.WithLabelValues(claim.Labels[v1.NodePoolLabelKey]).Observe(took.Seconds())
}

// claimTerminated counts the claim and observes how long it took to end.
func (m *Metrics) claimTerminated(claim *v1.NodeClaim, took time.Duration) {
	pool := claim.Labels[v1.NodePoolLabelKey]
	m.terminated.WithLabelValues(pool, claim.Labels[v1.CapacityTypeLabelKey], claim.Labels[corev1.LabelTopologyZone]).Inc()
	m.termination.WithLabelValues(pool).Observe(took.Seconds())
}
