// SPDX-License-Identifier: Apache-2.0

package repair_test

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller"

	"karpenter/cloud"
	"karpenter/control/controltest"
	"karpenter/control/repair"
	"karpenter/kube/meter"
)

func TestRepair(t *testing.T) {
	controltest.Run(t, "testdata/repair", setup)
}

// setup adds the reconciler, a provider that tolerates Ready=False for 10
// minutes, Ready=Unknown for 30 and DiskDead=True for 20, and the commands
//
//	well NODE… and sick NODE…   each with its claim in pool "default"
//	poolless NODE               with its claim, in no pool
//	stray NODE…                 sick, and of no provider
//
// A claim has the name of its node in front of "-claim".
func setup(c *controltest.Cluster) {
	c.Cloud.SetRepairPolicies(
		cloud.RepairPolicy{ConditionType: "Ready", ConditionStatus: "False", Toleration: 10 * time.Minute},
		cloud.RepairPolicy{ConditionType: "Ready", ConditionStatus: "Unknown", Toleration: 30 * time.Minute},
		cloud.RepairPolicy{ConditionType: "DiskDead", ConditionStatus: "True", Toleration: 20 * time.Minute},
	)
	c.Reconcilers[""] = &repair.Reconciler{
		Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Recorder: c.Recorder,
		Metrics: meter.NewUnhealthy(c.Registry), Disruptions: c.Disruptions,
	}
	const class, pool = "karpenter.kwok.sh/kwoknodeclass: default", ", karpenter.sh/nodepool: default"
	nodes := func(labels, ready string) func([]string) error {
		return func(names []string) error {
			for _, n := range names {
				if _, err := c.Do(fmt.Sprintf(`
					claim %[1]s-claim {metadata: {finalizers: [karpenter.sh/termination]}, status: {providerID: "fake:///uid-of-%[1]s-claim", imageID: i1, nodeName: %[1]q}}
					node %[1]s %[1]s-claim {metadata: {labels: {%[2]s}}, spec: {taints: null}, status: {conditions: [{type: Ready, status: %[3]q, lastTransitionTime: %[4]q}]}}`,
					n, labels, ready, c.Clock.Now().Format(time.RFC3339))); err != nil {
					return err
				}
			}
			return nil
		}
	}
	c.Commands["well"] = nodes(class+pool, "True")
	c.Commands["sick"] = nodes(class+pool, "False")
	c.Commands["stray"] = nodes("", "False")
	c.Commands["poolless"] = func(names []string) error {
		if err := nodes(class, "False")(names); err != nil {
			return err
		}
		_, err := c.Do(fmt.Sprintf("change claim/%s-claim {metadata: {labels: null}}", names[0]))
		return err
	}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
	c.Cloud.SetRepairPolicies()
	r := c.Reconcilers[""].(*repair.Reconciler)
	// Without policies there is nothing to add, not even to a manager that is
	// not there.
	if err := r.Register(nil, controller.Options{}); err != nil {
		t.Error(err)
	}
}
