// SPDX-License-Identifier: Apache-2.0

// Package stamp keeps the drift hash of a NodePool or a node class in
// annotations, on the object itself and on its NodeClaims. A claim whose hash
// differs has drifted.
package stamp

import (
	"context"
	"errors"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
)

// Keys are the annotations of a hash, and the version of the rules by which it is
// made.
type Keys struct{ Hash, HashVersion, Version string }

// Claims lists the NodeClaims made from an object.
type Claims func(context.Context) ([]*v1.NodeClaim, error)

// Keep records the hash on the object. If the object has a hash of another
// version, Keep updates its claims first, so that an interrupted update is
// repeated until every claim has a hash that can be compared.
func (k Keys) Keep(ctx context.Context, c client.Client, object client.Object, hash string, claims Claims) error {
	if object.GetAnnotations()[k.HashVersion] != k.Version {
		if err := k.renew(ctx, c, hash, claims); err != nil {
			return err
		}
	}
	return annotate(ctx, c, object, map[string]string{k.Hash: hash, k.HashVersion: k.Version})
}

// renew brings the claims to the current rules. A claim known to have drifted
// keeps its hash, so that it stays drifted.
func (k Keys) renew(ctx context.Context, c client.Client, hash string, claims Claims) error {
	all, err := claims(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, claim := range all {
		if claim.Annotations[k.HashVersion] == k.Version {
			continue
		}
		stamps := map[string]string{k.HashVersion: k.Version}
		if conditions.Get(claim, v1.DriftedCondition) == nil {
			stamps[k.Hash] = hash
		}
		failures = append(failures, annotate(ctx, c, claim, stamps))
	}
	return errors.Join(failures...)
}

// annotate adds the annotations to the object, if it lacks any.
func annotate(ctx context.Context, c client.Client, object client.Object, annotations map[string]string) error {
	all := maps.Clone(object.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, annotations)
	if maps.Equal(all, object.GetAnnotations()) {
		return nil
	}
	stored := object.DeepCopyObject().(client.Object)
	object.SetAnnotations(all)
	return client.IgnoreNotFound(c.Patch(ctx, object, client.MergeFrom(stored)))
}
