// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

const (
	// preempted is the reason in metrics.
	preempted = "spot_interrupted"
	// preemptedFor is how long an offering counts as short of which Azure takes
	// instances back.
	preemptedFor = 3 * time.Minute
)

// preempting is the controller nodeclaim.preemption. A node problem detector of AKS
// reads the scheduled events of spot virtual machines, and sets a condition on the
// Node half a minute before the eviction, and when Azure recommends to rebalance.
// The NodeClaim is deleted then, so that the pods are planned again and move while
// there is time; node repair and its limits are not needed for it.
type preempting struct{ *Provider }

// announced selects the Nodes whose eviction is announced.
func announced() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		node, ok := o.(*corev1.Node)
		return ok && preemptionIsScheduled(node)
	})
}

func preemptionIsScheduled(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == preemptionScheduled {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Reconcile gives up the claim of a Node whose eviction is announced.
func (p preempting) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node := &corev1.Node{}
	if err := p.config.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !preemptionIsScheduled(node) || node.Spec.ProviderID == "" {
		return reconcile.Result{}, nil
	}
	list := &v1.NodeClaimList{}
	if err := p.config.Client.List(ctx, list); err != nil {
		return reconcile.Result{}, err
	}
	for i := range list.Items {
		if claim := &list.Items[i]; claim.Status.ProviderID == node.Spec.ProviderID && claim.DeletionTimestamp.IsZero() {
			return reconcile.Result{}, p.preempt(ctx, claim, node)
		}
	}
	return reconcile.Result{}, nil
}

// preempt notes that spot is short where the claim's machine is, and ends the claim.
func (p preempting) preempt(ctx context.Context, claim *v1.NodeClaim, node *corev1.Node) error {
	p.tell(claim, node, "SpotInterrupted", "Spot interruption warning was triggered")
	facts, zone := p.config.Facts(claim.Labels[model.LabelInstanceType]), claim.Labels[model.LabelZone]
	if now := p.config.Clock.Now(); facts != nil && zone != "" && claim.Labels[model.LabelCapacityType] == model.Spot {
		p.config.Shortages.Size(&facts.SKU, zone, model.Spot, now.Add(preemptedFor), now)
	}
	ended, err := p.end(ctx, claim, preempted)
	if ended {
		p.tell(claim, node, "TerminatingOnInterruption", "Interruption triggered termination for the NodeClaim")
	}
	return err
}

// tell publishes an event about the claim and its Node.
func (p preempting) tell(claim *v1.NodeClaim, node *corev1.Node, reason, message string) {
	p.config.Event(claim, corev1.EventTypeWarning, reason, message)
	p.config.Event(node, corev1.EventTypeWarning, reason, message)
}
