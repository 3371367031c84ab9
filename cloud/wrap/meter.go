// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// Metrics counts and times the calls of providers.
type Metrics struct {
	duration *prometheus.HistogramVec
	errors   *prometheus.CounterVec
}

// NewMetrics registers karpenter_cloudprovider_duration_seconds and
// karpenter_cloudprovider_errors_total.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter",
			Subsystem: "cloudprovider",
			Name:      "duration_seconds",
			Help:      "Duration of cloud provider method calls. Labeled by the controller, method name and provider.",
		}, []string{"controller", "method", "provider"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "karpenter",
			Subsystem: "cloudprovider",
			Name:      "errors_total",
			Help:      "Total number of errors returned from cloud provider calls. Labeled by the controller, method name, provider, node pool and kind of error.",
		}, []string{"controller", "method", "provider", "nodepool", "error"}),
	}
	reg.MustRegister(m.duration, m.errors)
	return m
}

// Meter returns the provider with its calls counted under the name of the
// controller that makes them. Each controller gets its own; all share m.
func Meter(p cloud.Provider, m *Metrics, clk clock.PassiveClock, controller string) cloud.Provider {
	return &meter{inner: p, metrics: m, clock: clk, controller: controller}
}

type meter struct {
	inner      cloud.Provider
	metrics    *Metrics
	clock      clock.PassiveClock
	controller string
}

// done records a call about the pool, "" if it is about none, that began at start
// and ended with err.
func (m *meter) done(method, pool string, start time.Time, err error) {
	m.metrics.duration.WithLabelValues(m.controller, method, m.inner.Name()).Observe(m.clock.Since(start).Seconds())
	if err != nil {
		m.metrics.errors.WithLabelValues(m.controller, method, m.inner.Name(), pool, kindOf(err)).Inc()
	}
}

// kindOf is the error label: the kinds that change what happens next, or
// "unknown".
func kindOf(err error) string {
	switch {
	case cloud.IsNotFound(err):
		return "NodeClaimNotFoundError"
	case cloud.IsNodeClassNotReady(err):
		return "NodeClassNotReadyError"
	case cloud.IsInsufficientCapacity(err):
		return "InsufficientCapacityError"
	case cloud.IsRebootNotImplemented(err):
		return "NodeRebootNotImplementedError"
	case cloud.IsRebootFailed(err):
		return "NodeRebootFailedError"
	}
	return "unknown"
}

// timed makes a call that has an answer.
func timed[T any](m *meter, method, pool string, call func() (T, error)) (T, error) {
	start := m.clock.Now()
	out, err := call()
	m.done(method, pool, start, err)
	return out, err
}

func (m *meter) Name() string                           { return m.inner.Name() }
func (m *meter) NodeClasses() []schema.GroupVersionKind { return m.inner.NodeClasses() }
func (m *meter) RepairPolicies() []cloud.RepairPolicy   { return m.inner.RepairPolicies() }

func (m *meter) Create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	return timed(m, "Create", poolOf(claim), func() (*cloud.Machine, error) { return m.inner.Create(ctx, claim) })
}

func (m *meter) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	start := m.clock.Now()
	err := m.inner.Delete(ctx, claim)
	m.done("Delete", poolOf(claim), start, err)
	return err
}

// Reboot implements cloud.Rebooter.
func (m *meter) Reboot(ctx context.Context, claim *v1.NodeClaim, operationID string) error {
	start := m.clock.Now()
	err := cloud.Reboot(ctx, m.inner, claim, operationID)
	m.done("Reboot", poolOf(claim), start, err)
	return err
}

func poolOf(claim *v1.NodeClaim) string { return claim.Labels[v1.NodePoolLabelKey] }

func (m *meter) Get(ctx context.Context, providerID string) (*cloud.Machine, error) {
	return timed(m, "Get", "", func() (*cloud.Machine, error) { return m.inner.Get(ctx, providerID) })
}

func (m *meter) List(ctx context.Context) ([]*cloud.Machine, error) {
	return timed(m, "List", "", func() ([]*cloud.Machine, error) { return m.inner.List(ctx) })
}

func (m *meter) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloud.InstanceType, error) {
	return timed(m, "GetInstanceTypes", pool.Name, func() ([]*cloud.InstanceType, error) { return m.inner.InstanceTypes(ctx, pool) })
}

func (m *meter) IsDrifted(ctx context.Context, claim *v1.NodeClaim) (string, error) {
	return timed(m, "IsDrifted", poolOf(claim), func() (string, error) { return m.inner.IsDrifted(ctx, claim) })
}
