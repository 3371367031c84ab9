// SPDX-License-Identifier: Apache-2.0

package wrap

import (
	"context"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// Overlays applies NodeOverlays to the instance types of a pool; see
// overlay.Store.
type Overlays interface {
	Overlay(pool string, types []*cloud.InstanceType) ([]*cloud.InstanceType, error)
}

// Overlay returns the provider with its instance types as overlaid. Its
// InstanceTypes fails with UnevaluatedNodePoolError for pools whose overlays
// are not known yet. All other methods are those of the provider.
func Overlay(p cloud.Provider, overlays Overlays) cloud.Provider {
	return &overlaid{Provider: p, overlays: overlays}
}

type overlaid struct {
	cloud.Provider
	overlays Overlays
}

func (o *overlaid) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloud.InstanceType, error) {
	types, err := o.Provider.InstanceTypes(ctx, pool)
	if err != nil {
		return nil, err
	}
	return o.overlays.Overlay(pool.Name, types)
}
