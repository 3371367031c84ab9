// SPDX-License-Identifier: Apache-2.0

package obstacle

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/join"
	"karpenter/kube/pods"
)

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	managed := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return cloud.Manages(r.Provider, o.(*v1.NodeClaim).Spec.NodeClassRef)
	})
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.obstacle").
		For(&v1.NodeClaim{}, builder.WithPredicates(managed)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.claimsOf), builder.WithPredicates(podNews())).
		Watches(&policyv1.PodDisruptionBudget{}, handler.EnqueueRequestsFromMapFunc(r.concerned), builder.WithPredicates(budgetNews())).
		WithOptions(options).
		Complete(r)
}

// claimsOf names the claims of the pod's node for which it may matter.
func (r *Reconciler) claimsOf(ctx context.Context, o client.Object) []reconcile.Request {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: o.(*corev1.Pod).Spec.NodeName}, node); err != nil {
		return nil // without a Node nothing is drained
	}
	claims, err := join.ClaimsOf(ctx, r.Client, node)
	if err != nil {
		log.FromContext(ctx).Error(err, "pod event is lost")
	}
	return requests(claims)
}

// concerned names the claims for which a budget may matter.
func (r *Reconciler) concerned(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &v1.NodeClaimList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "budget event is lost")
	}
	return requests(list.Items)
}

func requests(claims []v1.NodeClaim) []reconcile.Request {
	var out []reconcile.Request
	for i := range claims {
		if matters(&claims[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&claims[i])})
		}
	}
	return out
}

// podNews passes the events by which a pod may become an obstacle or cease to
// be one. Pods that were there before this process began to look are no news: all
// claims are looked at then, when all pods are known.
func podNews() predicate.Predicate {
	bound := func(o client.Object) bool { return o.(*corev1.Pod).Spec.NodeName != "" }
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return bound(e.Object) && !e.IsInInitialList },
		DeleteFunc:  func(e event.DeleteEvent) bool { return bound(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, p := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
			return bound(p) && (!bound(old) || pods.Active(old) != pods.Active(p) || old.Status.Phase != p.Status.Phase ||
				isUnready(old) != isUnready(p) || !maps.Equal(old.Labels, p.Labels) ||
				old.Annotations[v1.DoNotDisruptAnnotationKey] != p.Annotations[v1.DoNotDisruptAnnotationKey])
		},
	}
}

func isUnready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionFalse
		}
	}
	return false
}

// budgetNews passes events after which a budget may start or stop to block
// evictions permanently. It drops events that only change how many evictions
// are allowed now.
func budgetNews() predicate.Predicate {
	return predicate.Funcs{
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, b := e.ObjectOld.(*policyv1.PodDisruptionBudget), e.ObjectNew.(*policyv1.PodDisruptionBudget)
			return old.Generation != b.Generation || pods.Deadlock(old) != pods.Deadlock(b)
		},
	}
}
