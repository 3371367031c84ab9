// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/machine"
)

// The event about a launch that Azure accepted and that failed later.
const (
	asyncReason  = "AsyncProvisioningError"
	longestCause = 500 // characters
	// asyncDisruption is the reason in metrics.
	asyncDisruption = "async_provisioning"
)

// CheckLaunches looks after instances that Azure has accepted and whose nodes have not
// registered. Of those whose creation has failed, it notes what is short, and
// deletes the machine and the NodeClaim, so that the pods are planned again; of those
// that somebody else has deleted, or whose state Azure does not tell for long, the NodeClaim. As
// everything else it needs is in the API server and in Azure, a restart loses only how often
// Azure has told no state. It calls Azure only while such NodeClaims exist. One call follows
// the other.
func (p *Provider) CheckLaunches(ctx context.Context) error {
	waiting, err := p.unregistered(ctx)
	if err != nil || len(waiting) == 0 {
		return err
	}
	found := map[string]*machine.Machine{}
	for _, of := range p.fleets() {
		if !p.has(of, waiting) {
			continue
		}
		machines, err := of.List(ctx)
		if err != nil {
			return err
		}
		for _, m := range machines {
			found[machine.ProviderID(m.VM)] = m
		}
	}
	var errs []error
	stateless := map[types.UID]int{}
	for _, claim := range waiting {
		known, err := p.check(ctx, claim, found[claim.Status.ProviderID])
		if err == nil && !known {
			if stateless[claim.UID] = p.stateless[claim.UID] + 1; stateless[claim.UID] > mostStateless {
				err = p.giveUp(ctx, claim, fmt.Errorf("Azure does not tell the state of the machine of NodeClaim %s", claim.Name))
			}
		}
		errs = append(errs, err)
	}
	p.stateless = stateless
	return errors.Join(errs...)
}

// mostStateless is how often in a row Azure may tell no state of a machine.
const mostStateless = 10

// check gives the launch of a claim up that has failed, or whose machine somebody
// else has deleted. The machine is nil if it is not listed. Known is false if Azure tells
// no state of it.
func (p *Provider) check(ctx context.Context, claim *v1.NodeClaim, m *machine.Machine) (known bool, err error) {
	goes := !claim.DeletionTimestamp.IsZero() // and its machine with it
	switch {
	case goes && (m == nil || m.State != machine.Failed):
		return true, nil
	case m == nil: // lists may lag behind
		_, m, err = p.byProviderID(ctx, claim.Status.ProviderID)
	}
	switch {
	case cloud.IsNotFound(err), err == nil && (m.Gone || m.State == machine.Deleting):
		return true, p.giveUp(ctx, claim, fmt.Errorf("the machine of NodeClaim %s was deleted before its node registered", claim.Name))
	case err != nil:
		return false, err
	case m.State == machine.Failed:
		return true, p.giveUp(ctx, claim, p.failed(ctx, m, claim))
	}
	return m.State != "", nil
}

// unregistered returns the claims whose nodes have not registered, by name.
func (p *Provider) unregistered(ctx context.Context) (map[string]*v1.NodeClaim, error) {
	list := &v1.NodeClaimList{}
	if err := p.config.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	out := map[string]*v1.NodeClaim{}
	for i := range list.Items {
		claim := &list.Items[i]
		launched := claim.Status.ProviderID != "" && !conditions.IsTrue(claim, v1.RegisteredCondition)
		if launched && cloud.Manages(p, claim.Spec.NodeClassRef) {
			out[claim.Name] = claim
		}
	}
	return out, nil
}

// giveUp deletes a claim whose launch has come to nothing.
func (p *Provider) giveUp(ctx context.Context, claim *v1.NodeClaim, why error) error {
	p.config.Event(claim, corev1.EventTypeWarning, asyncReason, "Failed to register: "+cut(why.Error()))
	_, gone := p.end(ctx, claim, asyncDisruption)
	return gone
}

// end deletes the claim, unless that has been done, and counts it under the reason.
func (p *Provider) end(ctx context.Context, claim *v1.NodeClaim, reason string) (ended bool, err error) {
	if !claim.DeletionTimestamp.IsZero() {
		return false, nil
	}
	uid := claim.UID
	err = p.config.Client.Delete(ctx, claim, &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete NodeClaim %s (%s): %w", claim.Name, reason, err)
	}
	p.config.Disrupted(ctx, claim, reason)
	return true, nil
}

// cut shortens the text of an error for an event.
func cut(text string) string {
	if utf8.RuneCountInString(text) <= longestCause {
		return text
	}
	return string([]rune(text)[:longestCause]) + "..."
}
