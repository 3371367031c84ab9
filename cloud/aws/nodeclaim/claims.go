// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud/aws"
)

// Claims are the NodeClaims of the cluster. All fields are required; it may be
// used concurrently.
type Claims struct {
	Client client.Client // may read from a cache
	Live   client.Reader // must not
	// Tell publishes an event about a claim or a Node.
	Tell func(object client.Object, eventType, reason, message string)
	// Disrupted counts a claim that was deleted, and why.
	Disrupted func(ctx context.Context, claim *v1.NodeClaim, reason string)
}

// Of reports whether the claim is for an EC2 instance.
func Of(claim *v1.NodeClaim) bool {
	ref := claim.Spec.NodeClassRef
	return ref != nil && ref.Group == awsv1.Group && ref.Kind == awsv1.Kind
}

// ByInstance returns the claims that have an instance, by its ID. They may be
// shared with a cache and must not be changed.
func (c *Claims) ByInstance(ctx context.Context) (map[string]*v1.NodeClaim, error) {
	list := &v1.NodeClaimList{}
	if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list node claims: %w", err)
	}
	out := make(map[string]*v1.NodeClaim, len(list.Items))
	for i := range list.Items {
		claim := &list.Items[i]
		if id, ok := aws.InstanceID(claim.Status.ProviderID); ok && Of(claim) {
			out[id] = claim
		}
	}
	return out, nil
}

// Node returns the claim's Node, nil if there is none (or another one of its
// name). It belongs to the caller.
func (c *Claims) Node(ctx context.Context, claim *v1.NodeClaim) (*corev1.Node, error) {
	if claim.Status.NodeName == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the node of node claim %s: %w", claim.Name, err)
	case node.Spec.ProviderID != claim.Status.ProviderID:
		return nil, nil
	}
	return node, nil
}

// Notify publishes an event about the claim, and one about its Node. If the
// Node cannot be read, it gets no event.
func (c *Claims) Notify(ctx context.Context, claim *v1.NodeClaim, e Event) {
	c.Tell(claim, e.Type, e.Reason, e.Message)
	if node, err := c.Node(ctx, claim); err == nil && node != nil {
		message := e.Message
		if e.NodeMessage != "" {
			message = e.NodeMessage
		}
		c.Tell(node, e.Type, e.Reason, message)
	}
}

// Event is what Notify publishes.
type Event struct {
	Type, Reason, Message string
	NodeMessage           string // "" = Message
}

// Delete deletes the claim, so that its Node is drained. It reports whether it
// has done so, and not someone else before. It does not modify the value of the
// claim.
func (c *Claims) Delete(ctx context.Context, claim *v1.NodeClaim, reason string) (deleted bool, err error) {
	claim = claim.DeepCopy()
	for claim.DeletionTimestamp.IsZero() {
		// Delete only the version that was read, so that no claim is counted
		// twice: the cache may not show a deletion yet.
		uid, version := claim.UID, claim.ResourceVersion
		err := c.Client.Delete(ctx, claim, client.Preconditions{UID: &uid, ResourceVersion: &version})
		switch {
		case err == nil:
			log.FromContext(ctx).Info("deleted node claim", "NodeClaim", claim.Name, "reason", reason, "provider-id", claim.Status.ProviderID)
			c.Disrupted(ctx, claim, reason)
			return true, nil
		case apierrors.IsNotFound(err):
			return false, nil
		case !apierrors.IsConflict(err):
			return false, fmt.Errorf("delete node claim %s: %w", claim.Name, err)
		}
		if claim, err = c.latest(ctx, claim); claim == nil {
			return false, err
		}
	}
	return false, nil
}

// latest returns the claim as the API server has it, nil if it is gone.
func (c *Claims) latest(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	now := &v1.NodeClaim{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(claim), now)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if now.UID != claim.UID {
		return nil, nil
	}
	return now, nil
}

// Recommend records on the claim that AWS recommends replacing its instance,
// unless that is recorded already or the claim is being deleted.
func (c *Claims) Recommend(ctx context.Context, claim *v1.NodeClaim, now time.Time) error {
	if claim.Annotations[v1.RebalanceRecommendedAnnotationKey] != "" || !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	_, err := c.annotate(ctx, claim, v1.RebalanceRecommendedAnnotationKey, now)
	return err
}

// annotate writes a time on the claim. It returns the claim as it is then, nil if it
// is gone.
func (c *Claims) annotate(ctx context.Context, claim *v1.NodeClaim, key string, at time.Time) (*v1.NodeClaim, error) {
	marked := claim.DeepCopy()
	if marked.Annotations == nil {
		marked.Annotations = map[string]string{}
	}
	marked.Annotations[key] = at.UTC().Format(time.RFC3339)
	err := c.Client.Patch(ctx, marked, client.MergeFrom(claim))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("annotate node claim %s with %s: %w", claim.Name, key, err)
	}
	return marked, nil
}

// Hurry sets the deadline of the claim's drain to now, so that its Node is
// drained by force when the claim is deleted, or at once if it is deleted
// already. A deadline that has passed stays. Hurry returns the updated claim,
// or nil if it is gone.
func (c *Claims) Hurry(ctx context.Context, claim *v1.NodeClaim, now time.Time) (*v1.NodeClaim, error) {
	deadline, err := time.Parse(time.RFC3339, claim.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey])
	if err == nil && !deadline.After(now) {
		return claim, nil
	}
	return c.annotate(ctx, claim, v1.NodeClaimTerminationTimestampAnnotationKey, now)
}
