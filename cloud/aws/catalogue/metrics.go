// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/loop"
	"karpenter/model"
)

const (
	namespace = "karpenter"
	subsystem = "cloudprovider"
)

// Metrics publishes how many types and offerings of EC2's answers are doubted.
type Metrics struct{ doubts *prometheus.GaugeVec }

// NewMetrics registers karpenter_cloudprovider_instance_types_doubted.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "instance_types_doubted",
		Help: "Number of instance types or offerings that were missing from EC2's last answer and are kept until three answers agree. Labeled by type or offering.",
	}, []string{"of"})}
	reg.MustRegister(m.doubts)
	return m
}

func (m *Metrics) doubted(types, offerings int) {
	m.doubts.WithLabelValues("type").Set(float64(types))
	m.doubts.WithLabelValues("offering").Set(float64(offerings))
}

// ReportPeriod is the time between two reports about the offerings of
// NodePools.
const ReportPeriod = time.Minute

// Report publishes metrics of types and offerings: their resources, whether any
// NodePool can launch them, and their prices. All fields are required.
type Report struct {
	Catalogue *Catalogue
	Provider  cloud.Provider
	Reader    client.Reader // of NodePools
	Reserved  bool          // the gate ReservedCapacity is on

	mu    sync.Mutex
	lines []prometheus.Metric
}

type offeringKey struct{ instanceType, capacityType, zone string }

type quote struct {
	available bool
	price     model.Price
}

// Register adds the controller cloudprovider.metrics to the manager, and the
// metrics to the registry.
func (r *Report) Register(mgr manager.Manager, reg prometheus.Registerer) error {
	if err := reg.Register(r); err != nil {
		return fmt.Errorf("metrics of instance types: %w", err)
	}
	return loop.Every(mgr, "cloudprovider.metrics", ReportPeriod, r.Refresh)
}

// Refresh reads the offerings of all NodePools. Pools whose types can't be read
// are left out, and logged.
func (r *Report) Refresh(ctx context.Context) error {
	pools := &v1.NodePoolList{}
	if err := r.Reader.List(ctx, pools); err != nil {
		return fmt.Errorf("list node pools: %w", err)
	}
	quotes := map[offeringKey]quote{}
	seen := map[*cloud.InstanceType]bool{}
	for i := range pools.Items {
		pool := &pools.Items[i]
		if !cloud.Manages(r.Provider, pool.Spec.Template.Spec.NodeClassRef) {
			continue
		}
		types, err := r.Provider.InstanceTypes(ctx, pool)
		if err != nil {
			log.FromContext(ctx).V(1).Info("leaving a node pool out of the metrics of instance types", "NodePool", pool.Name, "reason", err.Error())
			continue
		}
		for _, t := range types {
			if !seen[t] {
				seen[t] = true
				r.quote(quotes, t)
			}
		}
	}
	lines := r.render(quotes)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = lines
	return nil
}

// quote enters a type's offerings.
func (r *Report) quote(quotes map[offeringKey]quote, t *cloud.InstanceType) {
	for i := range t.Offerings {
		o := &t.Offerings[i]
		key := offeringKey{t.Name, o.CapacityType(), o.Zone()}
		quotes[key] = best(quotes[key], quote{o.Available, o.Price})
		if r.Reserved {
			key.capacityType = v1.CapacityTypeReserved
			quotes[key] = best(quotes[key], quote{})
		}
	}
}

// best returns the better of two offerings: available before unavailable, then
// the lower price. 0 is no price.
func best(a, b quote) quote {
	switch {
	case a.available != b.available && b.available,
		a.available == b.available && b.price > 0 && (a.price == 0 || b.price < a.price):
		return b
	}
	return a
}

// descriptions are the metrics by what they are about.
func descriptions() (cpu, memory, available, price *prometheus.Desc) {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, subsystem, name), help, labels, nil)
	}
	return of("instance_type_cpu_cores", "VCPU cores of an instance type.", "instance_type"),
		of("instance_type_memory_bytes", "Memory of an instance type as advertised, in bytes.", "instance_type"),
		of("instance_type_offering_available", "Whether any node pool can launch the instance type with this zone and capacity type.", "instance_type", "capacity_type", "zone"),
		of("instance_type_offering_price_estimate", "Price per hour of the instance type in the zone, with the capacity type.", "instance_type", "capacity_type", "zone")
}

func (r *Report) render(quotes map[offeringKey]quote) []prometheus.Metric {
	cpu, memory, available, price := descriptions()
	var out []prometheus.Metric
	gauge := func(of *prometheus.Desc, value float64, labels ...string) {
		out = append(out, prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...))
	}
	for _, f := range r.Catalogue.Facts() {
		gauge(cpu, float64(f.VCpuInfo.DefaultVCpus), f.InstanceType)
		gauge(memory, float64(f.MemoryInfo.SizeInMiB<<20), f.InstanceType)
	}
	for key, q := range quotes {
		is := 0.0
		if q.available {
			is = 1
		}
		gauge(available, is, key.instanceType, key.capacityType, key.zone)
		if q.price > 0 {
			gauge(price, q.price.Dollars(), key.instanceType, key.capacityType, key.zone)
		}
	}
	return out
}

// Describe names the metrics for package prometheus.
func (r *Report) Describe(out chan<- *prometheus.Desc) {
	cpu, memory, available, price := descriptions()
	for _, d := range []*prometheus.Desc{cpu, memory, available, price} {
		out <- d
	}
}

// Collect hands out the metrics as they were at the last Refresh.
func (r *Report) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	lines := r.lines
	r.mu.Unlock()
	for _, line := range lines {
		out <- line
	}
}
