// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
)

// Metrics shows what pools have and may have. Safe for concurrent use.
type Metrics struct {
	limit, usage *prometheus.Desc

	mu    sync.Mutex
	pools map[string]amounts
}

// amounts are those of one pool.
type amounts struct{ limits, used corev1.ResourceList }

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("karpenter", "nodepools", name), help, []string{"resource_type", "nodepool"}, nil)
	}
	m := &Metrics{
		limit: desc("limit", "Limit of a node pool for a resource, in the unit of the resource: cores, bytes or a number."),
		usage: desc("usage", "Amount of a resource that the nodes of a node pool have, in the unit of the resource: cores, bytes or a number."),
		pools: map[string]amounts{},
	}
	reg.MustRegister(m)
	return m
}

// count records the limits and the usage in the pool's status. It keeps the
// lists.
func (m *Metrics) count(pool *v1.NodePool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools[pool.Name] = amounts{corev1.ResourceList(pool.Spec.Limits), pool.Status.Resources}
}

// forget drops a pool that is deleted, or belongs to another provider.
func (m *Metrics) forget(pool string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pools, pool)
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.limit
	out <- m.usage
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	resourceType := strings.NewReplacer("-", "_")
	for pool, a := range m.pools {
		for desc, list := range map[*prometheus.Desc]corev1.ResourceList{m.limit: a.limits, m.usage: a.used} {
			for name, q := range list {
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, q.AsApproximateFloat64(),
					resourceType.Replace(strings.ToLower(string(name))), pool)
			}
		}
	}
}
