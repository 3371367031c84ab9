// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karpenter/cloud/loop"
)

// Register adds the loops that refresh the catalogue to the manager.
func (c *Catalogue) Register(mgr manager.Manager) error {
	failures := []error{
		loop.Every(mgr, "instancetype", SKUInterval, c.RefreshSKUs),
		loop.Every(mgr, "quota", QuotaInterval, c.RefreshQuotas),
	}
	if c.config.Prices != nil {
		failures = append(failures, loop.Every(mgr, "pricing", PriceInterval, c.RefreshPrices))
	}
	return errors.Join(failures...)
}
