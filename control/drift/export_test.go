// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
)

// Deleted lets the watch of claims see that the claim begins to be deleted now,
// and then is gone.
func (r *Rollout) Deleted(claim *v1.NodeClaim) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	now := claim.DeepCopy()
	now.DeletionTimestamp = claim.CreationTimestamp.DeepCopy()
	now.DeletionTimestamp.Time = r.Clock.Now()
	r.gather().Update(context.Background(), event.UpdateEvent{ObjectOld: claim, ObjectNew: now}, queue)
	r.gather().Delete(context.Background(), event.DeleteEvent{Object: now}, queue)
}

// Joined lets the watch of claims see that the claim has become a node.
func (r *Rollout) Joined(claim *v1.NodeClaim) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	before := claim.DeepCopy()
	before.Status.Conditions = nil
	r.gather().Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: claim}, queue)
}
