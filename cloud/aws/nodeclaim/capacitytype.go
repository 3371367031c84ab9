// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud/aws/instance"
	"karpenter/cloud/loop"
	"karpenter/model"
)

const (
	// demoting is the time between two rounds of Demotion.
	demoting = time.Minute
	// demotionRetry is the time until the next round after a conflict with
	// another client.
	demotionRetry = time.Second
)

// Demotion is the controller capacityreservation.capacitytype, for use with the
// gate ReservedCapacity. When a capacity reservation ends EC2 keeps its
// instances running, and charges them as on demand; the labels of claim and Node
// follow.
type Demotion struct {
	Claims *Claims
	// Instances lists the instances of the cluster; instance.Instances does.
	Instances interface {
		List(context.Context) ([]*instance.Instance, error)
	}
}

// Register adds the controller to the manager.
func (d *Demotion) Register(mgr manager.Manager) error {
	return loop.After(mgr, "capacityreservation.capacitytype", d.Round)
}

// Round relabels what is not reserved any more; again is when to do so next. EC2
// is asked only if anything is labeled as reserved.
func (d *Demotion) Round(ctx context.Context) (again time.Duration, err error) {
	claims, err := d.Claims.ByInstance(ctx)
	if err != nil {
		return 0, err
	}
	reserved := map[string][]client.Object{}
	for id, claim := range claims {
		if reserved[id], err = d.reserved(ctx, claim); err != nil {
			return 0, err
		}
		if len(reserved[id]) == 0 {
			delete(reserved, id)
		}
	}
	if len(reserved) == 0 {
		return demoting, nil
	}
	instances, err := d.Instances.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("list instances: %w", err)
	}
	var failures []error
	conflict := false
	for _, i := range instances {
		if i.CapacityType != model.OnDemand {
			continue
		}
		for _, object := range reserved[i.ID] {
			switch err := d.demote(ctx, object); {
			case apierrors.IsConflict(err):
				conflict = true
			case client.IgnoreNotFound(err) != nil:
				failures = append(failures, fmt.Errorf("label %s as on demand: %w", object.GetName(), err))
			}
		}
	}
	if conflict {
		return demotionRetry, errors.Join(failures...)
	}
	return demoting, errors.Join(failures...)
}

// reserved returns those of the claim and its Node that are labeled as
// reserved. A Node that is not registered gets its labels from the claim when
// it registers.
func (d *Demotion) reserved(ctx context.Context, claim *v1.NodeClaim) (out []client.Object, err error) {
	if !claim.DeletionTimestamp.IsZero() || claim.Labels[awsv1.CapacityReservationInterruptibleLabelKey] == "" && !isReserved(claim) {
		return nil, nil
	}
	if isReserved(claim) {
		out = append(out, claim.DeepCopy())
	}
	node, err := d.Claims.Node(ctx, claim)
	if err == nil && node != nil && node.Labels[v1.NodeRegisteredLabelKey] == "true" && isReserved(node) {
		out = append(out, node)
	}
	return out, err
}

func isReserved(o client.Object) bool {
	return o.GetLabels()[model.LabelCapacityType] == model.Reserved
}

// demote labels a claim or a Node as on demand. It keeps the label that says
// whether the reservation was interruptible.
func (d *Demotion) demote(ctx context.Context, object client.Object) error {
	stored := object.DeepCopyObject().(client.Object)
	labels := object.GetLabels()
	labels[model.LabelCapacityType] = model.OnDemand
	delete(labels, awsv1.CapacityReservationIDLabelKey)
	delete(labels, awsv1.CapacityReservationTypeLabelKey)
	object.SetLabels(labels)
	err := d.Claims.Client.Patch(ctx, object, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		log.FromContext(ctx).Info("the capacity reservation is gone, the instance goes on as on demand", "name", object.GetName())
	}
	return err
}
