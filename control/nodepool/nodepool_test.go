package nodepool_test

import (
	"strconv"
	"testing"

	v1 "karpenter/api/v1"
	"karpenter/control/controltest"
	"karpenter/control/nodepool"
	"karpenter/model"
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
//	usage POOL NODES CPU      let the pool have so many nodes and millicores
//	gpus POOL COUNT           and extended resources
//	unsynced, synced          whether usage is known
//	registered CLAIM          tell Health about claim CLAIM of pool "default"
//	unregistered CLAIM REASON
//	restart                   forget what Health knows
func setup(c *controltest.Cluster) {
	axis := model.NewAxis()
	usage := usages{}
	health := &nodepool.Health{}
	synced := true
	c.Reconcilers["hash"] = &nodepool.Hash{Client: c.Client, Provider: c.Cloud}
	c.Reconcilers["counter"] = &nodepool.Counter{
		Client: c.Client, Provider: c.Cloud, Usage: usage, Axis: axis,
		Synced: func() bool { return synced },
	}
	c.Reconcilers["readiness"] = &nodepool.Readiness{Client: c.Client, Provider: c.Cloud, Clock: c.Clock}
	c.Reconcilers["validation"] = &nodepool.Validation{Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Labels: v1.DefaultLabels()}
	c.Reconcilers["health"] = &nodepool.RegistrationHealth{Client: c.Client, Provider: c.Cloud, Clock: c.Clock, Health: health}

	set := func(pool string, position int, text string) error {
		v, err := strconv.ParseInt(text, 10, 64)
		usage[pool] = usage[pool].With(position, v)
		return err
	}
	c.Commands["usage"] = func(words []string) error {
		if err := set(words[0], model.Nodes, words[1]); err != nil {
			return err
		}
		return set(words[0], model.CPU, words[2])
	}
	c.Commands["gpus"] = func(words []string) error { return set(words[0], axis.Index("nvidia.com/gpu"), words[1]) }
	c.Commands["unsynced"] = func([]string) error { synced = false; return nil }
	c.Commands["synced"] = func([]string) error { synced = true; return nil }
	c.Commands["registered"] = func(words []string) error { health.Succeeded(c.NewClaim(words[0])); return nil }
	c.Commands["unregistered"] = func(words []string) error {
		health.Failed(c.NewClaim(words[0]), words[1], "did not join")
		return nil
	}
	c.Commands["restart"] = func([]string) error { *health = nodepool.Health{}; return nil }
}

// usages is what there is of each pool.
type usages map[string]model.Resources

func (u usages) Usage(pool string) (model.Resources, int) {
	return u[pool], int(u[pool].At(model.Nodes))
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}
