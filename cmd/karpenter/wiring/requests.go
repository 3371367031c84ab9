// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/control/provisioning"
	"karpenter/control/provisioningrequest"
	"karpenter/kube/manager"
	"karpenter/model"
)

// requests adds the controller that launches capacity for ProvisioningRequests, if
// --provisioning-requests is set. Then nothing is planned before all of them are
// known.
func (w *wiring) requests(p *provisioning.Provisioner) error {
	if !w.config.ProvisioningRequests {
		return nil
	}
	const workers = 10
	r := &provisioningrequest.Reconciler{
		Client: w.mgr.GetClient(), World: w.world, Convert: w.convert, Clock: w.clock, Limits: w.config.CapacityBufferNamespaceLimits,
	}
	synced, done := w.synced, p.Done
	w.synced = func() bool { return synced() && r.Hydrated() }
	p.Ready = w.synced
	p.Done = func(s *model.Snapshot, plan *model.Plan) {
		if done != nil {
			done(s, plan)
		}
		r.Planned(s, plan)
	}
	qps, burst := manager.Bucket(workers, workers, workers)
	return r.Register(w.mgr, controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             manager.Limiter[reconcile.Request](manager.Backoff{First: 100 * time.Millisecond, Most: time.Minute}, qps, burst),
	})
}
