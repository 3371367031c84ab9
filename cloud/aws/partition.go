// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
)

// PartitionHook delays the registration of a node in a placement group until
// EC2 reports its partition, and adds the label for it.
type PartitionHook struct{ Provider *Provider }

// Name is shown on claims that wait for it.
func (h *PartitionHook) Name() string { return "placement-group-partition" }

// Registered sets the label, or returns when to ask again.
func (h *PartitionHook) Registered(ctx context.Context, claim *v1.NodeClaim) (reconcile.Result, error) {
	const again = 5 * time.Second
	partition, waits := claim.Labels[awsv1.PlacementGroupPartitionLabelKey]
	if claim.Labels[awsv1.PlacementGroupIDLabelKey] == "" || !waits || partition != "" {
		return reconcile.Result{}, nil
	}
	id, ok := InstanceID(claim.Status.ProviderID)
	if !ok {
		return reconcile.Result{}, unknown(claim.Status.ProviderID)
	}
	i, err := h.Provider.instances.Read(ctx, id)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("partition of the placement group: %w", err)
	}
	if i.Partition == 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	claim.Labels[awsv1.PlacementGroupPartitionLabelKey] = strconv.Itoa(int(i.Partition))
	return reconcile.Result{}, nil
}
