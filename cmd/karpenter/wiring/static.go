// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/control/provisioning"
	"karpenter/control/static"
	"karpenter/kube/manager"
)

// static adds the controllers that keep static pools at their number of nodes,
// if their gate is on.
func (w *wiring) static(p *provisioning.Provisioner) error {
	if !w.config.Gates.StaticCapacity {
		return nil
	}
	const workers = 10
	options := func() controller.Options {
		qps, burst := manager.Bucket(workers, workers, workers)
		return controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             manager.Limiter[reconcile.Request](manager.Backoff{First: 100 * time.Millisecond, Most: time.Minute}, qps, burst),
		}
	}
	up := &static.Provisioning{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), World: w.world, Convert: w.convert, Clock: w.clock,
		Ready: w.synced, Created: p.Metrics.Created, Parallel: w.creations(),
	}
	if err := up.Register(w.mgr, options()); err != nil {
		return err
	}
	down := &static.Deprovisioning{
		Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), World: w.world, Convert: w.convert, Clock: w.clock,
	}
	return down.Register(w.mgr, options())
}
