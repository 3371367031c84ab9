// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud/loop"
)

const (
	// launchesPeriod is how often launches that AKS has accepted are looked after.
	launchesPeriod = 10 * time.Second
	// billingPeriod is how often virtual machines are looked for that AKS does not bill.
	billingPeriod = 30 * time.Second
	// interfacesPeriod is how often network interfaces are looked for that were left behind.
	interfacesPeriod = 5 * time.Minute
	// tagsLater is when tags are tried again of a claim whose node has not registered.
	tagsLater = time.Minute
	// tagWorkers is how many claims get their tags at once.
	tagWorkers = 10
)

// Register adds the controllers of NodeClaims that only Azure needs to the manager.
func (p *Provider) Register(mgr manager.Manager) error {
	var own error
	if p.config.VMs != nil {
		own = errors.Join(
			loop.Every(mgr, "nodeclaim.billing", billingPeriod, p.CheckBilling),
			loop.Every(mgr, "networkinterface.garbagecollection", interfacesPeriod, p.SweepInterfaces),
		)
	}
	return errors.Join(
		own,
		loop.Every(mgr, "nodeclaim.launches", launchesPeriod, p.CheckLaunches),
		builder.ControllerManagedBy(mgr).
			Named("nodeclaim.inplaceupdate").
			For(&v1.NodeClaim{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Watches(&v1beta1.AKSNodeClass{}, handler.EnqueueRequestsFromMapFunc(p.claimsOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			WithOptions(controller.Options{MaxConcurrentReconciles: tagWorkers}).
			Complete(tagging{p}),
		builder.ControllerManagedBy(mgr).
			Named("nodeclaim.preemption").
			For(&corev1.Node{}, builder.WithPredicates(announced())).
			Complete(preempting{p}),
	)
}

// claimsOf names the claims of a class.
func (p *Provider) claimsOf(ctx context.Context, class client.Object) []reconcile.Request {
	list := &v1.NodeClaimList{}
	if err := p.config.Client.List(ctx, list); err != nil {
		return nil // the cache is not there yet: each claim comes by itself
	}
	var out []reconcile.Request
	for i := range list.Items {
		if ref := list.Items[i].Spec.NodeClassRef; ref != nil && ref.Kind == v1beta1.Kind && ref.Group == v1beta1.Group && ref.Name == class.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// tagging is the controller nodeclaim.inplaceupdate.
type tagging struct{ *Provider }

// Reconcile brings the tags of one claim's machine up to date.
func (t tagging) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &v1.NodeClaim{}
	if err := t.config.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	done, err := t.Update(ctx, claim)
	if err != nil || done {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: tagsLater}, nil
}
