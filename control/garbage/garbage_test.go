package garbage_test

import (
	"testing"

	"karpenter/control/controltest"
	"karpenter/control/garbage"
)

func TestGarbage(t *testing.T) {
	for _, file := range []string{"claims", "machines"} {
		t.Run(file, func(t *testing.T) {
			controltest.Run(t, "testdata/"+file, setup)
		})
	}
}

func setup(c *controltest.Cluster) {
	c.Reconcilers["garbage"] = &garbage.Reconciler{
		Client:      c.Client,
		Live:        c.Client,
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
