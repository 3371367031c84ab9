// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/kube/join"
	"karpenter/kube/pods"
)

// EvictUntil queues those pods of the Node that are to leave next, in the order
// of a drain, and returns how many are still to leave. No pod is deleted by
// force: what is left at the time stays. Nil is no limit.
func (q *Queue) EvictUntil(ctx context.Context, node *corev1.Node, until *time.Time) (int, error) {
	list := &corev1.PodList{}
	if err := q.client.List(ctx, list, client.MatchingFields{join.PodNodeName: node.Name}); err != nil {
		return 0, fmt.Errorf("list pods of node %s: %w", node.Name, err)
	}
	now := q.clock.Now()
	var waiting []*corev1.Pod
	for i := range list.Items {
		if p := &list.Items[i]; pods.Waiting(p, now) {
			waiting = append(waiting, p)
		}
	}
	q.add(entry{deadline: until, stays: true}, slices.DeleteFunc(firstTier(waiting), pods.Terminating))
	return len(waiting), nil
}
