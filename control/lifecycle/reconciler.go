// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/events"
	"karpenter/kube/join"
	"karpenter/kube/meter"
)

// Default time limits of a launch and of a registration.
const (
	DefaultLaunchTimeout       = 5 * time.Minute
	DefaultRegistrationTimeout = 15 * time.Minute
)

// PoolHealth records whether claims of a NodePool become nodes. Both calls are
// cheap and idempotent for each claim.
type PoolHealth interface {
	// Succeeded notes that the claim's instance became a Node.
	Succeeded(claim *v1.NodeClaim)
	// Failed notes that it never did, and why.
	Failed(claim *v1.NodeClaim, reason, message string)
}

// Devices answers questions about the devices of Nodes.
type Devices interface {
	// Published returns the drivers that have a complete pool on the Node.
	Published(*corev1.Node) sets.Set[string]
	// Serves reports whether devices of the Node serve the extended resource.
	Serves(*corev1.Node, corev1.ResourceName) bool
}

// Reconciler is the controller nodeclaim.lifecycle. All fields are required
// unless they say otherwise; Client serves the indexes of package join.
type Reconciler struct {
	Client      client.Client
	Provider    cloud.Provider
	Clock       clock.PassiveClock
	Recorder    events.Recorder
	Metrics     *Metrics
	Disruptions *meter.Disruptions
	Health      PoolHealth

	// Hooks may hold up registration; may be empty.
	Hooks []Hook
	// Waiting returns the pods that are planned on the claim and have no node;
	// nil = none.
	Waiting func(claim string) []*corev1.Pod
	// Devices says which drivers have published their devices; nil = dynamic resource
	// allocation is off, and nodes are not held up for it.
	Devices Devices
	// LaunchTimeout and RegistrationTimeout are the time a claim has from its
	// creation, or from the last change of the condition, to be launched and
	// registered. Zero means the default.
	LaunchTimeout, RegistrationTimeout time.Duration

	memory memory
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	managed := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return cloud.Manages(r.Provider, o.(*v1.NodeClaim).Spec.NodeClassRef)
	})
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.lifecycle").
		For(&v1.NodeClaim{}, builder.WithPredicates(managed)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.claimsOf)).
		WithOptions(options).
		Complete(r)
}

// claimsOf returns the claims of a Node.
func (r *Reconciler) claimsOf(ctx context.Context, o client.Object) []reconcile.Request {
	claims, err := join.ClaimsOf(ctx, r.Client, o.(*corev1.Node))
	if err != nil {
		log.FromContext(ctx).Error(err, "node event is lost")
		return nil
	}
	requests := make([]reconcile.Request, len(claims))
	for i := range claims {
		requests[i].Name = claims[i].Name
	}
	return requests
}

// phase advances the claim of a scope if it can. It returns after which time to
// try again, or 0 to wait for an event.
type phase func(context.Context, *scope) (time.Duration, error)

// scope is one claim during one reconcile.
type scope struct {
	stored     *v1.NodeClaim // as the API server last answered; never modified
	claim      *v1.NodeClaim // what the phases change
	conditions *conditions.Set
	node       *corev1.Node // as just registered; nil when not in this reconcile
	now        time.Time
	given      bool     // the claim has been deleted by a phase; nothing more to do
	persisted  []func() // to be run once the status is written
}

func newScope(claim *v1.NodeClaim, now time.Time) *scope {
	s := &scope{stored: claim, claim: claim.DeepCopy(), now: now}
	s.conditions = s.claim.StatusConditions(now)
	return s
}

// afterwards runs f after the status is written, and only if that succeeds, so
// that nothing is counted or logged twice.
func (s *scope) afterwards(f func()) { s.persisted = append(s.persisted, f) }

// Reconcile advances one claim as far as possible.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &v1.NodeClaim{}
	if err := r.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		if apierrors.IsNotFound(err) {
			r.memory.forget(request.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	if !cloud.Manages(r.Provider, claim.Spec.NodeClassRef) {
		return reconcile.Result{}, nil
	}
	if r.memory.isOutdated(claim) {
		return reconcile.Result{Requeue: true}, nil
	}
	ctx = withLog(ctx, claim)
	s := newScope(claim, r.Clock.Now())
	if !claim.DeletionTimestamp.IsZero() {
		return result(r.finalize(ctx, s))
	}
	if err := r.addFinalizer(ctx, s); err != nil {
		return result(0, client.IgnoreNotFound(err))
	}
	return result(r.run(ctx, s, r.launch, r.register, r.initialize, r.expire))
}

// run runs the phases in order and writes the claim. If a phase fails, the next
// ones run nevertheless.
func (r *Reconciler) run(ctx context.Context, s *scope, phases ...phase) (time.Duration, error) {
	var soonest time.Duration
	var failures []error
	s.observeSettled()
	for _, p := range phases {
		after, err := p(ctx, s)
		failures = append(failures, err)
		if after > 0 && (soonest == 0 || after < soonest) {
			soonest = after
		}
		if s.given {
			return 0, errors.Join(failures...)
		}
	}
	failures = append(failures, r.persist(ctx, s))
	return soonest, errors.Join(failures...)
}

// addFinalizer persists the finalizer of a claim that has none. The scope
// then works on what the API server answered.
func (r *Reconciler) addFinalizer(ctx context.Context, s *scope) error {
	if controllerutil.ContainsFinalizer(s.stored, v1.TerminationFinalizer) {
		return nil
	}
	claim := s.stored.DeepCopy()
	controllerutil.AddFinalizer(claim, v1.TerminationFinalizer)
	if err := r.Client.Patch(ctx, claim, locked(s.stored)); err != nil {
		return err
	}
	r.memory.wrote(claim)
	*s = *newScope(claim, s.now)
	return nil
}

// persist writes the metadata and then the status of the claim, each only if
// changed and only over what was read. Afterwards stored is what the API
// server answered. A claim that is gone is no error.
func (r *Reconciler) persist(ctx context.Context, s *scope) error {
	for _, write := range []func(context.Context, *scope) error{r.persistMetadata, r.persistStatus} {
		if err := write(ctx, s); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	for _, f := range s.persisted {
		f()
	}
	return nil
}

func (r *Reconciler) persistMetadata(ctx context.Context, s *scope) error {
	written := s.stored.DeepCopy()
	written.Labels, written.Annotations = s.claim.Labels, s.claim.Annotations
	if equality.Semantic.DeepEqual(s.stored.ObjectMeta, written.ObjectMeta) {
		return nil
	}
	if err := r.Client.Patch(ctx, written, locked(s.stored)); err != nil {
		return err
	}
	r.memory.wrote(written)
	s.stored = written
	return nil
}

func (r *Reconciler) persistStatus(ctx context.Context, s *scope) error {
	if equality.Semantic.DeepEqual(s.stored.Status, s.claim.Status) {
		return nil
	}
	written := s.stored.DeepCopy()
	written.Status = *s.claim.Status.DeepCopy()
	if err := r.Client.Status().Patch(ctx, written, locked(s.stored)); err != nil {
		return err
	}
	r.memory.wrote(written)
	s.stored = written
	return nil
}

// giveUp deletes the claim and counts why. Nothing is counted when someone
// else was first.
func (r *Reconciler) giveUp(ctx context.Context, s *scope, reason string) error {
	s.given = true
	uid := s.claim.UID
	err := r.Client.Delete(ctx, s.claim.DeepCopy(), client.Preconditions{UID: &uid})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	r.memory.gaveUp(s.claim)
	r.Disruptions.Forced(ctx, s.claim, reason)
	return nil
}

// isSettled reports whether the condition is True or False, which is final.
func (s *scope) isSettled(condition string) bool {
	return s.conditions.Get(condition).Status != metav1.ConditionUnknown
}

// observeSettled keeps what is decided at the claim's current generation.
func (s *scope) observeSettled() {
	var settled []string
	for _, c := range []string{v1.LaunchedCondition, v1.RegisteredCondition, v1.InitializedCondition} {
		if s.isSettled(c) {
			settled = append(settled, c)
		}
	}
	if len(settled) > 0 {
		s.conditions.Observe(settled...)
	}
}

// result turns a conflict, which only means that another client wrote the
// claim, into another reconcile.
func result(after time.Duration, err error) (reconcile.Result, error) {
	if err == nil {
		return reconcile.Result{RequeueAfter: after}, nil
	}
	if failures := withoutConflicts(err); failures != nil {
		return reconcile.Result{}, failures
	}
	return reconcile.Result{Requeue: true}, nil
}

// withoutConflicts drops the conflicts from a possibly joined error.
func withoutConflicts(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		if apierrors.IsConflict(err) {
			return nil
		}
		return err
	}
	var kept []error
	for _, e := range joined.Unwrap() {
		kept = append(kept, withoutConflicts(e))
	}
	return errors.Join(kept...)
}

// locked returns a merge patch that fails with a conflict when the object is
// not as read any more.
func locked(read client.Object) client.Patch {
	return client.MergeFromWithOptions(read.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
}

func withLog(ctx context.Context, claim *v1.NodeClaim) context.Context {
	l := log.FromContext(ctx)
	if id := claim.Status.ProviderID; id != "" {
		l = l.WithValues("provider-id", id)
	}
	if name := claim.Status.NodeName; name != "" {
		l = l.WithValues("Node", klog.KRef("", name))
	}
	return log.IntoContext(ctx, l)
}
