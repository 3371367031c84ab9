package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/kube/join"
	"karpenter/kube/meter"
	"karpenter/kube/pods"
	"karpenter/model"
)

// parallel is how many nodes are worked on at once.
const parallel = 20

// execution is a removal that has been started: its node is tainted and marked.
type execution struct {
	removal model.Removal
	since   time.Time
}

// timeLimit is how long an execution may take when so many are under way.
func timeLimit(executions int) time.Duration {
	return min(max(80*time.Millisecond*time.Duration(executions), 10*time.Minute), time.Hour)
}

// start taints and marks the nodes of the removals and returns how many it
// started. Those it could not mark stay due.
func (l *Loop) start(ctx context.Context, s *scope, due []model.Removal) (int, error) {
	marked := make([]bool, len(due))
	err := each(len(due), func(i int) error {
		claim := s.claims[due[i].Claim]
		if claim == nil || claim.DeletionTimestamp != nil {
			return nil
		}
		if err := l.mark(ctx, claim, s.nodeOf(claim), due[i].Reason); err != nil {
			return fmt.Errorf("mark node claim %s: %w", claim.Name, err)
		}
		marked[i] = true
		return nil
	})
	var started []model.Removal
	for i, r := range due {
		if marked[i] {
			started = append(started, r)
		}
	}
	if len(started) == 0 {
		return 0, err
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
	return len(started), err
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
	executions := make([]execution, 0, len(l.executing))
	for _, x := range l.executing {
		executions = append(executions, x)
	}
	done := make([]bool, len(executions))
	err := each(len(executions), func(i int) error {
		claim := s.claims[executions[i].removal.Claim]
		if claim == nil || claim.DeletionTimestamp != nil {
			done[i] = true
			return nil
		}
		err := l.remove(ctx, s, claim, executions[i].removal.Reason)
		done[i] = err == nil
		return err
	})
	limit := timeLimit(len(executions))
	for i, x := range executions {
		switch {
		case done[i]:
			delete(l.executing, x.removal.Claim)
		case s.now.Sub(x.since) > limit:
			log.FromContext(ctx).Error(errors.New("deletion kept failing"), "gave up disrupting node", "NodeClaim", x.removal.Claim, "after", limit.String())
			l.World.Unmark(x.removal.Claim)
			delete(l.executing, x.removal.Claim)
		}
	}
	return err
}

// remove deletes the claim, and counts and tells that.
func (l *Loop) remove(ctx context.Context, s *scope, claim *v1.NodeClaim, reason model.Reason) error {
	rescheduled := l.reschedulable(ctx, s.nodeOf(claim))
	uid := claim.UID
	err := l.Client.Delete(ctx, claim.DeepCopy(), client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete node claim %s: %w", claim.Name, err)
	}
	l.Events.Publish(terminating(claim, reason))
	if node := s.nodeOf(claim); node != nil {
		l.Events.Publish(terminating(node, reason))
	}
	policy := ""
	if pool := s.pools[claim.Labels[v1.NodePoolLabelKey]]; pool != nil && reason != model.Drifted {
		policy = snake(string(pool.Spec.Disruption.ConsolidationPolicy))
	}
	l.Disruptions.Count(meter.Disruption{Claim: claim, Reason: snake(string(reason)), Policy: policy, Pods: rescheduled})
	return nil
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

// each calls do for 0 to n-1, several at once, and returns what failed.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error {
			errs[i] = do(i)
			return nil
		})
	}
	return errors.Join(append(errs, group.Wait())...)
}
