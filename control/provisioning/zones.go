// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"karpenter/model"
)

// What stands for a zone where pods may run in several, or in none.
const (
	anyZone = "flexible"
	noZone  = "none"
)

// zones publishes the number of pods in the latest decision, by the zone in
// which they can run. Safe for concurrent use.
type zones struct {
	desc *prometheus.Desc

	mu   sync.Mutex
	pods map[string]int
}

func newZones() *zones {
	return &zones{desc: prometheus.NewDesc(prometheus.BuildFQName("karpenter", "scheduler", "pending_pods_by_effective_zone_count"),
		"Number of pending pods by the one zone that they and their volumes ask for, flexible where there are several, none where there is none. "+
			"Rules between pods are not looked at.", []string{"controller", "zone"}, nil)}
}

// set records the Snapshot of the latest decision.
func (z *zones) set(s *model.Snapshot) {
	pods := effectiveZones(s)
	z.mu.Lock()
	defer z.mu.Unlock()
	z.pods = pods
}

// Describe implements prometheus.Collector.
func (z *zones) Describe(out chan<- *prometheus.Desc) { out <- z.desc }

// Collect implements prometheus.Collector.
func (z *zones) Collect(out chan<- prometheus.Metric) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for zone, n := range z.pods {
		out <- prometheus.MustNewConstMetric(z.desc, prometheus.GaugeValue, float64(n), controllerName, zone)
	}
}

// effectiveZones counts the pending pods that exist.
func effectiveZones(s *model.Snapshot) map[string]int {
	known := sync.OnceValue(func() map[string]bool { return offered(s.Pools) })
	out := map[string]int{}
	for _, pending := range s.Pending {
		n := 0
		for _, p := range pending.Pods {
			if exists(p) {
				n++
			}
		}
		if n > 0 {
			out[zoneOf(pending.Shape, known)] += n
		}
	}
	return out
}

// zoneOf returns the zone that pods of the shape demand. It calls known for the
// existing zones if the pods only exclude some.
func zoneOf(shape *model.Shape, known func() map[string]bool) string {
	allowed := map[string]bool{}
	for _, way := range shape.Alternatives() {
		r, asked := way.Get(model.LabelZone)
		if !asked {
			return anyZone
		}
		some := r.Values
		if r.Complement {
			some = nil
			for zone := range known() {
				some = append(some, zone)
			}
		}
		for _, zone := range some {
			if r.Has(zone) {
				allowed[zone] = true
			}
		}
	}
	switch len(allowed) {
	case 0:
		return noZone
	case 1:
		for zone := range allowed {
			return zone
		}
	}
	return anyZone
}

// offered returns the zones that have an offering, even if it is out of
// capacity.
func offered(pools []model.Pool) map[string]bool {
	out := map[string]bool{}
	for _, p := range pools {
		for _, t := range p.Types {
			for _, o := range t.Offerings {
				out[o.Zone] = true
			}
		}
	}
	return out
}
