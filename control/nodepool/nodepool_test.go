// SPDX-License-Identifier: Apache-2.0

package nodepool_test

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/control/controltest"
	"karpenter/control/nodepool"
	"karpenter/model"
	"karpenter/world"
)

func TestNodePool(t *testing.T) {
	for _, file := range []string{"hash", "counter", "readiness", "validation", "health"} {
		t.Run(file, func(t *testing.T) {
			controltest.Run(t, "testdata/"+file, setup)
		})
	}
}

// setup adds the reconcilers, and these commands:
//
//	machine CLAIM POOL CPUS [GPUS]
//	                          let the world have a claim that is launched
//	node-of CLAIM POOL CPUS   and its Node, not initialized
//	ready CLAIM POOL CPUS     and initialized
//	ended CLAIM               both are gone
//	unsynced, synced          whether the world has seen everything
//	registered CLAIM          tell Health about claim CLAIM of pool "default"
//	unregistered CLAIM REASON
//	restart                   forget what Health knows
func setup(c *controltest.Cluster) {
	w := world.New(model.NewAxis(), nil)
	health := &nodepool.Health{}
	synced := true
	c.Reconcilers["hash"] = &nodepool.Hash{Client: c.Client, Provider: c.Cloud}
	c.Reconcilers["counter"] = &nodepool.Counter{
		Client: c.Client, Provider: c.Cloud, Usage: w, Axis: w.Axis(),
		Synced: func() bool { return synced }, Metrics: nodepool.NewMetrics(c.Registry),
	}
	c.Reconcilers["readiness"] = &nodepool.Readiness{Client: c.Client, Provider: c.Cloud, Clock: c.Clock}
	c.Reconcilers["validation"] = &nodepool.Validation{Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Labels: v1.DefaultLabels()}
	c.Reconcilers["health"] = &nodepool.RegistrationHealth{Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Health: health}

	c.Commands["machine"] = func(words []string) error {
		capacity, err := capacityOf(w, words[2:])
		w.SetClaim(world.Claim{
			Name: words[0], ProviderID: words[0], Labels: labelsOf(words[1], false), Capacity: capacity,
		})
		return err
	}
	for name, initialized := range map[string]bool{"node-of": false, "ready": true} {
		c.Commands[name] = func(words []string) error {
			capacity, err := capacityOf(w, words[2:])
			w.SetNode(world.Node{
				Name: words[0], ProviderID: words[0], Labels: labelsOf(words[1], initialized), Capacity: capacity,
			})
			return err
		}
	}
	c.Commands["ended"] = func(words []string) error {
		w.DeleteNode(words[0])
		w.DeleteClaim(words[0])
		return nil
	}
	c.Commands["unsynced"] = func([]string) error { synced = false; return nil }
	c.Commands["synced"] = func([]string) error { synced = true; return nil }
	c.Commands["registered"] = func(words []string) error { health.Succeeded(c.NewClaim(words[0])); return nil }
	c.Commands["unregistered"] = func(words []string) error {
		health.Failed(c.NewClaim(words[0]), words[1], "did not join")
		return nil
	}
	c.Commands["restart"] = func([]string) error { *health = nodepool.Health{}; return nil }
}

// capacityOf returns the CPUs, in thousandths, and the GPUs the words say.
func capacityOf(w *world.World, words []string) (model.Resources, error) {
	var capacity model.Resources
	for i, position := range []int{model.CPU, w.Axis().Index("nvidia.com/gpu")}[:len(words)] {
		v, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			return nil, err
		}
		capacity = capacity.With(position, v)
	}
	return capacity, nil
}

func labelsOf(pool string, initialized bool) map[string]string {
	labels := map[string]string{v1.NodePoolLabelKey: pool, corev1.LabelInstanceTypeStable: "t1"}
	if initialized {
		labels[v1.NodeRegisteredLabelKey], labels[v1.NodeInitializedLabelKey] = "true", "true"
	}
	return labels
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}
