// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/cloud"
	"karpenter/cloud/overlay"
	"karpenter/cloud/wrap"
	"karpenter/control/nodeoverlay"
	"karpenter/control/provisioning"
	"karpenter/kube/manager"
)

// types returns the provider for plans, with NodeOverlays applied if their gate
// is on.
func (w *wiring) types() cloud.Provider {
	p := w.metered("provisioner")
	if w.overlays == nil {
		return p
	}
	return wrap.Overlay(p, w.overlays)
}

// overlaying adds the controller that evaluates NodeOverlays. Nothing is
// planned before the first evaluation, because NodePools have no instance types
// until then.
func (w *wiring) overlaying(p *provisioning.Provisioner) error {
	if w.overlays == nil {
		return nil
	}
	p.Ready = func() bool { return w.synced() && w.overlays.Evaluated() }
	return (&nodeoverlay.Reconciler{
		Client: w.mgr.GetClient(), Provider: w.metered("nodeoverlay.controller"), Store: w.overlays,
		Labels: w.convert.Labels, Clock: w.clock,
		Changed: func() { p.Trigger("nodeoverlay") },
	}).Register(w.mgr, controller.Options{
		RateLimiter: manager.Limiter[reconcile.Request](manager.Backoff{First: 100 * time.Millisecond, Most: time.Minute}, 10, 100),
	})
}

// newOverlays returns the store for the outcome of evaluations, or nil if the
// gate is off.
func newOverlays(on bool) *overlay.Store {
	if !on {
		return nil
	}
	return &overlay.Store{}
}
