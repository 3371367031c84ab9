// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"slices"
	"time"

	"karpenter/cloud"
	"karpenter/model"
)

// Real is a cloud that a Cloud only shows: what is done to the one is done to
// the other.
type Real interface {
	Lose(providerID string)
	SetPrice(Offering, model.Price)
	SetEmpty(Offering, bool)
	SetLag(time.Duration)
}

// Stand has the cloud stand for another, whose instances and types it is told
// with Show.
func (c *Cloud) Stand(real Real) { c.real = real }

// Show says what the other cloud has: all instances there ever were, in the
// order of their launch, and all types. Both belong to the Cloud then.
func (c *Cloud) Show(machines []*Machine, sold []*cloud.InstanceType) {
	c.change(func() { c.machines, c.types = slices.Clone(machines), slices.Clone(sold) })
}
