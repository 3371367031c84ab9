// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// dynamicResources is the label that says whether a pod uses ResourceClaims.
const dynamicResources = "dynamic_resources"

// podMetrics is what Pods publishes.
type podMetrics struct {
	decision, provisioningStartup, healthyBound prometheus.Histogram
	bound, provisioningBound                    *prometheus.HistogramVec
	startup                                     prometheus.Summary

	unbound, unstarted, provisioningUnbound, provisioningUnstarted, undecided *prometheus.Desc
}

func newPodMetrics() podMetrics {
	duration := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: "pods", Name: name, Help: help, Buckets: DurationBuckets(),
		})
	}
	byClaims := func(name, help string) *prometheus.HistogramVec {
		out := prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: "pods", Name: name, Help: help, Buckets: DurationBuckets(),
		}, []string{dynamicResources})
		out.WithLabelValues("false") // served from the start, with zero
		return out
	}
	age := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("karpenter", "pods", name), help, append([]string{"name", "namespace"}, more...), nil)
	}
	return podMetrics{
		decision:            duration("scheduling_decision_duration_seconds", "Time from when a pod is seen to need a node until the first decision about it."),
		bound:               byClaims("bound_duration_seconds", "Time from the creation of a pod until it is bound to a node."),
		provisioningBound:   byClaims("provisioning_bound_duration_seconds", "Time from the first plan that has a place for a pod until the pod is bound to a node."),
		provisioningStartup: duration("provisioning_startup_duration_seconds", "Time from the first plan that has a place for a pod until the pod is ready."),
		healthyBound: duration("provisioning_healthy_bound_duration_seconds",
			"Time from when a pod is first planned onto a node pool whose instances become nodes until the pod is bound to a node."),
		startup: prometheus.NewSummary(prometheus.SummaryOpts{
			Namespace: "karpenter", Subsystem: "pods", Name: "startup_duration_seconds",
			Help:       "Time from the creation of a pod until it is ready.",
			Objectives: map[float64]float64{0: 0.01, 0.5: 0.01, 0.9: 0.01, 0.99: 0.01, 1: 0.01},
		}),
		unbound:               age("unbound_time_seconds", "Time since the creation of a pod that is not bound to a node.", dynamicResources),
		unstarted:             age("unstarted_time_seconds", "Time since the creation of a pod that has not been ready."),
		provisioningUnbound:   age("provisioning_unbound_time_seconds", "Time since the first plan that had a place for a pod that is still not bound to a node.", dynamicResources),
		provisioningUnstarted: age("provisioning_unstarted_time_seconds", "Time since the first plan that had a place for a pod that is still not ready."),
		undecided:             age("provisioning_scheduling_undecided_time_seconds", "Time since a pod was seen to need a node about which nothing is decided."),
	}
}

func (m *podMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.decision, m.bound, m.provisioningBound, m.provisioningStartup, m.healthyBound, m.startup}
}

// Describe implements prometheus.Collector.
func (p *Pods) Describe(out chan<- *prometheus.Desc) {
	for _, c := range p.metrics.collectors() {
		c.Describe(out)
	}
	m := &p.metrics
	for _, d := range []*prometheus.Desc{m.unbound, m.unstarted, m.provisioningUnbound, m.provisioningUnstarted, m.undecided} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (p *Pods) Collect(out chan<- prometheus.Metric) {
	for _, c := range p.metrics.collectors() {
		c.Collect(out)
	}
	for _, gauge := range p.waiting() {
		out <- gauge
	}
}

// waiting returns how long the pods have waited that still do.
func (p *Pods) waiting() []prometheus.Metric {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leading.IsZero() {
		return nil
	}
	var out []prometheus.Metric
	now := p.clock.Now()
	add := func(d *prometheus.Desc, seconds float64, key types.NamespacedName, more ...string) {
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, seconds, append([]string{key.Name, key.Namespace}, more...)...))
	}
	known := func(t time.Time) bool { return !t.IsZero() }
	m := &p.metrics
	for key, w := range p.waits {
		add(m.unstarted, now.Sub(w.created).Seconds(), key)
		if known(w.placed) {
			add(m.provisioningUnstarted, p.from(w.placed, now), key)
		}
		if w.bound {
			continue
		}
		add(m.unbound, now.Sub(w.created).Seconds(), key, w.dynamic)
		if known(w.placed) {
			add(m.provisioningUnbound, p.from(w.placed, now), key, w.dynamic)
		}
		if known(w.seen) && !known(w.decided) {
			add(m.undecided, p.from(w.seen, now), key)
		}
	}
	return out
}
