package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
)

// recover takes back the marks of removals that are not under way: this
// process gave them up, or an earlier one ended before it could finish them.
func (l *Loop) recover(ctx context.Context, s *scope) error {
	var stale []*v1.NodeClaim
	for name, n := range s.managed {
		_, executing := l.executing[name]
		claim := s.claims[name]
		if executing || n.Deleting || claim == nil || claim.DeletionTimestamp != nil {
			continue
		}
		stale = append(stale, claim)
	}
	errs := make([]error, len(stale))
	each(len(stale), func(i int) {
		node := s.nodeOf(stale[i])
		if node == nil || node.DeletionTimestamp != nil {
			return
		}
		if err := l.unmark(ctx, stale[i], node); err != nil {
			errs[i] = fmt.Errorf("take back disruption of node %s: %w", node.Name, err)
		}
	})
	return errors.Join(errs...)
}

func (l *Loop) unmark(ctx context.Context, claim *v1.NodeClaim, node *corev1.Node) error {
	taint := v1.DisruptedNoScheduleTaint()
	ours := func(t corev1.Taint) bool { return t.MatchTaint(&taint) }
	if slices.ContainsFunc(node.Spec.Taints, ours) {
		free := node.DeepCopy()
		free.Spec.Taints = slices.DeleteFunc(free.Spec.Taints, ours)
		if err := l.Client.Patch(ctx, free, locked(node)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if node.Labels[v1.NodeInitializedLabelKey] != "true" || conditions.Get(claim, v1.DisruptionReasonCondition) == nil {
		return nil
	}
	silent := claim.DeepCopy()
	if err := silent.StatusConditions(l.Clock.Now()).Clear(v1.DisruptionReasonCondition); err != nil {
		return err
	}
	return client.IgnoreNotFound(l.Client.Status().Patch(ctx, silent, locked(claim)))
}
