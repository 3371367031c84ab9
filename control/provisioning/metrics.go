// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"github.com/prometheus/client_golang/prometheus"

	v1 "karpenter/api/v1"
	"karpenter/kube/meter"
	"karpenter/model"
)

const controllerName = "provisioner"

// Metrics shows what provisioning finds and does.
type Metrics struct {
	duration      prometheus.Observer
	deciding      *deciding
	zones         *zones
	unschedulable prometheus.Gauge
	ignored       prometheus.Gauge
	created       *prometheus.CounterVec

	cost, bound, gap prometheus.Gauge
	exhausted        prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "karpenter", Subsystem: "scheduler", Name: "scheduling_duration_seconds",
		Help: "Time it takes to decide where pods go.", Buckets: meter.DurationBuckets(),
	}, []string{"controller"})
	unschedulable := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "karpenter", Subsystem: "scheduler", Name: "unschedulable_pods_count",
		Help: "Number of pods that the latest decision could not schedule.",
	}, []string{"controller"})
	m := &Metrics{
		duration: duration.WithLabelValues(controllerName), deciding: newDeciding(), zones: newZones(),
		unschedulable: unschedulable.WithLabelValues(controllerName),
		ignored: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "karpenter", Subsystem: "scheduler", Name: "ignored_pods_count",
			Help: "Number of pods that the latest decision left out because they use something that is not supported.",
		}),
		created: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "karpenter", Subsystem: "nodeclaims", Name: "created_total",
			Help: "Number of node claims created.",
		}, []string{"reason", "nodepool", "min_values_relaxed"}),
		cost:  plan("cost_dollars_per_hour", "Price per hour of the new nodes in the latest plan that launches nodes."),
		bound: plan("bound_dollars_per_hour", "Lower bound for the latest plan that launches nodes: no plan for the same pods costs less."),
		gap:   plan("gap_ratio", "How far the latest plan that launches nodes may be from the cheapest one, as a fraction of its bound."),
	}
	m.exhausted = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "karpenter", Subsystem: "scheduler", Name: "plan_budget_exhausted_total",
		Help: "Number of plans that used up the work one decision may take, so that a cheaper plan or a tighter bound may exist.",
	})
	reg.MustRegister(duration, m.deciding, m.zones, unschedulable, m.ignored, m.created, m.cost, m.bound, m.gap, m.exhausted)
	return m
}

func plan(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "karpenter", Subsystem: "scheduler", Name: "plan_" + name, Help: help})
}

// Created counts a claim that was created: "provisioned", or the reason of a
// disruption in lower case.
func (m *Metrics) Created(claim *v1.NodeClaim, reason string) {
	m.created.WithLabelValues(reason, claim.Labels[v1.NodePoolLabelKey], claim.Annotations[v1.NodeClaimMinValuesRelaxedAnnotationKey]).Inc()
}

// planned shows what a plan costs.
func (m *Metrics) planned(plan *model.Plan) {
	if plan.Exhausted {
		m.exhausted.Inc()
	}
	if len(plan.Launches) == 0 {
		return
	}
	m.cost.Set(plan.Cost.Dollars())
	m.bound.Set(plan.Bound.Dollars())
	m.gap.Set(plan.Gap())
}

// stayed shows how many pods found no place.
func (m *Metrics) stayed(verdicts []model.Verdict) {
	var unschedulable, ignored int
	for _, v := range verdicts {
		for _, p := range v.Pods {
			switch {
			case !exists(p): // the status of its buffer reports it
			case len(v.Shape.Refused) > 0:
				ignored++
			default:
				unschedulable++
			}
		}
	}
	m.unschedulable.Set(float64(unschedulable))
	m.ignored.Set(float64(ignored))
}
