// SPDX-License-Identifier: Apache-2.0

package interruption

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts messages and unhealthy instances.
type Metrics struct {
	received  *prometheus.CounterVec
	deleted   prometheus.Counter
	latency   prometheus.Histogram
	unhealthy *prometheus.CounterVec
}

// NewMetrics registers the metrics karpenter_interruption_*. The buckets, in
// seconds, are of the time from an event to its end.
func NewMetrics(reg prometheus.Registerer, buckets []float64) *Metrics {
	const namespace, subsystem = "karpenter", "interruption"
	m := &Metrics{
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "received_messages_total",
			Help: "Number of messages received from the interruption queue, by what they say.",
		}, []string{"message_type"}),
		deleted: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "deleted_messages_total",
			Help: "Number of messages deleted from the interruption queue.",
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "message_queue_duration_seconds",
			Help: "Time from an event until its message was dealt with.", Buckets: buckets,
		}),
		unhealthy: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "instance_status_unhealthy_total",
			Help: "Number of times that instances were found unhealthy, by what said so. Each counts once while it lasts.",
		}, []string{"category"}),
	}
	reg.MustRegister(m.received, m.deleted, m.latency, m.unhealthy)
	for _, kind := range []Kind{SpotInterrupted, RebalanceRecommendation, ScheduledChange, InstanceStopped, InstanceTerminated, ReservationInterrupted, NoOp} {
		m.received.WithLabelValues(string(kind)) // from 0 on, or no one would see the first messages as an increase
	}
	return m
}
