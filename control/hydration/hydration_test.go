// SPDX-License-Identifier: Apache-2.0

package hydration_test

import (
	"testing"

	"karpenter/control/controltest"
	"karpenter/control/hydration"
)

func TestHydration(t *testing.T) {
	controltest.Run(t, "testdata/hydration", setup)
}

func setup(c *controltest.Cluster) {
	c.Reconcilers["claims"] = &hydration.Claims{Client: c.Client, Provider: c.Cloud}
	c.Reconcilers["nodes"] = &hydration.Nodes{Client: c.Client, Provider: c.Cloud}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}
