// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// gathering is how long events of a pool's claims are gathered before the
// claims are tallied, so that a roll-out of thousands costs a tally every few
// seconds.
const gathering = 3 * time.Second

// Register adds the controller to the manager.
func (r *Rollout) Register(mgr manager.Manager, options controller.Options) error {
	managed := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return cloud.Manages(r.Provider, o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef)
	})
	return builder.ControllerManagedBy(mgr).
		Named("nodepool.rollout").
		For(&v1.NodePool{}, builder.WithPredicates(managed, predicate.Or(
			predicate.GenerationChangedPredicate{}, changed(v1.NodeRegistrationHealthyCondition),
		))).
		Watches(&v1.NodeClaim{}, r.gather(), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{},
			changed(v1.RegisteredCondition, v1.InitializedCondition, v1.DriftedCondition, v1.DisruptionReasonCondition),
		))).
		WithOptions(options).
		Complete(r)
}

// gather enqueues the pool of a claim after a delay. It records at once what
// has happened to the claim.
func (r *Rollout) gather() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(o client.Object, q queue) {
		if name := o.GetLabels()[v1.NodePoolLabelKey]; name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, gathering)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			claim := e.ObjectNew.(*v1.NodeClaim)
			_, was := isInitialized(e.ObjectOld.(*v1.NodeClaim))
			if _, is := isInitialized(claim); is && !was {
				r.failures.joined(claim)
			}
			if claim.DeletionTimestamp != nil {
				r.failures.gone(claim, claim.DeletionTimestamp.Time)
			}
			add(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			r.failures.gone(e.Object.(*v1.NodeClaim), r.Clock.Now())
			add(e.Object, q)
		},
	}
}

// changed admits updates that begin a deletion or change the status of one of
// the conditions.
func changed(conditionTypes ...string) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, okBefore := e.ObjectOld.(conditions.Reader)
			after, okAfter := e.ObjectNew.(conditions.Reader)
			if !okBefore || !okAfter {
				return false
			}
			if e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() {
				return true
			}
			for _, t := range conditionTypes {
				x, y := conditions.Get(before, t), conditions.Get(after, t)
				if (x == nil) != (y == nil) || x != nil && x.Status != y.Status {
					return true
				}
			}
			return false
		},
	}
}
