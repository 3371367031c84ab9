// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/kube/optional"
)

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	specs := predicate.GenerationChangedPredicate{}
	b := builder.ControllerManagedBy(mgr).Named("capacitybuffer").WatchesRawSource(r.Source()).WithOptions(options)
	type watch struct {
		of client.Object
		to handler.EventHandler
	}
	watches := []watch{
		{&v1beta1.CapacityBuffer{}, &handler.EnqueueRequestForObject{}},
		{&corev1.PodTemplate{}, handler.EnqueueRequestsFromMapFunc(r.ofTemplate)},
	}
	kinds := workloads()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		watches = append(watches, watch{kinds[kind].empty(), handler.EnqueueRequestsFromMapFunc(r.ofWorkload(kind))})
	}
	for _, w := range watches {
		b = b.WatchesRawSource(optional.Source(mgr.GetCache(), w.of, w.to, specs))
	}
	if err := b.Complete(r); err != nil {
		return err
	}
	return mgr.Add(r)
}

// ofTemplate returns the buffers that name the PodTemplate.
func (r *Reconciler) ofTemplate(ctx context.Context, t client.Object) []reconcile.Request {
	return r.naming(ctx, t, func(s *v1beta1.CapacityBufferSpec) bool {
		return s.PodTemplateRef != nil && s.PodTemplateRef.Name == t.GetName()
	})
}

// ofWorkload returns the buffers that name a workload of the kind.
func (r *Reconciler) ofWorkload(kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.naming(ctx, o, func(s *v1beta1.CapacityBufferSpec) bool {
			return s.ScalableRef != nil && s.ScalableRef.Kind == kind && s.ScalableRef.Name == o.GetName()
		})
	}
}

// naming returns the buffers in the namespace of the object that name it. If
// they cannot be listed, they are reconciled at their next regular time.
func (r *Reconciler) naming(ctx context.Context, o client.Object, names func(*v1beta1.CapacityBufferSpec) bool) []reconcile.Request {
	list := &v1beta1.CapacityBufferList{}
	if err := r.Client.List(ctx, list, client.InNamespace(o.GetNamespace())); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if b := &list.Items[i]; names(&b.Spec) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return out
}
