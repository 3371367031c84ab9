package wiring

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/control/repair"
	"karpenter/kube/manager"
)

// repairs adds the controller that replaces unhealthy nodes, if that is on.
func (w *wiring) repairs() error {
	if !w.config.Gates.NodeRepair {
		return nil
	}
	const qps, burst = 10, 100
	return (&repair.Reconciler{
		Client: w.mgr.GetClient(), Provider: w.provider, Clock: w.clock, Recorder: w.recorder,
		Metrics: repair.NewMetrics(w.Registry), Disruptions: w.counters,
	}).Register(w.mgr, controller.Options{
		MaxConcurrentReconciles: w.parallel(10, 1000),
		RateLimiter: manager.Limiter[reconcile.Request](
			manager.Backoff{First: 100 * time.Millisecond, Most: time.Minute}, qps, burst),
	})
}
