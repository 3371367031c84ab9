// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"karpenter/world"
)

// metrics reads the state of the Feed at each scrape. It has no state of its
// own.
type metrics struct {
	feed  *Feed
	world *world.World
	clock clock.PassiveClock
	since time.Time

	synced, unsyncedTime, nodes   *prometheus.Desc
	planned, asPlanned, elsewhere *prometheus.Desc
	cost, parts                   *prometheus.Desc
}

// RegisterMetrics publishes whether the feed is synced and how many objects the
// world holds. The time until the feed is synced counts from now.
func (f *Feed) RegisterMetrics(reg prometheus.Registerer, w *world.World, clk clock.PassiveClock) {
	name := func(s string) string { return prometheus.BuildFQName("karpenter", "cluster_state", s) }
	ofPods := func(s, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("karpenter", "pods", s), help, nil, nil)
	}
	reg.MustRegister(&metrics{
		feed: f, world: w, clock: clk, since: clk.Now(),
		synced:       prometheus.NewDesc(name("synced"), "1 when everything that existed at the start is known, else 0.", nil, nil),
		unsyncedTime: prometheus.NewDesc(name("unsynced_time_seconds"), "For how long the state has not been synced.", nil, nil),
		nodes:        prometheus.NewDesc(name("node_count"), "Number of nodes and node claims known, those that belong together counted once.", nil, nil),
		planned:      ofPods("planned_total", "Number of times a pod was given a node it was not planned on before."),
		asPlanned:    ofPods("bound_as_planned_total", "Number of pods with a plan that were bound to the node of their plan."),
		elsewhere:    ofPods("bound_elsewhere_total", "Number of pods with a plan that were bound to another node."),
		cost: prometheus.NewDesc(prometheus.BuildFQName("karpenter", "nodepools", "cost_total"),
			"Sum of the prices of the pool's nodes, in dollars per hour.", []string{"nodepool"}, nil),
		parts: prometheus.NewDesc(prometheus.BuildFQName("karpenter", "nodepools", "cost_parts"),
			"What the sum of the prices of the pool's nodes is made of, in dollars per hour, if their instances are not all: the instances, volumes, addresses and additional prices.",
			[]string{"nodepool", "part"}, nil),
	})
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.synced, m.unsyncedTime, m.nodes, m.planned, m.asPlanned, m.elsewhere, m.cost, m.parts} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	synced, unsynced := 1.0, 0.0
	if !m.feed.HasSynced() {
		synced, unsynced = 0, m.clock.Since(m.since).Seconds()
	}
	out <- prometheus.MustNewConstMetric(m.synced, prometheus.GaugeValue, synced)
	out <- prometheus.MustNewConstMetric(m.unsyncedTime, prometheus.GaugeValue, unsynced)
	out <- prometheus.MustNewConstMetric(m.nodes, prometheus.GaugeValue, float64(m.world.Machines()))
	count := m.world.Adherence()
	out <- prometheus.MustNewConstMetric(m.planned, prometheus.CounterValue, float64(count.Planned))
	out <- prometheus.MustNewConstMetric(m.asPlanned, prometheus.CounterValue, float64(count.AsPlanned))
	out <- prometheus.MustNewConstMetric(m.elsewhere, prometheus.CounterValue, float64(count.Elsewhere))
	for pool, price := range m.world.Costs() {
		out <- prometheus.MustNewConstMetric(m.cost, prometheus.GaugeValue, price.Dollars(), pool)
	}
	for pool, parts := range m.world.CostParts() {
		for part, price := range parts {
			out <- prometheus.MustNewConstMetric(m.parts, prometheus.GaugeValue, price.Dollars(), pool, part)
		}
	}
}
