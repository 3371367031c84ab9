// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"maps"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/kubelets"
)

// features returns which features the kubelets of new nodes of the NodePool will
// declare and which not, as far as that is known before launch.
func (w *wiring) features(ctx context.Context, pool *v1.NodePool) (map[string]bool, error) {
	var of cloud.Kubelet
	if w.provider.Kubelet != nil {
		var err error
		if of, err = w.provider.Kubelet(ctx, pool); err != nil {
			return nil, err
		}
	}
	gates := map[string]bool{}
	for _, text := range []string{of.Gates, pool.Annotations[v1.KubeletFeatureGatesAnnotationKey]} {
		set, err := kubelets.ParseGates(text)
		w.warn(pool, invalidAim, "Ignoring the annotation "+v1.KubeletFeatureGatesAnnotationKey, err)
		maps.Copy(gates, set)
	}
	return kubelets.Kubelet{Versions: of.Versions, Gates: gates}.Features(), nil
}
