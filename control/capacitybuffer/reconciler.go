// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/kube/convert"
	"karpenter/kube/optional"
	"karpenter/kube/standins"
	"karpenter/world"
)

// World is the part of the cluster's state that buffers change.
type World interface {
	// SetBuffer replaces the pods that stand in for a buffer, namespace/name.
	SetBuffer(buffer string, pods []world.Pod)
	// DeleteBuffer removes them.
	DeleteBuffer(buffer string)
	SetPodGroup(world.PodGroup)
	DeletePodGroup(name string)
}

// Reconciler is the controller capacitybuffer. The exported fields are required
// and do not change once it runs.
type Reconciler struct {
	Client  client.Client
	World   World
	Convert convert.Converter
	Clock   clock.PassiveClock
	// Limits are what the pods of all buffers of one namespace may request
	// together; a resource that is absent is not limited. May be nil.
	Limits corev1.ResourceList

	standins.Base
	shares shares // in the Turn of the caller

	mu       sync.Mutex
	outcomes map[string]outcome // of the latest pass, by buffer
	teams    teams
}

// Start passes all existing buffers to the world. It implements
// manager.Runnable.
func (r *Reconciler) Start(ctx context.Context) error {
	r.Hydrate(ctx, "capacity buffers", r.hydrate)
	return nil
}

func (r *Reconciler) hydrate(ctx context.Context) error {
	list := &v1beta1.CapacityBufferList{}
	if err := r.Client.List(ctx, list); errors.Is(err, optional.ErrUnread) {
		log.FromContext(ctx).Error(err, "planning without capacity buffers until it can read them")
	} else if err != nil {
		return fmt.Errorf("list capacity buffers: %w", err)
	}
	// Those that come first get their share first, so that no share changes.
	slices.SortFunc(list.Items, func(a, b v1beta1.CapacityBuffer) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for i := range list.Items {
		if _, _, err := r.take(ctx, client.ObjectKeyFromObject(&list.Items[i])); err != nil {
			return err
		}
	}
	return nil
}

// Reconcile updates one buffer: first its pods in the world, then its status.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored, found, err := r.take(ctx, request.NamespacedName)
	if err != nil || stored == nil {
		return reconcile.Result{}, err
	}
	buffer := stored.DeepCopy()
	r.describe(buffer, found)
	if !equality.Semantic.DeepEqual(stored.Status, buffer.Status) {
		written, err := standins.Write(ctx, r.Client, stored, buffer)
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("patch status of capacity buffer %s: %w", request, err)
		}
		if !written {
			return reconcile.Result{RequeueAfter: standins.AgainAfter}, nil
		}
	}
	if found.invalid {
		return reconcile.Result{}, reconcile.TerminalError(errors.New(found.message))
	}
	return reconcile.Result{RequeueAfter: standins.RefreshAfter}, nil
}

// take reads the buffer and passes its pods to the world. It returns a nil
// buffer if the buffer no longer exists.
func (r *Reconciler) take(ctx context.Context, key client.ObjectKey) (*v1beta1.CapacityBuffer, *resolution, error) {
	done, err := r.Turn(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	buffer := &v1beta1.CapacityBuffer{}
	err = r.Client.Get(ctx, key, buffer)
	if apierrors.IsNotFound(err) || err == nil && buffer.DeletionTimestamp != nil {
		r.share(key, nil)
		r.World.DeleteBuffer(key.String())
		r.join(key.String(), "", 0)
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read capacity buffer %s: %w", key, err)
	}
	found, err := r.resolve(ctx, buffer)
	if err != nil {
		return nil, nil, fmt.Errorf("resolve capacity buffer %s: %w", key, err)
	}
	team, wanted := teamOf(buffer), len(found.pods)
	var a *ask
	if wanted > 0 {
		a = &ask{created: buffer.CreationTimestamp.Time, each: found.each, wanted: wanted}
	}
	if granted := r.share(key, a); granted < wanted {
		found.limit(granted, r.Limits)
	}
	for i := range found.pods {
		found.pods[i].Group = team
	}
	r.join(key.String(), team, max(wanted, 1)) // the others wait for pods that it cannot have, too
	r.World.SetBuffer(key.String(), found.pods)
	return buffer, found, nil
}

// share returns how many pods of the buffer fit the limits of its namespace. It
// enqueues other buffers whose share changes because of that.
func (r *Reconciler) share(key client.ObjectKey, a *ask) int {
	if r.shares == nil {
		r.shares = shares{}
	}
	granted, changed := r.shares.set(key.Namespace, key.Name, a, r.limits())
	for _, name := range changed {
		r.LookAt(client.ObjectKey{Namespace: key.Namespace, Name: name})
	}
	return granted
}
