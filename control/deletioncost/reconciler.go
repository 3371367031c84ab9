// SPDX-License-Identifier: Apache-2.0

package deletioncost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karpenter/kube/join"
	"karpenter/kube/pods"
	"karpenter/model"
)

const (
	period = time.Minute
	// Retries. No event asks for the next run, so that it must not be far away.
	failureMin = time.Second
	failureMax = time.Minute

	notReadyPoll = time.Second
	// mostNodes is how many nodes of those that may go, or stay, are changed in one
	// run. The next run goes on.
	mostNodes = 50
	// parallel is how many pods are patched at once.
	parallel = 20
)

// Reconciler is the controller pod.deletioncost. All fields are required.
type Reconciler struct {
	Client   client.Client // serves Pods by node name
	Snapshot func(now time.Time) *model.Snapshot
	Ready    func() bool // the Snapshot knows everything there is
	Clock    clock.PassiveClock
	Metrics  *Metrics
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager) error {
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(reconcile.Request{})
		return nil
	})
	return builder.ControllerManagedBy(mgr).Named("pod.deletioncost").WatchesRawSource(start).
		WithOptions(controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](failureMin, failureMax)}).Complete(r)
}

// change is a pod whose annotation is to become the cost; "" removes it.
type change struct {
	pod  *corev1.Pod
	cost string
}

// run is one pass over all nodes.
type run struct {
	byNode  map[string][]*corev1.Pod
	changes []change
	pending map[string]int // nodes to change, by pool
}

// Reconcile makes one run.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !r.Ready() {
		return reconcile.Result{RequeueAfter: notReadyPoll}, nil
	}
	s := r.Snapshot(r.Clock.Now())
	this := &run{byNode: map[string][]*corev1.Pod{}, pending: map[string]int{}}
	for i := range s.Nodes {
		if s.Nodes[i].Claim == "" {
			continue
		}
		if err := r.read(ctx, this, s.Nodes[i].Name); err != nil {
			return reconcile.Result{}, err
		}
	}
	want := rank(s, this.pinned)
	this.plan(want.leaving, len(want.leaving))
	left := mostNodes - this.plan(want.ranked, mostNodes)
	this.plan(want.others, left)
	r.Metrics.pend(this.pending)
	if err := r.write(ctx, this.changes); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: period}, nil
}

func (r *Reconciler) read(ctx context.Context, this *run, node string) error {
	list := &corev1.PodList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{join.PodNodeName: node}); err != nil {
		return fmt.Errorf("list pods of node %s: %w", node, err)
	}
	for i := range list.Items {
		if p := &list.Items[i]; !pods.Terminal(p) {
			this.byNode[node] = append(this.byNode[node], p)
		}
	}
	return nil
}

// pinned reports whether the node has a pod that stays even if all ReplicaSets
// scale down to zero, such as a pod of a StatefulSet or a pod without a
// controller.
func (t *run) pinned(node string) bool {
	return slices.ContainsFunc(t.byNode[node], func(p *corev1.Pod) bool {
		return p.Namespace != metav1.NamespaceSystem && !controlledBy(p, "apps/v1", "ReplicaSet") &&
			!controlledBy(p, "apps/v1", "DaemonSet") && !controlledBy(p, "batch/v1", "Job")
	})
}

func controlledBy(p *corev1.Pod, version, kind string) bool {
	o := metav1.GetControllerOf(p)
	return o != nil && o.APIVersion == version && o.Kind == kind
}

// plan adds the changes for so many nodes at most, and returns for how many.
func (t *run) plan(all []wish, most int) int {
	nodes := 0
	for _, w := range all {
		var wrong []change
		for _, p := range t.byNode[w.node.Name] {
			if controlledBy(p, "apps/v1", "ReplicaSet") && p.Annotations[corev1.PodDeletionCost] != w.cost {
				wrong = append(wrong, change{p, w.cost})
			}
		}
		if len(wrong) == 0 {
			continue
		}
		if nodes == most {
			break
		}
		nodes++
		t.pending[w.node.Pool]++
		t.changes = append(t.changes, wrong...)
	}
	return nodes
}

// write carries the changes out. Pods that are gone or have changed are left to
// the next run.
func (r *Reconciler) write(ctx context.Context, changes []change) error {
	errs := make([]error, len(changes))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, c := range changes {
		group.Go(func() error {
			errs[i] = r.annotate(ctx, c)
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
	return errors.Join(errs...)
}

func (r *Reconciler) annotate(ctx context.Context, c change) error {
	stored := c.pod.DeepCopy()
	p := c.pod.DeepCopy()
	p.Annotations = maps.Clone(p.Annotations)
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	if p.Annotations[corev1.PodDeletionCost] = c.cost; c.cost == "" {
		delete(p.Annotations, corev1.PodDeletionCost)
	}
	err := r.Client.Patch(ctx, p, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	switch {
	case err == nil:
		r.Metrics.wrote(updated)
	case apierrors.IsNotFound(err):
		r.Metrics.wrote(skippedNotFound)
	case apierrors.IsConflict(err):
		r.Metrics.wrote(skippedConflict)
	default:
		r.Metrics.wrote(failed)
		return fmt.Errorf("annotate pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}
