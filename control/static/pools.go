// SPDX-License-Identifier: Apache-2.0

package static

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
)

const (
	// refreshAfter is the time after which a pool is reconciled again without
	// an event.
	refreshAfter = time.Minute
	// parallel is how many claims are created or deleted at once, unless said
	// otherwise; the rate of the client is what limits them.
	parallel = 100
)

// read returns the pool if it is static, managed, valid and not being deleted,
// or else nil.
func read(ctx context.Context, from client.Reader, name string, managed func(*v1.NodePool) bool) (*v1.NodePool, error) {
	pool := &v1.NodePool{}
	if err := from.Get(ctx, client.ObjectKey{Name: name}, pool); err != nil {
		if err = client.IgnoreNotFound(err); err != nil {
			return nil, fmt.Errorf("read node pool %s: %w", name, err)
		}
		return nil, nil
	}
	if !pool.IsStatic() || !pool.DeletionTimestamp.IsZero() || unreadable.Error(pool) != nil || !managed(pool) {
		return nil, nil
	}
	return pool, nil
}

// claimsOf lists the claims of the pool.
func claimsOf(ctx context.Context, from client.Reader, pool string) ([]v1.NodeClaim, error) {
	list := &v1.NodeClaimList{}
	if err := from.List(ctx, list, client.MatchingLabels{v1.NodePoolLabelKey: pool}); err != nil {
		return nil, fmt.Errorf("list node claims of node pool %s: %w", pool, err)
	}
	return list.Items, nil
}

// rescaled admits static pools that are new or whose replicas have changed, and
// those that more admits.
func rescaled(more func(old, now *v1.NodePool) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.(*v1.NodePool).IsStatic() },
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, now := e.ObjectOld.(*v1.NodePool), e.ObjectNew.(*v1.NodePool)
			if !now.IsStatic() {
				return false
			}
			return old.Spec.Replicas == nil || *old.Spec.Replicas != *now.Spec.Replicas || more(old, now)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// readied reports whether the pool has become ready.
func readied(old, now *v1.NodePool) bool {
	return !conditions.IsTrue(old, v1.ReadyCondition) && conditions.IsTrue(now, v1.ReadyCondition)
}

// appearing admits claims that are new, and claims whose removal was abandoned.
func appearing() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, now := e.ObjectOld.(*v1.NodeClaim), e.ObjectNew.(*v1.NodeClaim)
			return conditions.IsTrue(old, v1.DisruptionReasonCondition) && !conditions.IsTrue(now, v1.DisruptionReasonCondition)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// leaving admits claims whose deletion begins or is done.
func leaving() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// poolOf returns the pool of a claim. Whether it is static is seen when it is
// read.
func poolOf(_ context.Context, claim client.Object) []reconcile.Request {
	name := claim.GetLabels()[v1.NodePoolLabelKey]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}
