// SPDX-License-Identifier: Apache-2.0

package drift

import "github.com/prometheus/client_golang/prometheus"

// Metrics publishes the progress of rollouts.
type Metrics struct {
	drifted, halted *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "karpenter", Subsystem: "nodepools", Name: name, Help: help}, []string{"nodepool"})
	}
	m := &Metrics{
		drifted: gauge("drifted_nodes", "Number of nodes of a node pool that no longer match it."),
		halted:  gauge("rollout_halted", "1 while the replacement of nodes by the node pool is halted because its instances do not become nodes, else 0."),
	}
	reg.MustRegister(m.drifted, m.halted)
	return m
}

func (m *Metrics) show(pool string, t tally, halted bool) {
	m.drifted.WithLabelValues(pool).Set(float64(t.left))
	value := 0.0
	if halted {
		value = 1
	}
	m.halted.WithLabelValues(pool).Set(value)
}

// forget drops the gauges of a pool that is gone.
func (m *Metrics) forget(pool string) {
	m.drifted.DeleteLabelValues(pool)
	m.halted.DeleteLabelValues(pool)
}
