// SPDX-License-Identifier: Apache-2.0

// Package consistency compares the expected capacity of an instance with the
// capacity that its Node reports. If the Node has less, it reports that in a
// condition of the NodeClaim. It never deletes anything.
package consistency

import (
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/events"
	"karpenter/kube/join"
)

const (
	// period is the shortest time between two checks of a claim.
	period = 10 * time.Minute
	// tolerated is how much of the expected capacity is enough: kernels and
	// hypervisors keep some for themselves.
	tolerated = 0.90
)

// Reconciler is the controller nodeclaim.consistency. All fields are
// required; Client serves the indexes of package join.
type Reconciler struct {
	Client   client.Client
	Provider cloud.Provider
	Clock    clock.PassiveClock
	Recorder events.Recorder
	// FewerDevices says of which drivers the node of the NodeClaim has published fewer devices than
	// its instance type has.
	FewerDevices func(claim string) []string

	checked checks
}

// Register adds the controller to the manager.
func (r *Reconciler) Register(mgr manager.Manager, options controller.Options) error {
	managed := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return cloud.Manages(r.Provider, o.(*v1.NodeClaim).Spec.NodeClassRef)
	})
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.consistency").
		For(&v1.NodeClaim{}, builder.WithPredicates(managed)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.claimOf)).
		WithOptions(options).
		Complete(r)
}

func (r *Reconciler) claimOf(ctx context.Context, o client.Object) []reconcile.Request {
	claims, err := join.ClaimsOf(ctx, r.Client, o.(*corev1.Node))
	if err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range claims {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&claims[i])})
	}
	return out
}

// Reconcile checks one claim, unless it has been checked recently.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &v1.NodeClaim{}
	if err := r.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		if apierrors.IsNotFound(err) {
			r.checked.forget(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !cloud.Manages(r.Provider, claim.Spec.NodeClassRef) || claim.Status.ProviderID == "" {
		return reconcile.Result{}, nil
	}
	if nodes, err := join.NodesOf(ctx, r.Client, claim); err != nil || len(nodes) > 1 {
		r.reportDuplicates(claim, nodes)
		return reconcile.Result{RequeueAfter: period}, err
	}
	now := r.Clock.Now()
	if left := r.checked.at(claim).Add(period).Sub(now); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	node, err := join.NodeOf(ctx, r.Client, claim)
	if errors.Is(err, join.ErrNotFound) || errors.Is(err, join.ErrDuplicate) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	stored := claim.DeepCopy()
	checked := r.judge(ctx, claim, node)
	if err := r.persist(ctx, stored, claim); apierrors.IsConflict(err) {
		return reconcile.Result{Requeue: true}, nil
	} else if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !checked {
		// The first real check is not to wait for a period that began with
		// nothing to be checked.
		return reconcile.Result{}, nil
	}
	r.checked.note(claim, now)
	return reconcile.Result{RequeueAfter: period}, nil
}

// judge sets the condition of the claim, and reports whether there was anything
// to check.
func (r *Reconciler) judge(ctx context.Context, claim *v1.NodeClaim, node *corev1.Node) bool {
	set := claim.StatusConditions(r.Clock.Now())
	if !claim.DeletionTimestamp.IsZero() || !set.IsTrue(v1.InitializedCondition) {
		set.SetTrue(v1.ConsistentStateFoundCondition)
		return false
	}
	issues := append(shortages(claim, node), r.FewerDevices(claim.Name)...)
	if err := unreadable.Error(claim); err != nil {
		issues = append(issues, err.Error()+"; the field is treated as if it were not set")
	}
	if len(issues) == 0 {
		set.SetTrue(v1.ConsistentStateFoundCondition)
		return true
	}
	for _, issue := range issues {
		log.FromContext(ctx).Info("node is not what was expected", "issue", issue)
		r.Recorder.Publish(failedCheck(claim, issue))
	}
	set.SetFalse(v1.ConsistentStateFoundCondition, v1.ConsistencyCheckFailedReason, strings.Join(issues, "; "))
	return true
}

func (r *Reconciler) persist(ctx context.Context, stored, claim *v1.NodeClaim) error {
	if equality.Semantic.DeepEqual(stored.Status, claim.Status) {
		return nil
	}
	return r.Client.Status().Patch(ctx, claim, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
}

// shortages describes the requested resources of which the node has clearly
// less than expected, by name.
func shortages(claim *v1.NodeClaim, node *corev1.Node) []string {
	var out []string
	for name, requested := range claim.Spec.Resources.Requests {
		expected := claim.Status.Capacity[name]
		if requested.IsZero() || expected.IsZero() {
			continue
		}
		found := node.Status.Capacity[name]
		if share := found.AsApproximateFloat64() / expected.AsApproximateFloat64(); share < tolerated {
			out = append(out, fmt.Sprintf("expected %s of resource %s, but found %s (%.1f%% of expected)",
				expected.String(), name, found.String(), share*100))
		}
	}
	slices.Sort(out)
	return out
}

func failedCheck(claim *v1.NodeClaim, issue string) events.Event {
	return events.Event{
		Object:  claim,
		Type:    corev1.EventTypeWarning,
		Reason:  "FailedConsistencyCheck",
		Message: issue,
		Dedupe:  []string{string(claim.UID), issue},
	}
}

// checks remembers when claims were checked. The zero value is ready for use;
// it is safe for concurrent use.
type checks struct {
	mu   sync.Mutex
	last map[string]check // by name of the claim
}

type check struct {
	uid types.UID
	at  time.Time
}

// at returns when the claim was checked, the zero time for never.
func (c *checks) at(claim *v1.NodeClaim) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.last[claim.Name]; last.uid == claim.UID {
		return last.at
	}
	return time.Time{}
}

func (c *checks) note(claim *v1.NodeClaim, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[string]check{}
	}
	c.last[claim.Name] = check{uid: claim.UID, at: at}
}

func (c *checks) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, name)
}
