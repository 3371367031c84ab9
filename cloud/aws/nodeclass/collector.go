// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/cloud/loop"
)

// collecting is the time between two rounds.
const collecting = 30 * time.Minute

// Collector is the controller instanceprofile.garbagecollection. It is not for
// isolated VPCs, from which IAM cannot be reached.
type Collector struct {
	Client   client.Client
	Profiles interface {
		Collect(ctx context.Context, used map[string]bool) (gone []string, err error)
	}
	refused bool // was logged
}

// Register adds the controller to the manager. It runs one round at a time,
// regardless of the options.
func (c *Collector) Register(mgr manager.Manager, _ controller.Options) error {
	return loop.After(mgr, "instanceprofile.garbagecollection", c.round)
}

// Reconcile runs one round and comes back for the next.
func (c *Collector) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return loop.Work(c.round).Reconcile(ctx, request)
}

func (c *Collector) round(ctx context.Context) (time.Duration, error) {
	used, err := c.used(ctx)
	if err != nil {
		return 0, err
	}
	gone, err := c.Profiles.Collect(ctx, used)
	if len(gone) > 0 {
		log.FromContext(ctx).Info("deleted unused instance profiles", "profiles", gone)
	}
	refused := awsclient.Refused(err)
	if refused && !c.refused {
		log.FromContext(ctx).Error(err, "cannot delete unused instance profiles")
	}
	c.refused = refused
	if err != nil && !refused {
		return 0, err
	}
	return collecting, nil
}

// used returns the profiles that classes and claims name.
func (c *Collector) used(ctx context.Context) (map[string]bool, error) {
	classes, claims := &awsv1.EC2NodeClassList{}, &v1.NodeClaimList{}
	if err := c.Client.List(ctx, classes); err != nil {
		return nil, fmt.Errorf("list node classes: %w", err)
	}
	if err := c.Client.List(ctx, claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list node claims: %w", err)
	}
	used := map[string]bool{}
	for i := range classes.Items {
		used[classes.Items[i].Status.InstanceProfile] = true
	}
	for i := range claims.Items {
		used[claims.Items[i].Annotations[awsv1.InstanceProfileNameAnnotationKey]] = true
	}
	return used, nil
}
