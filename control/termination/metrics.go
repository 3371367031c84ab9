// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts drained pods and nodes, and terminated nodes.
type Metrics struct {
	evictionRequests    *prometheus.CounterVec
	podsDrained         *prometheus.CounterVec
	nodesDrained        *prometheus.CounterVec
	nodesTerminated     *prometheus.CounterVec
	terminationDuration *prometheus.SummaryVec
	lifetime            *prometheus.HistogramVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "karpenter", Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	m := &Metrics{
		evictionRequests: counter("pods", "eviction_requests_total", "Number of answers to eviction requests, by HTTP status.", "code"),
		podsDrained:      counter("pods", "drained_total", "Number of pods drained from nodes, by the reason their node is removed.", "reason"),
		nodesDrained:     counter("nodes", "drained_total", "Number of nodes drained.", "nodepool"),
		nodesTerminated:  counter("nodes", "terminated_total", "Number of nodes terminated.", "nodepool", "zone"),
		terminationDuration: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Namespace: "karpenter", Subsystem: "nodes", Name: "termination_duration_seconds",
			Help:       "Time from the deletion of a node to the removal of its finalizer.",
			Objectives: map[float64]float64{0: 0.01, 0.5: 0.01, 0.9: 0.01, 0.99: 0.01, 1: 0.01},
		}, []string{"nodepool"}),
		lifetime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: "nodes", Name: "lifetime_duration_seconds",
			Help:    "Time from the creation of a node to the removal of its finalizer.",
			Buckets: lifetimeBuckets(),
		}, []string{"nodepool"}),
	}
	reg.MustRegister(m.evictionRequests, m.podsDrained, m.nodesDrained, m.nodesTerminated, m.terminationDuration, m.lifetime)
	return m
}

func lifetimeBuckets() []float64 {
	var seconds []float64
	add := func(unit time.Duration, counts ...float64) {
		for _, n := range counts {
			seconds = append(seconds, n*unit.Seconds())
		}
	}
	const day = 24 * time.Hour
	add(time.Minute, 15, 30, 45)
	add(time.Hour, 1, 2, 4, 6, 8, 10, 12, 16, 20)
	add(day, 1, 2, 3, 5, 10, 15, 20, 25, 30)
	return seconds
}
