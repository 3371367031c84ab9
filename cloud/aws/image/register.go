// SPDX-License-Identifier: Apache-2.0

package image

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karpenter/cloud/loop"
)

// Register adds the controller providers.ssm.invalidation to the manager.
func (i *Images) Register(mgr manager.Manager) error {
	return loop.Every(mgr, "providers.ssm.invalidation", InvalidationPeriod, i.Invalidate)
}
