// SPDX-License-Identifier: Apache-2.0

package nomination

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "karpenter/api/v1"
	"karpenter/kube/join"
	"karpenter/kube/pods"
	"karpenter/world"
)

const (
	// parallel is how many pods are written at once.
	parallel = 32
	workers  = 8
	// patience is how long a registration waits for its pods to be written.
	patience = 5 * time.Second
	// settling is how long to wait before a dropped nomination is written
	// again, so that others that were dropped with it are written together.
	settling = 10 * time.Millisecond
)

// World is the part of the cluster's state that nomination needs.
type World interface {
	// Nominations returns the pods that are to name the node, each once until
	// someone undoes it. The claim is the node's, "" when not known.
	Nominations(node, claim string) []world.Nomination
	// NotNominated makes Nominations return this one again.
	NotNominated(world.Nomination)
	// StaleNominations returns the pods that are to name no node any more.
	StaleNominations() []world.Nomination
}

// Reconciler is the controller pod.nomination, and a registration hook. Make one
// with New.
type Reconciler struct {
	// Reader serves the indexes of package join.
	Reader client.Reader
	// Pods writes the status of pods. How many requests it makes at once is
	// bounded here, so it needs no limit of its own.
	Pods  client.StatusClient
	World World

	slots     chan struct{} // held while a pod is written
	mu        sync.Mutex
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request] // nil until the controller runs
	forbidden sync.Once
}

// New returns a Reconciler with everything it needs.
func New(reader client.Reader, podWriter client.StatusClient, w World) *Reconciler {
	return &Reconciler{Reader: reader, Pods: podWriter, World: w, slots: make(chan struct{}, parallel)}
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager) error {
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.queue = queue
		return nil
	})
	return builder.ControllerManagedBy(mgr).
		Named("pod.nomination").
		WatchesRawSource(start).
		Watches(&corev1.Node{}, handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if now := e.ObjectNew.(*corev1.Node); opens(e.ObjectOld.(*corev1.Node), now) {
				queue.Add(request(now.Name))
			}
		}}).
		Watches(&corev1.Pod{}, handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if node := dropped(e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)); node != "" {
				queue.AddAfter(request(node), settling)
			}
		}}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

func request(node string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}
}

// dropped returns the node that someone has removed from the status of the
// pod, which is still unbound.
func dropped(old, now *corev1.Pod) string {
	if now.Spec.NodeName != "" || now.Status.NominatedNodeName != "" {
		return ""
	}
	return pods.Nominated(old)
}

// opens reports whether the node accepts pods, or is about to, and this update
// brings it closer to that.
func opens(old, now *corev1.Node) bool {
	return ready(now) && (!ready(old) || !equality.Semantic.DeepEqual(old.Spec.Taints, now.Spec.Taints))
}

func ready(n *corev1.Node) bool {
	if n.Labels[v1.NodePoolLabelKey] == "" || n.Labels[v1.NodeRegisteredLabelKey] != "true" || n.DeletionTimestamp != nil {
		return false
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Follow reports that a pass has ended and has placed pods on these nodes,
// named as in Snapshots. It does not block.
func (r *Reconciler) Follow(nodes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue == nil {
		return
	}
	r.queue.Add(reconcile.Request{}) // stale ones
	for _, name := range nodes {
		r.queue.Add(request(name))
	}
}

// Reconcile writes the pods planned on one node; for the request without a
// name, those that have lost their plan.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if request.Name == "" {
		return reconcile.Result{}, r.write(ctx, r.World.StaleNominations())
	}
	node := &corev1.Node{}
	if err := r.Reader.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // a claim without a node: the registration hook will nominate
	}
	if unreleased(node) || node.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.write(ctx, r.World.Nominations(node.Name, ""))
}

// unreleased reports whether the node's claim has not let pods on it.
func unreleased(n *corev1.Node) bool {
	unregistered := v1.UnregisteredNoExecuteTaint()
	for i := range n.Spec.Taints {
		if n.Spec.Taints[i].MatchTaint(&unregistered) {
			return true
		}
	}
	return false
}

// Name implements lifecycle.Hook.
func (r *Reconciler) Name() string { return "nomination" }

// Registered implements lifecycle.Hook. It never holds up a registration for
// longer than patience.
func (r *Reconciler) Registered(ctx context.Context, claim *v1.NodeClaim) (reconcile.Result, error) {
	node, err := join.NodeOf(ctx, r.Reader, claim)
	if err != nil {
		return reconcile.Result{}, nil // registration reports it
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.write(ctx, r.World.Nominations(node.Name, claim.Name)); err != nil {
		log.FromContext(ctx).Info("pods may not go where they are planned", "Node", klog.KRef("", node.Name), "reason", err.Error())
	}
	return reconcile.Result{}, nil
}

// write writes the nominations into the status of the pods. If one fails, the
// others are written nevertheless.
func (r *Reconciler) write(ctx context.Context, list []world.Nomination) error {
	failures := make([]error, len(list))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, n := range list {
		group.Go(func() error {
			r.slots <- struct{}{}
			defer func() { <-r.slots }()
			if failures[i] = r.apply(ctx, n); failures[i] != nil {
				r.World.NotNominated(n)
			}
			return nil
		})
	}
	_ = group.Wait() // no function of the group returns an error
	return errors.Join(failures...)
}

// apply writes one pod. It is not an error if the pod is deleted, bound, or
// nominated by another client. A missing permission is logged once.
func (r *Reconciler) apply(ctx context.Context, n world.Nomination) error {
	status := applycorev1.PodStatus()
	if n.Node != "" {
		status.WithNominatedNodeName(n.Node)
	}
	err := r.Pods.Status().Apply(ctx, applycorev1.Pod(n.Name, n.Namespace).WithUID(types.UID(n.UID)).WithStatus(status),
		client.FieldOwner(pods.NominationManager))
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return nil
	case apierrors.IsForbidden(err):
		r.forbidden.Do(func() {
			log.FromContext(ctx).Error(err, "cannot write the planned nodes to pods: the role lacks patch on pods/status")
		})
		return nil
	}
	return err
}
