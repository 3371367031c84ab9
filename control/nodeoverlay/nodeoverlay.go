// SPDX-License-Identifier: Apache-2.0

package nodeoverlay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/cloud"
	"karpenter/cloud/overlay"
	"karpenter/kube/optional"
)

const (
	// Period is the time between two periodic evaluations.
	Period = 6 * time.Hour
)

// Store receives the outcome.
type Store interface {
	// Swap replaces the outcome and reports whether that changes anything.
	Swap(*overlay.Set) bool
}

// Reconciler is the controller nodeoverlay.controller. It must run one
// evaluation at a time. All fields are required.
type Reconciler struct {
	Client   client.Client
	Provider cloud.Provider // whose types are not overlaid
	Store    Store
	Labels   v1.Labels // what core and provider know about label keys
	Clock    clock.PassiveClock
	// Changed is called after an evaluation that changed something. It must
	// not block.
	Changed func()
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	options.MaxConcurrentReconciles = 1
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}}
	})
	edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	b := builder.ControllerManagedBy(mgr).
		Named("nodeoverlay.controller").
		WatchesRawSource(optional.Source(mgr.GetCache(), &v1alpha1.NodeOverlay{}, all, predicate.GenerationChangedPredicate{})).
		Watches(&v1.NodePool{}, all, edited).
		WithOptions(options)
	for _, gvk := range r.Provider.NodeClasses() {
		class, err := r.Client.Scheme().New(gvk)
		if err != nil {
			return fmt.Errorf("node class %s: %w", gvk, err)
		}
		object, ok := class.(client.Object)
		if !ok {
			return fmt.Errorf("node class %s: it is not an API object", gvk)
		}
		b.Watches(object, all, edited)
	}
	return b.Complete(r)
}

// Reconcile evaluates all overlays for all pools. Pools whose types cannot be
// read are left out, and tried again.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	overlays := &v1alpha1.NodeOverlayList{}
	if err := r.Client.List(ctx, overlays); errors.Is(err, optional.ErrUnread) {
		log.FromContext(ctx).Error(err, "planning without node overlays until it can read them")
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("list node overlays: %w", err)
	}
	subjects, failed, err := r.subjects(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	verdicts, set := overlay.Evaluate(overlays.Items, subjects, r.Labels)
	outdated, err := r.tell(ctx, overlays.Items, verdicts)
	if outdated {
		return reconcile.Result{Requeue: true}, nil
	}
	if r.Store.Swap(set) {
		report(ctx, verdicts, len(subjects), len(failed))
		r.Changed()
	}
	if err := errors.Join(append(failed, err)...); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: Period}, nil
}

// subjects returns the pools with their types, and what went wrong for those
// that are left out.
func (r *Reconciler) subjects(ctx context.Context) (subjects []overlay.Subject, failed []error, err error) {
	pools := &v1.NodePoolList{}
	if err := r.Client.List(ctx, pools); err != nil {
		return nil, nil, fmt.Errorf("list node pools: %w", err)
	}
	for i := range pools.Items {
		pool := &pools.Items[i]
		if !cloud.Manages(r.Provider, pool.Spec.Template.Spec.NodeClassRef) {
			continue
		}
		types, err := r.Provider.InstanceTypes(ctx, pool)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("instance types of node pool %s: %w", pool.Name, err))
			continue
		}
		subjects = append(subjects, overlay.Subject{Pool: pool, Types: types})
	}
	return subjects, failed, nil
}

// tell writes the verdicts, given in the order of the overlays, into their
// status. It reports whether an overlay has changed since it was read or is
// gone, so that the evaluation is outdated.
func (r *Reconciler) tell(ctx context.Context, overlays []v1alpha1.NodeOverlay, verdicts []overlay.Verdict) (outdated bool, err error) {
	var errs []error
	for i := range overlays {
		o := &overlays[i]
		stored := o.DeepCopy()
		set := o.StatusConditions(r.Clock.Now())
		if v := verdicts[i]; v.Reason != "" {
			set.SetFalse(v1alpha1.ValidationSucceededCondition, v.Reason, v.Message)
		} else {
			set.SetTrue(v1alpha1.ValidationSucceededCondition)
		}
		if equality.Semantic.DeepEqual(stored.Status, o.Status) {
			continue
		}
		err := r.Client.Status().Patch(ctx, o, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			outdated = true
		case err != nil:
			errs = append(errs, fmt.Errorf("write status of node overlay %s: %w", o.Name, err))
		}
	}
	return outdated, errors.Join(errs...)
}

// report logs what came of an evaluation.
func report(ctx context.Context, verdicts []overlay.Verdict, evaluated, failed int) {
	refused := 0
	for _, v := range verdicts {
		if v.Reason != "" {
			refused++
		}
		if v.Idle && failed == 0 {
			log.FromContext(ctx).Info("node overlay is valid, but no instance type of any node pool agrees with its requirements", "NodeOverlay", v.Overlay)
		}
	}
	log.FromContext(ctx).Info("evaluated node overlays", "overlays", len(verdicts), "refused", refused, "pools", evaluated, "failed-pools", failed)
}
