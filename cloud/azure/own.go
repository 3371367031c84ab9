// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// CheckBilling sees to it that AKS bills the virtual machines of all NodeClaims. If that
// cannot be had of one whose node has not registered, its NodeClaim goes.
func (p *Provider) CheckBilling(ctx context.Context) error {
	list := &v1.NodeClaimList{}
	if err := p.config.Client.List(ctx, list); err != nil {
		return fmt.Errorf("list NodeClaims: %w", err)
	}
	claims := map[string]*v1.NodeClaim{} // by name of the virtual machine
	var names []string
	for i := range list.Items {
		claim := &list.Items[i]
		if !claim.DeletionTimestamp.IsZero() || !cloud.Manages(p, claim.Spec.NodeClassRef) {
			continue
		}
		if p.hasVM(*claim) {
			_, name := p.fleetOf(claim.Status.ProviderID)
			claims[name] = claim
			names = append(names, name)
		}
	}
	refused, err := p.config.VMs.Bill(ctx, names)
	errs := []error{err}
	for name, why := range refused {
		errs = append(errs, why)
		if claim := claims[name]; !conditions.IsTrue(claim, v1.RegisteredCondition) {
			errs = append(errs, p.giveUp(ctx, claim, why))
		}
	}
	return errors.Join(errs...)
}

// SweepInterfaces deletes network interfaces that belong to no virtual machine and no
// NodeClaim.
func (p *Provider) SweepInterfaces(ctx context.Context) error {
	uids, err := p.uids(ctx)
	if err != nil {
		return err
	}
	var claims []string
	for name := range uids {
		claims = append(claims, name)
	}
	return p.config.VMs.SweepInterfaces(ctx, claims)
}
