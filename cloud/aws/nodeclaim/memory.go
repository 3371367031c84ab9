// SPDX-License-Identifier: Apache-2.0

package nodeclaim

import (
	"context"
	"strconv"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// Memory is the controller providers.instancetype.capacity: it notes how much
// memory nodes have, by instance type and image. All fields are required.
type Memory struct {
	Claims *Claims
	Clock  clock.PassiveClock
	// Sights takes the notes; instancetype.Memory does.
	Sights interface {
		Saw(instanceType, image string, bytes int64, now time.Time)
	}
}

// Register adds the controller to the manager. Nodes that are there when it
// starts are seen too.
func (m *Memory) Register(mgr manager.Manager, options controller.Options) error {
	return builder.ControllerManagedBy(mgr).
		Named("providers.instancetype.capacity").
		For(&v1.NodeClaim{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return shows(o.(*v1.NodeClaim))
		}))).
		WithOptions(options).
		Complete(m)
}

// shows reports whether the claim's Node has reported its capacity.
func shows(claim *v1.NodeClaim) bool {
	return Of(claim) && claim.Status.NodeName != "" && claim.Status.ImageID != "" && conditions.IsTrue(claim, v1.RegisteredCondition)
}

// Reconcile records the memory of one claim's Node. A record for an image that
// the class no longer uses does no harm, because nothing is launched from it.
func (m *Memory) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &v1.NodeClaim{}
	if err := m.Claims.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !shows(claim) {
		return reconcile.Result{}, nil
	}
	node, err := m.Claims.Node(ctx, claim)
	if err != nil || node == nil {
		return reconcile.Result{}, err
	}
	instanceType, bytes := claim.Labels[model.LabelInstanceType], node.Status.Capacity.Memory().Value()
	if instanceType == "" || bytes <= 0 {
		return reconcile.Result{}, nil
	}
	if !plausible(bytes, claim.Labels[awsv1.InstanceMemoryLabelKey]) {
		log.FromContext(ctx).Info("ignoring how much memory a node says it has, as the type has quite another amount",
			"Node", node.Name, "instance-type", instanceType, "bytes", bytes, "type-MiB", claim.Labels[awsv1.InstanceMemoryLabelKey])
		return reconcile.Result{}, nil
	}
	m.Sights.Saw(instanceType, claim.Status.ImageID, bytes, m.Clock.Now())
	return reconcile.Result{}, nil
}

// plausible reports whether a node of a type that is advertised with so many MiB
// may have so many bytes. The smallest observed size is used for two months, and
// a kubelet can report any number. This check keeps a wrong report from making a
// type useless.
func plausible(bytes int64, advertised string) bool {
	mebibytes, err := strconv.ParseInt(advertised, 10, 64)
	total := mebibytes << 20
	return err == nil && bytes <= total && bytes >= total/2
}
