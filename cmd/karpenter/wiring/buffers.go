// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/control/capacitybuffer"
	"karpenter/control/provisioning"
	"karpenter/kube/manager"
)

// buffers adds the controller that keeps capacity for CapacityBuffers, if its
// gate is on. Then nothing is planned before all of them are known.
func (w *wiring) buffers(p *provisioning.Provisioner) error {
	if !w.config.Gates.CapacityBuffer {
		return nil
	}
	const workers = 10
	r := &capacitybuffer.Reconciler{
		Client: w.mgr.GetClient(), World: w.world, Convert: w.convert, Clock: w.clock, Limits: w.config.CapacityBufferNamespaceLimits,
	}
	fed := w.synced
	w.synced = func() bool { return fed() && r.Hydrated() }
	p.Ready, p.Done = w.synced, r.Planned
	qps, burst := manager.Bucket(workers, workers, workers)
	return r.Register(w.mgr, controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             manager.Limiter[reconcile.Request](manager.Backoff{First: 100 * time.Millisecond, Most: time.Minute}, qps, burst),
	})
}
