// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/vm"
)

// CheckBilling sees to it that AKS bills the virtual machines of all NodeClaims, of those
// that are being deleted, too: a drain can take long. If that cannot be had of one, its
// NodeClaim goes.
func (p *Provider) CheckBilling(ctx context.Context) error {
	list := &v1.NodeClaimList{}
	if err := p.config.Client.List(ctx, list); err != nil {
		return fmt.Errorf("list NodeClaims: %w", err)
	}
	claims := map[string]*v1.NodeClaim{} // by name of the virtual machine
	var names []string
	for i := range list.Items {
		claim := &list.Items[i]
		if cloud.Manages(p, claim.Spec.NodeClassRef) && p.hasVM(claim) {
			_, name := p.fleetOf(claim.Status.ProviderID)
			claims[name] = claim
			names = append(names, name)
		}
	}
	refused, err := p.config.VMs.Bill(ctx, names)
	errs := []error{err}
	for name, why := range refused {
		if claim := claims[name]; claim.DeletionTimestamp.IsZero() {
			errs = append(errs, why, p.giveUp(ctx, claim, why))
		}
	}
	return errors.Join(errs...)
}

// SweepInterfaces deletes network interfaces that belong to no virtual machine and no
// NodeClaim. NodeClaims are read last: there was one before each network interface.
func (p *Provider) SweepInterfaces(ctx context.Context) error {
	unattached, err := p.config.VMs.Unattached(ctx, p.config.Cluster)
	if isDenied(err) && !p.config.NewVMs {
		return nil // this process may not see what it has never made
	}
	if err != nil || len(unattached) == 0 {
		return err
	}
	claims, err := p.claims(ctx)
	if err != nil {
		return err
	}
	used := map[string]bool{}
	for name := range claims {
		used[vm.Name(name)] = true
	}
	var errs []error
	for _, name := range unattached {
		if !used[name] {
			errs = append(errs, p.config.VMs.Abandon(ctx, name))
		}
	}
	return errors.Join(errs...)
}
