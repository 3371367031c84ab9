// SPDX-License-Identifier: Apache-2.0

package provisioningrequest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	"karpenter/kube/convert"
	"karpenter/kube/optional"
	"karpenter/kube/standins"
	"karpenter/world"
)

const (
	// Booking is how long the capacity of a request is kept once it is Provisioned.
	Booking = 10 * time.Minute
	// kept is how long nodes are kept for pods that use the capacity of a request and have
	// no node yet.
	kept = time.Minute
)

// World is the part of the cluster's state that requests change.
type World interface {
	SetBuffer(buffer string, pods []world.Pod)
	DeleteBuffer(buffer string)
	SetPodGroup(world.PodGroup)
	DeletePodGroup(name string)
	// Nominate keeps the node from being disrupted for a while.
	Nominate(node string, until time.Time)
}

// Reconciler is the controller provisioningrequest. The exported fields are required and
// do not change once it runs.
type Reconciler struct {
	Client  client.Client
	World   World
	Convert convert.Converter
	Clock   clock.PassiveClock
	// Limits are what the pods of all requests of one namespace may request together; a
	// resource that is absent is not limited. May be nil.
	Limits corev1.ResourceList

	standins.Base
	ended map[client.ObjectKey]ended // in the Turn of the caller

	mu       sync.Mutex
	outcomes map[string]outcome // of the latest pass, by name in the world
}

// Start passes all existing requests to the world. It implements manager.Runnable.
func (r *Reconciler) Start(ctx context.Context) error {
	r.Hydrate(ctx, "provisioning requests", r.hydrate)
	return nil
}

func (r *Reconciler) hydrate(ctx context.Context) error {
	list := &autoscalingv1.ProvisioningRequestList{}
	if err := r.Client.List(ctx, list); err != nil && !errors.Is(err, optional.ErrUnread) {
		return fmt.Errorf("list provisioning requests: %w", err)
	}
	for i := range list.Items {
		if _, _, err := r.take(ctx, client.ObjectKeyFromObject(&list.Items[i])); err != nil {
			return err
		}
	}
	return nil
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	err := builder.ControllerManagedBy(mgr).Named("provisioningrequest").WatchesRawSource(r.Source()).WithOptions(options).
		WatchesRawSource(optional.Source(mgr.GetCache(), &autoscalingv1.ProvisioningRequest{}, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(optional.Source(mgr.GetCache(), &corev1.PodTemplate{}, handler.EnqueueRequestsFromMapFunc(r.ofTemplate))).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ofPod)).
		Complete(r)
	if err != nil {
		return err
	}
	return mgr.Add(r)
}

// ofTemplate returns the requests that name the PodTemplate.
func (r *Reconciler) ofTemplate(ctx context.Context, t client.Object) []reconcile.Request {
	list := &autoscalingv1.ProvisioningRequestList{}
	if err := r.Client.List(ctx, list, client.InNamespace(t.GetNamespace())); err != nil {
		return nil // they are looked at again in their own time
	}
	var out []reconcile.Request
	for i := range list.Items {
		if slices.ContainsFunc(list.Items[i].Spec.PodSets, func(p autoscalingv1.PodSet) bool { return p.PodTemplateRef.Name == t.GetName() }) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// ofPod returns the request whose capacity the pod uses.
func ofPod(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetAnnotations()[autoscalingv1.ConsumeAnnotation]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// Reconcile updates one request: first its pods in the world, then its status.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored, found, err := r.take(ctx, request.NamespacedName)
	if err != nil || stored == nil {
		return reconcile.Result{}, err
	}
	next := stored.DeepCopy()
	after := r.describe(next, found)
	if !equality.Semantic.DeepEqual(stored.Status, next.Status) {
		written, err := standins.Write(ctx, r.Client, stored, next)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("patch status of provisioning request %s: %w", request, err)
		}
		if !written {
			return reconcile.Result{RequeueAfter: standins.AgainAfter}, nil
		}
	}
	if over(next) {
		done, err := r.Turn(ctx)
		if err != nil {
			return reconcile.Result{}, err
		}
		defer done()
		r.drop(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// over reports whether nothing is done for the request any more.
func over(q *autoscalingv1.ProvisioningRequest) bool {
	return slices.ContainsFunc([]string{autoscalingv1.Failed, autoscalingv1.BookingExpired, autoscalingv1.CapacityRevoked}, func(c string) bool {
		return meta.IsStatusConditionTrue(q.Status.Conditions, c)
	})
}

// served reports whether the class is one of ours.
func served(q *autoscalingv1.ProvisioningRequest) bool {
	return q.Spec.ProvisioningClassName == autoscalingv1.CheckCapacity || q.Spec.ProvisioningClassName == autoscalingv1.BestEffortAtomicScaleUp
}

// nameOf returns the name of the request in the world, for its PodGroup and its
// pods. It contains a space, which no name of an object does.
func nameOf(key client.ObjectKey) string { return "ProvisioningRequest " + key.String() }

// keyOf undoes nameOf.
func keyOf(name string) (client.ObjectKey, bool) {
	text, ours := strings.CutPrefix(name, "ProvisioningRequest ")
	namespace, name, _ := strings.Cut(text, "/")
	return client.ObjectKey{Namespace: namespace, Name: name}, ours
}

// drop forgets the request. The caller has the turn.
func (r *Reconciler) drop(key client.ObjectKey) {
	r.World.DeleteBuffer(nameOf(key))
	r.World.DeletePodGroup(nameOf(key))
	delete(r.ended, key)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.outcomes, nameOf(key))
}

// take reads the request and passes its pods to the world. It returns nil if there
// is nothing to do for the request.
func (r *Reconciler) take(ctx context.Context, key client.ObjectKey) (*autoscalingv1.ProvisioningRequest, *resolution, error) {
	done, err := r.Turn(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	q := &autoscalingv1.ProvisioningRequest{}
	err = r.Client.Get(ctx, key, q)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("read provisioning request %s: %w", key, err)
	}
	if err != nil || q.DeletionTimestamp != nil || !served(q) || over(q) {
		r.drop(key)
		return nil, nil, nil
	}
	found, err := r.resolve(ctx, q)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve provisioning request %s: %w", key, err)
	}
	r.World.SetPodGroup(world.PodGroup{Name: nameOf(key), MinCount: len(found.pods), Existing: q.Spec.ProvisioningClassName == autoscalingv1.CheckCapacity})
	r.World.SetBuffer(nameOf(key), found.pods)
	if found.consumers > 0 {
		for _, node := range r.outcome(key).nodes {
			r.World.Nominate(node, r.Clock.Now().Add(kept))
		}
	}
	return q, found, nil
}

// older compares requests by age, oldest first.
func older(a, b *autoscalingv1.ProvisioningRequest) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}
