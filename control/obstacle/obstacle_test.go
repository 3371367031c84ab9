// SPDX-License-Identifier: Apache-2.0

package obstacle_test

import (
	"testing"

	"karpenter/control/controltest"
	"karpenter/control/obstacle"
)

func TestObstacle(t *testing.T) {
	controltest.Run(t, "testdata/obstacle", setup)
}

func setup(c *controltest.Cluster) {
	c.Reconcilers[""] = &obstacle.Reconciler{Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Recorder: c.Recorder}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}
