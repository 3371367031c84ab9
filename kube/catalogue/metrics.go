// SPDX-License-Identifier: Apache-2.0

package catalogue

import "github.com/prometheus/client_golang/prometheus"

// Failures registers the counter of NodePools whose types could not be read,
// and returns the function that counts them, for Catalogue.Failed.
func Failures(reg prometheus.Registerer) func(pool string) {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "karpenter", Subsystem: "nodepools", Name: "cost_tracker_errors_total",
		Help: "Number of failures to look up the instance types of a node pool, and with them the prices of its nodes.",
	}, []string{"nodepool"})
	reg.MustRegister(failures)
	return func(pool string) { failures.WithLabelValues(pool).Inc() }
}
