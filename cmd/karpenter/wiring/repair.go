// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/cloud/health"
	"karpenter/control/repair"
	"karpenter/kube/manager"
)

// policies returns the provider's repair policies, nil unless unhealthy nodes are
// repaired by the disruption loop.
func (w *wiring) policies() (*health.Policies, error) {
	if !w.config.Gates.NodeRepair || w.config.LegacyNodeRepair {
		return nil, nil
	}
	policies, err := health.New(w.provider.RepairPolicies())
	if err != nil {
		return nil, fmt.Errorf("feature gate NodeRepair: repair policies of provider %s: %w", w.provider.Name(), err)
	}
	return policies, nil
}

// repairs adds the controller for node repair as before 1.15, if
// --legacy-node-repair is set.
func (w *wiring) repairs() error {
	if !w.config.Gates.NodeRepair || !w.config.LegacyNodeRepair {
		return nil
	}
	const qps, burst = 10, 100
	return (&repair.Reconciler{
		Client: w.mgr.GetClient(), Provider: w.provider, Clock: w.clock, Recorder: w.recorder,
		Metrics: w.unhealthy, Disruptions: w.counters,
	}).Register(w.mgr, controller.Options{
		MaxConcurrentReconciles: w.parallel(10, 1000),
		RateLimiter: manager.Limiter[reconcile.Request](
			manager.Backoff{First: 100 * time.Millisecond, Most: time.Minute}, qps, burst),
	})
}
