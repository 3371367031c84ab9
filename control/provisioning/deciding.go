// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// deciding publishes metrics about the decision in progress. Safe for
// concurrent use.
type deciding struct {
	depth, unfinished *prometheus.Desc

	mu    sync.Mutex
	id    string // "" = none is being made
	pods  int
	since func() time.Duration
}

func newDeciding() *deciding {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("karpenter", "scheduler", name), help, []string{"controller", "scheduling_id"}, nil)
	}
	return &deciding{
		depth:      desc("queue_depth", "Number of pods being decided about, while they are."),
		unfinished: desc("unfinished_work_seconds", "How long the decision that is being made has taken so far."),
	}
}

// begin records a decision about this number of pods, and how long it has been
// running.
func (d *deciding) begin(pods int, since func() time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.id, d.pods, d.since = string(uuid.NewUUID()), pods, since
}

// end records that the decision is made.
func (d *deciding) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.id = ""
}

// Describe implements prometheus.Collector.
func (d *deciding) Describe(out chan<- *prometheus.Desc) {
	out <- d.depth
	out <- d.unfinished
}

// Collect implements prometheus.Collector.
func (d *deciding) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.id == "" {
		return
	}
	out <- prometheus.MustNewConstMetric(d.depth, prometheus.GaugeValue, float64(d.pods), controllerName, d.id)
	out <- prometheus.MustNewConstMetric(d.unfinished, prometheus.GaugeValue, d.since().Seconds(), controllerName, d.id)
}
