// SPDX-License-Identifier: Apache-2.0

package garbage_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"karpenter/cloud"
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

// setup adds the reconciler, and the command
//
//	omit ID       let the cloud's list leave that instance out
//	early ROUNDS  how many rounds at first come soon
func setup(c *controltest.Cluster) {
	lagging := &lagging{Provider: c.Cloud}
	c.Commands["omit"] = func(words []string) error {
		lagging.omits = words[0]
		return nil
	}
	collector := &garbage.Reconciler{
		Client:      c.Client,
		Live:        c.Client,
		Provider:    lagging,
		Clock:       c.Clock,
		Disruptions: c.Disruptions,
	}
	c.Reconcilers["garbage"] = collector
	c.Commands["early"] = func(words []string) (err error) {
		collector.EarlyRounds, err = strconv.Atoi(words[0])
		return err
	}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}

// lagging is a provider whose list is behind.
type lagging struct {
	cloud.Provider
	omits string
}

func (l *lagging) List(ctx context.Context) ([]*cloud.Machine, error) {
	machines, err := l.Provider.List(ctx)
	return slices.DeleteFunc(machines, func(m *cloud.Machine) bool { return m.ProviderID == l.omits }), err
}
