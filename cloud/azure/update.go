// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/launch"
)

// Update brings the tags of the claim's instance, and its managed identities, to what
// its class and the settings say, and records that on the claim. Done is false if the claim is not ready for
// it: its node has not registered yet. An update that another one has overtaken is
// an error, and is to be repeated.
func (p *Provider) Update(ctx context.Context, claim *v1.NodeClaim) (done bool, err error) {
	if !claim.DeletionTimestamp.IsZero() {
		return true, nil
	}
	class, err := p.usableClass(ctx, claim.Spec.NodeClassRef)
	if errors.Is(err, errNoClass) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	tags, err := launch.Tags(p.config.Tags, class, claim, p.config.Cluster, 1)
	if err != nil {
		return false, err
	}
	if claim.Status.ProviderID == "" {
		return false, nil
	}
	of, name := p.fleetOf(claim.Status.ProviderID)
	if of == nil {
		return true, nil
	}
	hash := launch.InPlaceHash(tags, of.Identities()...)
	if claim.Annotations[v1beta1.InPlaceUpdateHashAnnotationKey] == hash {
		return true, nil
	}
	if !conditions.IsTrue(claim, v1.RegisteredCondition) {
		return false, nil
	}
	err = of.Retag(ctx, name, claim.Name, tags)
	if cloud.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	stored := claim.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[v1beta1.InPlaceUpdateHashAnnotationKey] = hash
	if err := p.config.Client.Patch(ctx, claim, client.MergeFrom(stored)); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("record the tags of NodeClaim %s: %w", claim.Name, err)
	}
	return true, nil
}
