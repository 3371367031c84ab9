// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/control/controltest"
	"karpenter/control/drift"
)

func TestRollout(t *testing.T) {
	for _, file := range []string{"rollout", "brake"} {
		t.Run(file, func(t *testing.T) { controltest.Run(t, "testdata/"+file, rollout) })
	}
}

func TestRegisterRollout(t *testing.T) {
	c := controltest.New(t)
	rollout(c)
	c.Register(t)
}

// rollout adds the reconciler of roll-outs, and these commands:
//
//	nodes A B …       claims of pool "default" as it is now, launched and joined
//	coming A B …      claims of the same kind, launched
//	join A B …        they join, and the watch shows it
//	fail A B …        they are abandoned, and the watch shows it
//	hash POOL, restart
//	                  as in setup
func rollout(c *controltest.Cluster) {
	setup(c)
	var r *drift.Rollout
	var metrics *drift.Metrics
	c.Commands["restart"] = func([]string) error {
		if metrics == nil {
			metrics = drift.NewMetrics(c.Registry)
		}
		r = &drift.Rollout{
			Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Labels: v1.DefaultLabels(),
			Recorder: c.Recorder, Metrics: metrics,
		}
		c.Reconcilers[""] = r
		return nil
	}
	_ = c.Commands["restart"](nil)
	c.Commands["coming"] = func(words []string) error { return add(c, words, v1.LaunchedCondition) }
	c.Commands["nodes"] = func(words []string) error {
		return add(c, words, v1.LaunchedCondition, v1.RegisteredCondition, v1.InitializedCondition)
	}
	c.Commands["join"] = func(words []string) error {
		for _, name := range words {
			claim := &v1.NodeClaim{}
			if err := c.Client.Get(context.Background(), client.ObjectKey{Name: name}, claim); err != nil {
				return err
			}
			if err := set(c, claim, v1.RegisteredCondition, v1.InitializedCondition); err != nil {
				return err
			}
			r.Joined(claim)
		}
		return nil
	}
	c.Commands["fail"] = func(words []string) error {
		for _, name := range words {
			claim := &v1.NodeClaim{}
			if err := c.Client.Get(context.Background(), client.ObjectKey{Name: name}, claim); err != nil {
				return err
			}
			if err := c.Client.Delete(context.Background(), claim); err != nil {
				return err
			}
			r.Deleted(claim)
		}
		return nil
	}
}

// add makes claims of the pool "default" as it is now.
func add(c *controltest.Cluster, names []string, conditions ...string) error {
	for _, name := range names {
		if err := c.Client.Create(context.Background(), c.NewClaim(name)); err != nil {
			return err
		}
		if err := hash(c, &v1.NodeClaim{}, name, "default"); err != nil {
			return err
		}
		claim := &v1.NodeClaim{}
		if err := c.Client.Get(context.Background(), client.ObjectKey{Name: name}, claim); err != nil {
			return err
		}
		if err := set(c, claim, conditions...); err != nil {
			return err
		}
	}
	return nil
}

func set(c *controltest.Cluster, claim *v1.NodeClaim, conditions ...string) error {
	for _, condition := range conditions {
		claim.StatusConditions(c.Clock.Now()).SetTrue(condition)
	}
	return c.Client.Status().Update(context.Background(), claim)
}
