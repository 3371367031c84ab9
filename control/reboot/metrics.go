// SPDX-License-Identifier: Apache-2.0

package reboot

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How reboots end.
const (
	succeeded       = "succeeded"
	providerError   = "provider_error"
	recoveryTimeout = "recovery_timeout"
	invalidRequest  = "invalid_request"
)

// Metrics counts and times reboots.
type Metrics struct {
	reboots  *prometheus.CounterVec
	duration *prometheus.HistogramVec
	recovery prometheus.Histogram
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	const first, factor, buckets = 10, 2, 8
	options := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: "nodes", Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(first, factor, buckets),
		}
	}
	m := &Metrics{
		reboots: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "karpenter", Subsystem: "nodes", Name: "reboots_total", Help: "Number of reboots that ended, by result.",
		}, []string{"result"}),
		duration: prometheus.NewHistogramVec(options("reboot_duration_seconds", "Time from the request for a reboot to its end, by result."), []string{"result"}),
		recovery: prometheus.NewHistogram(options("reboot_recovery_duration_seconds", "Time from the call to the provider until the node was ready again.")),
	}
	reg.MustRegister(m.reboots, m.duration, m.recovery)
	return m
}

func (m *Metrics) ended(result string, took time.Duration) {
	m.reboots.WithLabelValues(result).Inc()
	m.duration.WithLabelValues(result).Observe(took.Seconds())
}
