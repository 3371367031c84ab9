// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws"
	"karpenter/cloud/aws/instance"
)

// tagPause is the least time between two calls that tag.
const tagPause = time.Second

// Tagging is the controller nodeclaim.tagging. All fields are required.
type Tagging struct {
	Client  client.Client
	Clock   clock.PassiveClock
	Cluster string // its name
	// Instances are described and tagged; instance.Instances does.
	Instances interface {
		Read(ctx context.Context, id string) (*instance.Instance, error)
		Tag(ctx context.Context, id string, tags map[string]string) error
	}

	next time.Time // when the next call may tag
}

// Register adds the controller to the manager. It tags one instance at a time,
// regardless of the options.
func (t *Tagging) Register(mgr manager.Manager, options controller.Options) error {
	options.MaxConcurrentReconciles = 1
	return builder.ControllerManagedBy(mgr).
		Named("nodeclaim.tagging").
		For(&v1.NodeClaim{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return untagged(o.(*v1.NodeClaim))
		}))).
		WithOptions(options).
		Complete(t)
}

// tagged are the annotations that say that the tags are there.
func tagged() map[string]string {
	return map[string]string{awsv1.TaggedAnnotationKey: "true", awsv1.ClusterNameTaggedAnnotationKey: "true"}
}

// untagged reports whether the claim has a node and its instance lacks tags, as
// far as is known.
func untagged(claim *v1.NodeClaim) bool {
	if !Of(claim) || claim.Status.NodeName == "" || !claim.DeletionTimestamp.IsZero() {
		return false
	}
	for key, value := range tagged() {
		if claim.Annotations[key] != value {
			return true
		}
	}
	return false
}

// Reconcile tags the instance of one claim. Tags that users have set stay.
func (t *Tagging) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &v1.NodeClaim{}
	if err := t.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !untagged(claim) {
		return reconcile.Result{}, nil
	}
	if wait := t.next.Sub(t.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	id, ok := aws.InstanceID(claim.Status.ProviderID)
	if !ok {
		log.FromContext(ctx).Info("not tagging the instance of a node claim whose provider ID is of no EC2 instance", "provider-id", claim.Status.ProviderID)
		return reconcile.Result{}, nil
	}
	if err := t.tag(ctx, claim, id); err != nil {
		if cloud.IsNotFound(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("tag the instance of node claim %s: %w", claim.Name, err)
	}
	stored := claim.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	maps.Copy(claim.Annotations, tagged())
	return reconcile.Result{}, client.IgnoreNotFound(t.Client.Patch(ctx, claim, client.MergeFrom(stored)))
}

// tag adds the tags that the instance lacks.
func (t *Tagging) tag(ctx context.Context, claim *v1.NodeClaim, id string) error {
	found, err := t.Instances.Read(ctx, id)
	if err != nil {
		return err
	}
	tags := map[string]string{
		awsv1.NameTagKey:        claim.Status.NodeName,
		awsv1.NodeClaimTagKey:   claim.Name,
		awsv1.ClusterNameTagKey: t.Cluster,
	}
	maps.DeleteFunc(tags, func(key, _ string) bool { _, is := found.Tags[key]; return is })
	if len(tags) == 0 {
		return nil
	}
	t.next = t.Clock.Now().Add(tagPause)
	return t.Instances.Tag(ctx, id, tags)
}
