package disruption

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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/kube/join"
	"karpenter/kube/pods"
	"karpenter/model"
)

// parallel is how many nodes are worked on at once.
const parallel = 20

// execution is a removal that has been started: its node is tainted and marked.
type execution struct {
	removal removal
	since   time.Time
}

// timeLimit is how long an execution may take when so many are under way.
func timeLimit(executions int) time.Duration {
	return min(max(80*time.Millisecond*time.Duration(executions), 10*time.Minute), time.Hour)
}

// start taints and marks the nodes of the removals and returns how many it
// started. Those it could not mark stay due.
func (l *Loop) start(ctx context.Context, s *scope, due []removal) (int, error) {
	due = slices.DeleteFunc(due, func(r removal) bool {
		claim := s.claims[r.Claim]
		return claim == nil || claim.DeletionTimestamp != nil
	})
	errs := make([]error, len(due))
	each(len(due), func(i int) {
		claim := s.claims[due[i].Claim]
		if err := l.mark(ctx, claim, s.nodeOf(claim), due[i].Reason); err != nil {
			errs[i] = fmt.Errorf("mark node claim %s: %w", claim.Name, err)
		}
	})
	var started []removal
	for i, r := range due {
		if errs[i] == nil {
			started = append(started, r)
		}
	}
	if len(started) == 0 {
		return 0, errors.Join(errs...)
	}
	if l.executing == nil {
		l.executing = map[string]execution{}
	}
	for _, r := range started {
		l.World.MarkForDeletion(r.Claim)
		l.executing[r.Claim] = execution{removal: r, since: s.now}
		delete(l.intents, r.Claim)
	}
	l.report(ctx, s, started)
	return len(started), errors.Join(errs...)
}

// mark says on the objects that they are about to go. A Node that is gone
// already needs no mark.
func (l *Loop) mark(ctx context.Context, claim *v1.NodeClaim, node *corev1.Node, reason model.Reason) error {
	taint := v1.DisruptedNoScheduleTaint()
	if node != nil && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
		tainted := node.DeepCopy()
		tainted.Spec.Taints = append(tainted.Spec.Taints, taint)
		if err := l.Client.Patch(ctx, tainted, locked(node)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	told := claim.DeepCopy()
	if !told.StatusConditions(l.Clock.Now()).SetTrueWithReason(v1.DisruptionReasonCondition, string(reason), string(reason)) {
		return nil
	}
	return client.IgnoreNotFound(l.Client.Status().Patch(ctx, told, locked(claim)))
}

// locked is a patch that fails when the object is not as it was read.
func locked(stored client.Object) client.Patch {
	return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
}

// finish deletes the claims of all executions; those that fail are tried
// again in later passes, up to a time limit.
func (l *Loop) finish(ctx context.Context, s *scope) error {
	names := slices.Sorted(maps.Keys(l.executing))
	errs := make([]error, len(names))
	deleted := make([]bool, len(names))
	each(len(names), func(i int) { deleted[i], errs[i] = l.remove(ctx, s.claims[names[i]]) })
	limit := timeLimit(len(names))
	for i, name := range names {
		x := l.executing[name]
		switch {
		case errs[i] == nil:
			delete(l.executing, name)
		case s.now.Sub(x.since) > limit:
			log.FromContext(ctx).Error(errs[i], "gave up disrupting node", "NodeClaim", name, "after", limit.String())
			l.World.Unmark(name)
			delete(l.executing, name)
		}
		if deleted[i] {
			l.reportDeletion(ctx, s, x.removal)
		}
	}
	return errors.Join(errs...)
}

// remove deletes the claim and reports whether it did so: nil stands for a
// claim that is gone already.
func (l *Loop) remove(ctx context.Context, claim *v1.NodeClaim) (bool, error) {
	if claim == nil || claim.DeletionTimestamp != nil {
		return false, nil
	}
	uid := claim.UID
	err := l.Client.Delete(ctx, claim.DeepCopy(), client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete node claim %s: %w", claim.Name, err)
	}
	return true, nil
}

// reschedulable counts the pods of the node that need another place. Pods that
// cannot be listed count as none.
func (l *Loop) reschedulable(ctx context.Context, node *corev1.Node) int {
	if node == nil {
		return 0
	}
	list := &corev1.PodList{}
	if err := l.Client.List(ctx, list, client.MatchingFields{join.PodNodeName: node.Name}); err != nil {
		return 0
	}
	n := 0
	for i := range list.Items {
		if pods.Reschedulable(&list.Items[i]) {
			n++
		}
	}
	return n
}

// each calls do for 0 to n-1, several at once.
func each(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
}
