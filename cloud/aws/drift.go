// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instance"
	"karpenter/model"
)

// IsDrifted implements cloud.Provider. The first reason counts, in the order of
// package awsv1's: what the class says, then the image, then what the instance
// has of security groups, subnets, reservations and placement groups.
func (p *Provider) IsDrifted(ctx context.Context, claim *v1.NodeClaim) (string, error) {
	class, err := p.driftClass(ctx, claim)
	if class == nil || err != nil || unreadable.Error(class) != nil {
		return "", err
	}
	if class.Drifted(claim.Annotations) {
		return awsv1.NodeClassDriftReason, nil
	}
	reason, err := p.imageDrift(ctx, claim, class)
	if reason != "" || err != nil {
		return reason, err
	}
	return p.instanceDrift(ctx, claim, class)
}

// driftClass returns the class that the claim is compared with, nil if there is
// none.
func (p *Provider) driftClass(ctx context.Context, claim *v1.NodeClaim) (*awsv1.EC2NodeClass, error) {
	name := claim.Labels[v1.NodePoolLabelKey]
	if name == "" || claim.Spec.NodeClassRef == nil {
		return nil, nil
	}
	pool := &v1.NodePool{}
	err := p.config.Client.Get(ctx, client.ObjectKey{Name: name}, pool)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read node pool %s: %w", name, err)
	}
	class, err := p.usableClass(ctx, claim.Spec.NodeClassRef)
	if errors.Is(err, errNoClass) {
		p.unresolved(pool)
		return nil, nil
	}
	return class, err
}

// imageDrift compares the claim's image with the one its type boots from now.
func (p *Provider) imageDrift(ctx context.Context, claim *v1.NodeClaim, class *awsv1.EC2NodeClass) (string, error) {
	types, err := p.config.Types(ctx, class)
	if err != nil {
		return "", fmt.Errorf("instance types of EC2NodeClass %s: %w", class.Name, err)
	}
	name := claim.Labels[model.LabelInstanceType]
	t := typeOf(types, name)
	switch {
	case t == nil:
		return "", fmt.Errorf("EC2NodeClass %s has no instance type %q, which node claim %s is of", class.Name, name, claim.Name)
	case len(class.Status.AMIs) == 0:
		return "", fmt.Errorf("EC2NodeClass %s: no amis exist given constraints", class.Name)
	case claim.Status.ImageID == "":
		return "", fmt.Errorf("node claim %s has no image ID", claim.Name)
	}
	now, ok := image.For(class, t)
	if !ok {
		return "", fmt.Errorf("EC2NodeClass %s: no AMI suits instance type %s", class.Name, name)
	}
	if now.ID != claim.Status.ImageID {
		return awsv1.AMIDriftReason, nil
	}
	return "", nil
}

// instanceDrift compares the instance with what the class selects now.
func (p *Provider) instanceDrift(ctx context.Context, claim *v1.NodeClaim, class *awsv1.EC2NodeClass) (string, error) {
	id, ok := InstanceID(claim.Status.ProviderID)
	if !ok {
		return "", unknown(claim.Status.ProviderID)
	}
	if p.instances.Fresh(id) {
		return "", nil
	}
	i, err := p.instances.Get(ctx, id)
	if err != nil || !i.Described {
		return "", err
	}
	reason, err := networkDrift(i, class)
	if reason != "" || err != nil {
		return reason, err
	}
	if !selectsReservation(class, i) {
		// It may have left the reservation since it was looked at.
		if i, err = p.instances.Read(ctx, id); err != nil {
			return "", err
		}
		if !selectsReservation(class, i) {
			return awsv1.CapacityReservationDriftReason, nil
		}
	}
	group, err := p.config.Group(ctx, class)
	if err != nil {
		return "", fmt.Errorf("placement group of EC2NodeClass %s: %w", class.Name, err)
	}
	wanted := ""
	if group != nil {
		wanted = group.ID
	}
	if claim.Labels[awsv1.PlacementGroupIDLabelKey] != wanted {
		return awsv1.PlacementGroupDriftReason, nil
	}
	return "", nil
}

func networkDrift(i *instance.Instance, class *awsv1.EC2NodeClass) (string, error) {
	var groups []string
	for _, g := range class.Status.SecurityGroups {
		groups = append(groups, g.ID)
	}
	slices.Sort(groups)
	switch {
	case len(groups) == 0:
		return "", fmt.Errorf("EC2NodeClass %s: no security groups are present in the status", class.Name)
	case !slices.Equal(slices.Compact(groups), i.SecurityGroups):
		return awsv1.SecurityGroupDriftReason, nil
	case len(class.Status.Subnets) == 0:
		return "", fmt.Errorf("EC2NodeClass %s: no subnets are discovered", class.Name)
	case !slices.ContainsFunc(class.Status.Subnets, func(s awsv1.Subnet) bool { return s.ID == i.SubnetID }):
		return awsv1.SubnetDriftReason, nil
	}
	return "", nil
}

// selectsReservation reports whether the class selects the reservation that the
// instance is in, if it is in one.
func selectsReservation(class *awsv1.EC2NodeClass, i *instance.Instance) bool {
	return i.ReservationID == "" || slices.ContainsFunc(class.Status.CapacityReservations, func(r awsv1.CapacityReservation) bool {
		return r.ID == i.ReservationID
	})
}
