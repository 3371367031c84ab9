// SPDX-License-Identifier: Apache-2.0

package expiration_test

import (
	"testing"

	"karpenter/control/controltest"
	"karpenter/control/expiration"
)

func TestExpiration(t *testing.T) {
	controltest.Run(t, "testdata/expiration", setup)
}

func setup(c *controltest.Cluster) {
	c.Reconcilers[""] = &expiration.Reconciler{
		Client:      c.Client,
		Provider:    c.Cloud,
		Clock:       c.Clock,
		Disruptions: c.Disruptions,
	}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}
