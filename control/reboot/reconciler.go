// SPDX-License-Identifier: Apache-2.0

package reboot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/events"
	"karpenter/kube/join"
)

const (
	// issueLimit is how long the provider is asked until it accepts the reboot.
	issueLimit = 5 * time.Minute
	// recoveryLimit is how long the instance may take to come back.
	recoveryLimit = 20 * time.Minute
	// drainAtLeast is the minimum duration of a drain, so that the drain sees
	// pods that were being scheduled.
	drainAtLeast = 5 * time.Second

	poll = 15 * time.Second
)

// Evictions asks pods to leave their nodes. The pods are never deleted by force.
type Evictions interface {
	// EvictUntil queues those pods of the Node that are to leave next, and returns
	// how many are still to leave. What is left at the time stays; nil is no limit.
	EvictUntil(ctx context.Context, node *corev1.Node, until *time.Time) (int, error)
	// CallOff ends the eviction of pods that are still on the Node.
	CallOff(ctx context.Context, node *corev1.Node) error
}

// Reconciler is the controller nodeclaim.reboot. All fields are required.
type Reconciler struct {
	Client    client.Client
	Provider  cloud.Provider
	Clock     clock.PassiveClock
	Recorder  events.Recorder
	Metrics   *Metrics
	Evictions Evictions
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.reboot").
		For(&v1.NodeClaim{}).
		WithOptions(options).
		Complete(r)
}

// scope is one reconcile of a reboot.
type scope struct {
	claim     *v1.NodeClaim
	node      *corev1.Node // nil = there is none
	now       time.Time
	requested time.Time
	bound     *time.Duration // of the drain; nil = none
}

// Reconcile advances the reboot of one NodeClaim as far as possible now.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &v1.NodeClaim{}
	if err := r.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	phase := conditions.Get(claim, v1.RebootingCondition)
	if phase == nil || !claim.DeletionTimestamp.IsZero() || !cloud.Manages(r.Provider, claim.Spec.NodeClassRef) {
		return reconcile.Result{}, nil
	}
	s := &scope{claim: claim, now: r.Clock.Now(), requested: phase.LastTransitionTime.Time}
	if !conditions.IsTrue(claim, v1.RebootingCondition) {
		return reconcile.Result{}, r.forget(ctx, claim)
	}
	node, err := join.NodeOf(ctx, r.Client, claim)
	if err != nil && !errors.Is(err, join.ErrNotFound) && !errors.Is(err, join.ErrDuplicate) {
		return reconcile.Result{}, err
	}
	s.node = node
	var after time.Duration
	if phase.Reason == v1.RebootIssuedReason {
		after, err = r.recover(ctx, s)
	} else {
		after, err = r.issue(ctx, s)
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil
	}
	return reconcile.Result{RequeueAfter: after}, client.IgnoreNotFound(err)
}

// issue drains the Node and has the instance rebooted.
func (r *Reconciler) issue(ctx context.Context, s *scope) (time.Duration, error) {
	bound, err := boundOf(s.claim)
	if err != nil {
		return 0, r.fail(ctx, s, invalidRequest, err)
	}
	s.bound = bound
	if s.node == nil {
		return r.await(ctx, s, providerError, s.since().Add(issueLimit))
	}
	if err := r.taint(ctx, s.node); err != nil {
		return 0, err
	}
	before, stored := s.claim.Annotations[v1.RebootPreBootIDAnnotationKey]
	if stored && s.node.Status.NodeInfo.BootID != before {
		return 0, r.issued(ctx, s) // the answer to an earlier call was lost
	}
	if !stored {
		if after, err := r.drain(ctx, s); after > 0 || err != nil {
			return after, err
		}
		if err := r.Evictions.CallOff(ctx, s.node); err != nil {
			return 0, err
		}
		if err := r.annotate(ctx, s.claim, map[string]string{
			v1.RebootPreBootIDAnnotationKey:    s.node.Status.NodeInfo.BootID,
			v1.RebootIssuingSinceAnnotationKey: s.now.UTC().Format(time.RFC3339),
		}); err != nil {
			return 0, err
		}
		before = s.node.Status.NodeInfo.BootID
	}
	operation := fmt.Sprintf("%s-%d-%s", s.claim.UID, s.requested.UnixNano(), before)
	err = cloud.Reboot(ctx, r.Provider, s.claim, operation)
	switch {
	case err == nil:
		return 0, r.issued(ctx, s)
	case cloud.IsRebootNotImplemented(err), cloud.IsRebootFailed(err), cloud.IsNotFound(err), !s.now.Before(s.since().Add(issueLimit)):
		return 0, r.fail(ctx, s, providerError, err)
	}
	return 0, fmt.Errorf("reboot instance of node claim %s: %w", s.claim.Name, err)
}

// since returns when the provider was first asked or, before that, when the
// reboot was requested.
func (s *scope) since() time.Time {
	if t, err := time.Parse(time.RFC3339, s.claim.Annotations[v1.RebootIssuingSinceAnnotationKey]); err == nil {
		return t
	}
	return s.requested
}

// boundOf returns the maximum duration of the drain; nil = no limit.
func boundOf(claim *v1.NodeClaim) (*time.Duration, error) {
	text, ok := claim.Annotations[v1.RebootGracePeriodAnnotationKey]
	if !ok {
		return nil, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return nil, fmt.Errorf("annotation %s: %q is not a duration of 0 or more", v1.RebootGracePeriodAnnotationKey, text)
	}
	return &d, nil
}

// drain evicts pods from the Node, and returns when to check again; 0 = the
// drain is over.
func (r *Reconciler) drain(ctx context.Context, s *scope) (time.Duration, error) {
	if s.bound != nil && *s.bound == 0 {
		return 0, nil
	}
	least := s.requested.Add(drainAtLeast)
	var until *time.Time
	if s.bound != nil {
		end := s.requested.Add(max(*s.bound, drainAtLeast))
		if until = &end; !s.now.Before(end) {
			return 0, nil
		}
	}
	left, err := r.Evictions.EvictUntil(ctx, s.node, until)
	switch {
	case err != nil:
		return 0, err
	case left == 0 && !s.now.Before(least):
		return 0, nil
	case left == 0:
		return least.Sub(s.now), nil
	case until != nil:
		return min(poll, until.Sub(s.now)), nil
	}
	return poll, nil
}

// issued notes that the instance reboots.
func (r *Reconciler) issued(ctx context.Context, s *scope) error {
	stored := s.claim.DeepCopy()
	set := s.claim.StatusConditions(s.now)
	set.SetTrueWithReason(v1.RebootingCondition, v1.RebootIssuedReason, conditions.Get(stored, v1.RebootingCondition).Message)
	set.SetUnknownWithReason(v1.InitializedCondition, v1.RebootingReason, "node is rebooting")
	if err := r.Client.Status().Patch(ctx, s.claim, locked(stored)); err != nil {
		return err
	}
	return r.uninitialize(ctx, s.node)
}

// recover waits for the instance to come back.
func (r *Reconciler) recover(ctx context.Context, s *scope) (time.Duration, error) {
	bound, err := boundOf(s.claim)
	if err != nil {
		bound = nil
	}
	s.bound = bound
	end := s.issuedAt().Add(recoveryLimit)
	if s.node == nil {
		return r.await(ctx, s, recoveryTimeout, end)
	}
	if err := r.uninitialize(ctx, s.node); err != nil {
		return 0, err
	}
	if s.node.Status.NodeInfo.BootID == s.claim.Annotations[v1.RebootPreBootIDAnnotationKey] {
		return r.await(ctx, s, recoveryTimeout, end)
	}
	if err := r.untaint(ctx, s.node); err != nil {
		return 0, err
	}
	r.Recorder.Publish(s.event(corev1.EventTypeNormal, "RebootObserved", "The instance has rebooted"))
	if !ready(s.node) {
		return r.await(ctx, s, recoveryTimeout, end)
	}
	return 0, r.succeed(ctx, s)
}

// issuedAt returns since when the instance reboots.
func (s *scope) issuedAt() time.Time {
	if c := conditions.Get(s.claim, v1.InitializedCondition); c != nil {
		return c.LastTransitionTime.Time
	}
	return s.requested
}

// await returns when to look again, and fails the reboot once the end has come.
func (r *Reconciler) await(ctx context.Context, s *scope, result string, end time.Time) (time.Duration, error) {
	if !s.now.Before(end) {
		why := errors.New("the instance did not become ready again within " + recoveryLimit.String())
		if s.node == nil {
			why = errors.New("the node is gone")
		}
		return 0, r.fail(ctx, s, result, why)
	}
	return min(poll, end.Sub(s.now)), nil
}

func (r *Reconciler) succeed(ctx context.Context, s *scope) error {
	recovery := s.now.Sub(s.issuedAt())
	if err := r.end(ctx, s, v1.RebootSucceededReason, ""); err != nil {
		return err
	}
	r.Metrics.ended(succeeded, s.now.Sub(s.requested))
	r.Metrics.recovery.Observe(recovery.Seconds())
	return nil
}

// end records that the reboot is over.
func (r *Reconciler) end(ctx context.Context, s *scope, reason, message string) error {
	stored := s.claim.DeepCopy()
	s.claim.StatusConditions(s.now).SetFalse(v1.RebootingCondition, reason, message)
	if err := r.Client.Status().Patch(ctx, s.claim, locked(stored)); err != nil {
		return err
	}
	return r.forget(ctx, s.claim)
}

// fail abandons the reboot. An invalid request leaves the NodeClaim alone.
// Otherwise the NodeClaim is deleted, with the time limit of the drain.
func (r *Reconciler) fail(ctx context.Context, s *scope, result string, why error) error {
	if s.node != nil {
		if err := r.untaint(ctx, s.node); err != nil {
			return err
		}
	}
	if result == invalidRequest {
		if err := r.end(ctx, s, v1.RebootFailedReason, why.Error()); err != nil {
			return err
		}
	} else if err := r.giveUp(ctx, s); err != nil {
		return err
	}
	r.Recorder.Publish(s.event(corev1.EventTypeWarning, "RebootFailed", "The instance could not be rebooted: "+why.Error()))
	r.Metrics.ended(result, s.now.Sub(s.requested))
	return nil
}

// giveUp deletes the NodeClaim.
func (r *Reconciler) giveUp(ctx context.Context, s *scope) error {
	if s.bound != nil {
		stored := s.claim.DeepCopy()
		if s.claim.Hurry(s.now.Add(*s.bound)) {
			if err := r.Client.Patch(ctx, s.claim, locked(stored)); err != nil {
				return err
			}
		}
	}
	version := s.claim.ResourceVersion
	return client.IgnoreNotFound(r.Client.Delete(ctx, s.claim, client.Preconditions{ResourceVersion: &version}))
}

// forget removes what was stored for a reboot that is over.
func (r *Reconciler) forget(ctx context.Context, claim *v1.NodeClaim) error {
	kept := maps.Clone(claim.Annotations)
	delete(kept, v1.RebootPreBootIDAnnotationKey)
	delete(kept, v1.RebootIssuingSinceAnnotationKey)
	if len(kept) == len(claim.Annotations) {
		return nil
	}
	stored := claim.DeepCopy()
	claim.Annotations = kept
	return r.Client.Patch(ctx, claim, locked(stored))
}

func (r *Reconciler) annotate(ctx context.Context, claim *v1.NodeClaim, with map[string]string) error {
	stored := claim.DeepCopy()
	claim.Annotations = maps.Clone(claim.Annotations)
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	maps.Copy(claim.Annotations, with)
	return r.Client.Patch(ctx, claim, locked(stored))
}

func (s *scope) event(kind, reason, message string) events.Event {
	return events.Event{
		Object: s.claim, Type: kind, Reason: reason, Message: message,
		Dedupe: []string{string(s.claim.UID), s.requested.UTC().Format(time.RFC3339)}, Timeout: 30 * time.Minute,
	}
}

// locked is a patch that fails when the object is not as it was read.
func locked(stored client.Object) client.Patch {
	return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
