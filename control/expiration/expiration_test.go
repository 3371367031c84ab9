package expiration_test

import (
	"testing"

	"karpenter/control/controltest"
	"karpenter/control/expiration"
)

func TestExpiration(t *testing.T) {
	controltest.Run(t, "testdata/expiration", func(c *controltest.Cluster) {
		c.Reconcilers[""] = &expiration.Reconciler{
			Client:      c.Client,
			Provider:    c.Cloud,
			Clock:       c.Clock,
			Disruptions: c.Disruptions,
		}
	})
}
