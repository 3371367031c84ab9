// SPDX-License-Identifier: Apache-2.0

package instance

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what EC2 rejected.
type Metrics struct {
	launchFailures *prometheus.CounterVec
	endFailures    *prometheus.CounterVec
}

// NewMetrics registers karpenter_cloudprovider_instance_launch_failures_total and
// karpenter_cloudprovider_instance_termination_failures_total.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "karpenter", Subsystem: "cloudprovider", Name: name, Help: help,
		}, labels)
		reg.MustRegister(c)
		return c
	}
	return &Metrics{
		launchFailures: counter("instance_launch_failures_total",
			"Number of errors in answers to launches. Labeled by zone, zone ID, capacity type and reason.",
			"zone", "zone_id", "capacity_type", "reason"),
		endFailures: counter("instance_termination_failures_total",
			"Number of instances that could not be terminated when they were to be. Labeled by zone and zone ID.",
			"zone", "zone_id"),
	}
}

func (m *Metrics) endFailed(i *Instance) { m.endFailures.WithLabelValues(i.Zone, i.ZoneID).Inc() }
