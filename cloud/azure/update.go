// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	tags, err := p.tags(class, claim)
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
	err = of.Retag(ctx, name, claim.Name, tags, dropped(claim, tags))
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
	claim.Annotations[v1beta1.InPlaceUpdateTagsAnnotationKey] = keys(tags)
	if err := p.config.Client.Patch(ctx, claim, client.MergeFrom(stored)); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("record the tags of NodeClaim %s: %w", claim.Name, err)
	}
	return true, nil
}

// keys returns the keys of the tags as the annotation of NodeClaims carries them.
func keys(tags map[string]string) string {
	text, err := json.Marshal(slices.Sorted(maps.Keys(tags)))
	if err != nil {
		panic(fmt.Sprintf("encode keys of tags: %v", err)) // text always has a form in JSON
	}
	return string(text)
}

// dropped returns the keys of tags that Karpenter has given the claim's instance, and
// that it is to have no more. What others have tagged it with is theirs.
func dropped(claim *v1.NodeClaim, tags map[string]string) []string {
	var given []string
	if json.Unmarshal([]byte(claim.Annotations[v1beta1.InPlaceUpdateTagsAnnotationKey]), &given) != nil {
		return nil // an older version does not tell what it has given
	}
	return slices.DeleteFunc(given, func(key string) bool {
		_, wanted := tags[key]
		return wanted
	})
}
