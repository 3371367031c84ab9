// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"
	"time"

	"karpenter/model"
	"karpenter/world"
)

// ward returns a world with pool p of so many ready nodes n0, n1 and so on, whose
// budgets allow one disruption.
func ward(nodes int, change func(i int, c *world.Claim, n *world.Node)) *world.World {
	w := world.New(model.NewAxis(), nil)
	w.SetPool(world.Pool{Name: "p", Allowed: func(_ time.Time, total int, _ model.Reason) int { return (total + 9) / 10 }})
	for i := range nodes {
		name := "n" + string(rune('0'+i))
		c := claimOf("p", name)
		c.ProviderID = name
		n := world.Node{Name: name, ProviderID: name, Ready: true, Labels: map[string]string{
			model.LabelNodePool: "p", model.LabelInstanceType: "t", model.LabelRegistered: "true", model.LabelInitialized: "true",
		}}
		change(i, &c, &n)
		w.SetClaim(c)
		w.SetNode(n)
	}
	return w
}

func allowed(w *world.World) map[model.Reason]int {
	return w.Snapshot(time.Unix(0, 0)).Pools[0].Disruption.Allowed
}

// TestUnhealthyBudget: spec 48/29. Nodes that are not ready do not consume the
// budget of their repair, one that is being removed does.
func TestUnhealthyBudget(t *testing.T) {
	w := ward(10, func(i int, _ *world.Claim, n *world.Node) { n.Ready = i >= 2 })
	if got := allowed(w); got[model.Unhealthy] != 1 || got[model.Drifted] != 0 {
		t.Errorf("two nodes are not ready: %v", got)
	}
	w.MarkForDeletion("n0")
	if got := allowed(w); got[model.Unhealthy] != 0 {
		t.Errorf("one of them is being repaired: %v", got)
	}
}

// TestRebootingBudget: spec 48/52. A node that reboots consumes the budgets for
// every reason, and counts although it is not initialized.
func TestRebootingBudget(t *testing.T) {
	for _, initialized := range []bool{true, false} {
		w := ward(10, func(i int, c *world.Claim, n *world.Node) {
			if c.Rebooting = i == 0; i == 0 && !initialized {
				delete(n.Labels, model.LabelInitialized)
			}
		})
		for reason, n := range allowed(w) {
			if n != 0 {
				t.Errorf("initialized %t: %s allows %d", initialized, reason, n)
			}
		}
		d := w.Snapshot(time.Unix(0, 0)).Pools[0].Disruption
		if d.Counted != 10 || d.Consuming != 1 {
			t.Errorf("initialized %t: %d of %d nodes consume budgets", initialized, d.Consuming, d.Counted)
		}
	}
}

// TestRebootingCapacity: spec 48/53, spec 48/25. Nothing keeps pods off a node
// that reboots, which no command removes.
func TestRebootingCapacity(t *testing.T) {
	w := ward(1, func(_ int, c *world.Claim, n *world.Node) {
		c.Rebooting = true
		c.StartupTaints = []model.Taint{{Key: "starting", Effect: model.NoSchedule}}
		n.Ready = false
		n.Taints = []model.Taint{
			{Key: "karpenter.sh/rebooting", Effect: model.NoSchedule}, {Key: "node.kubernetes.io/not-ready", Effect: model.NoExecute},
			{Key: "starting", Effect: model.NoSchedule}, {Key: "dedicated", Effect: model.NoSchedule},
		}
	})
	n := w.Snapshot(time.Unix(0, 0)).Nodes[0]
	if len(n.Taints) != 1 || n.Taints[0].Key != "dedicated" {
		t.Errorf("taints %v", n.Taints)
	}
	if n.Deleting || n.Disruption.Blocked != "the node is rebooting" {
		t.Errorf("deleting %t, blocked as %q", n.Deleting, n.Disruption.Blocked)
	}
}

// TestPodsOfUnhealthyNodesMove: spec 48/22. The pods of a sick node need a place elsewhere,
// even if they must not be disrupted.
func TestPodsOfUnhealthyNodesMove(t *testing.T) {
	for _, sick := range []bool{false, true} {
		w := ward(1, func(_ int, _ *world.Claim, n *world.Node) { n.Sick = sick })
		w.SetPod(world.Pod{Namespace: "d", Name: "p", UID: "p", Node: "n0", Reschedulable: true, Protected: true, Shape: &model.Shape{Key: "s"}})
		if got := len(w.Snapshot(time.Unix(0, 0)).Nodes[0].Movable); (got == 1) != sick {
			t.Errorf("sick %t: %d groups of pods move", sick, got)
		}
	}
}

// TestPlannedOn: spec 48/78. Pods that are bound, or stand in for a buffer, are
// left out.
func TestPlannedOn(t *testing.T) {
	w := world.New(model.NewAxis(), nil)
	var planned []model.Pod
	for _, name := range []string{"a", "b"} {
		w.SetPod(world.Pod{Namespace: "d", Name: name, UID: name, Pending: true, Shape: &model.Shape{Key: "s"}})
		planned = append(planned, model.Pod{Namespace: "d", Name: name, UID: name})
	}
	w.Planned(claimOf("p", "c"), planned)
	w.SetPod(world.Pod{Namespace: "d", Name: "b", UID: "b", Node: "other", Shape: &model.Shape{Key: "s"}})
	if got := w.PlannedOn("c"); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("planned on c: %v", got)
	}
}
