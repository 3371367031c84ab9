// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
)

// Boot creates the Nodes of launched machines, and deletes Nodes whose claim no
// longer exists. Requests are named after claims.
type Boot struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
}

// NewBoot returns the controller that belongs to New with the same Config.
func NewBoot(c Config) *Boot { return &Boot{client: c.Client, live: c.Live, clock: c.Clock} }

// SetupWithManager registers the controller.
func (b *Boot) SetupWithManager(mgr ctrl.Manager) error {
	const workers = 50
	return ctrl.NewControllerManagedBy(mgr).
		Named("kwok.boot").
		For(&v1.NodeClaim{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(claimOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(b)
}

func claimOf(_ context.Context, obj client.Object) []reconcile.Request {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return nil
	}
	if _, ours := nodeOf(node.Spec.ProviderID); !ours {
		return nil
	}
	ref, ok := owner(node)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: ref.Name}}}
}

// Reconcile boots the claim's machine when it is due, or deletes the Nodes of a
// claim that no longer exists.
func (b *Boot) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	claim := &v1.NodeClaim{}
	err := b.client.Get(ctx, req.NamespacedName, claim)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, b.collect(ctx, req.Name)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("read claim %s: %w", req.Name, err)
	}
	if !claim.DeletionTimestamp.IsZero() || !booting(claim) {
		return reconcile.Result{}, nil
	}
	wait, err := b.untilBoot(ctx, claim)
	if err != nil || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	return reconcile.Result{}, b.boot(ctx, claim)
}

// untilBoot is how much of the registration delay is left. A node class that
// has been deleted since the launch delays nothing.
func (b *Boot) untilBoot(ctx context.Context, claim *v1.NodeClaim) (time.Duration, error) {
	if claim.Spec.NodeClassRef == nil {
		return 0, nil
	}
	class := &kwokv1alpha1.KWOKNodeClass{}
	err := b.client.Get(ctx, client.ObjectKey{Name: claim.Spec.NodeClassRef.Name}, class)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("read node class %s: %w", claim.Spec.NodeClassRef.Name, err)
	}
	if class.Spec.NodeRegistrationDelay == nil {
		return 0, nil
	}
	return class.Spec.NodeRegistrationDelay.Duration - b.clock.Since(launchedAt(claim)), nil
}

// boot makes the Node unless it is there. The claim is read again without the
// cache first, because a Node made for a claim that is being deleted would
// have to be collected again.
func (b *Boot) boot(ctx context.Context, claim *v1.NodeClaim) error {
	node := newNode(claim)
	err := b.client.Get(ctx, client.ObjectKeyFromObject(node), &corev1.Node{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	now := &v1.NodeClaim{}
	err = b.live.Get(ctx, client.ObjectKeyFromObject(claim), now)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read claim %s: %w", claim.Name, err)
	}
	if err != nil || now.UID != claim.UID || !now.DeletionTimestamp.IsZero() || !booting(now) {
		return nil
	}
	err = b.client.Create(ctx, node)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create node %s: %w", node.Name, err)
	}
	log.FromContext(ctx).V(1).Info("booted", "Node", node.Name, "provider-id", node.Spec.ProviderID)
	return nil
}

// newNode is the Node of the claim's machine as its kubelet would register it.
func newNode(claim *v1.NodeClaim) *corev1.Node {
	name, _ := nodeOf(claim.Status.ProviderID)
	labels, annotations := maps.Clone(claim.Labels), maps.Clone(claim.Annotations)
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(labels, fixedLabels(claim))
	for old, current := range v1.DefaultLabels().Aliases {
		if value, ok := labels[current]; ok {
			labels[old] = value // as kubelets and clouds still do
		}
	}
	annotations[FakeKey] = FakeValue
	blocks := true
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      labels,
			Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion:         v1.Group + "/v1",
				Kind:               "NodeClaim",
				Name:               claim.Name,
				UID:                claim.UID,
				BlockOwnerDeletion: &blocks,
			}},
		},
		Spec: corev1.NodeSpec{
			ProviderID: claim.Status.ProviderID,
			Taints:     []corev1.Taint{v1.UnregisteredNoExecuteTaint()},
		},
		Status: corev1.NodeStatus{
			Phase:       corev1.NodePending,
			Capacity:    claim.Status.Capacity.DeepCopy(),
			Allocatable: claim.Status.Allocatable.DeepCopy(),
		},
	}
}

// collect deletes the Nodes of a claim that does not exist any more. A claim
// the cache does not know yet is looked up once more without it.
func (b *Boot) collect(ctx context.Context, claim string) error {
	nodes := &corev1.NodeList{}
	if err := b.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		ref, ok := owner(node)
		if _, ours := nodeOf(node.Spec.ProviderID); !ours || !ok || ref.Name != claim || !node.DeletionTimestamp.IsZero() {
			continue
		}
		now := &v1.NodeClaim{}
		err := b.live.Get(ctx, client.ObjectKey{Name: claim}, now)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read claim %s: %w", claim, err)
		}
		if err == nil && now.UID == ref.UID {
			continue
		}
		orphan := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
		err = b.client.Delete(ctx, orphan, client.Preconditions{UID: &node.UID})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete orphaned node %s: %w", node.Name, err)
		}
		log.FromContext(ctx).Info("deleted the node of a vanished claim", "Node", node.Name, "NodeClaim", claim)
	}
	return nil
}
