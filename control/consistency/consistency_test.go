// SPDX-License-Identifier: Apache-2.0

package consistency_test

import (
	"testing"

	"karpenter/control/consistency"
	"karpenter/control/controltest"
)

func TestConsistency(t *testing.T) {
	controltest.Run(t, "testdata/consistency", setup)
}

func setup(c *controltest.Cluster) {
	c.Reconcilers[""] = &consistency.Reconciler{
		Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Recorder: c.Recorder,
		FewerDevices: func(claim string) []string {
			if claim != "few" {
				return nil
			}
			return []string{"expected 4 devices of driver gpu.example.com, but found 3"}
		},
	}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}
