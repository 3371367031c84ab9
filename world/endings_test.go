// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"
	"time"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// inhabited is a world with two nodes, old and new.
func inhabited() *world.World {
	w := emptyWorld()
	w.SetPool(world.Pool{Name: "p0", Allowed: func(time.Time, int, model.Reason) int { return 10 }})
	for _, name := range []string{"old", "new"} {
		labels := map[string]string{model.LabelNodePool: "p0", model.LabelInitialized: "true", model.LabelRegistered: "true"}
		room := model.Resources{4000, 0, 10}
		w.SetNode(world.Node{Name: name, UID: "uid-" + name, ProviderID: name, Labels: labels, Capacity: room, Allocatable: room, Ready: true})
		w.SetClaim(world.Claim{Name: name, UID: "claim-" + name, ProviderID: name, Labels: labels, Capacity: room, Allocatable: room})
	}
	return w
}

func replica(name, node string) world.Pod {
	return world.Pod{
		Namespace: "default", Name: name, UID: name, Node: node, Reschedulable: true, EvictionCost: 1,
		Shape: &model.Shape{Key: "replica", Requests: model.Resources{1000, 0, 1}},
	}
}

func nodeAt(w *world.World, name string, now time.Time) model.Node {
	for _, n := range w.Snapshot(now).Nodes {
		if n.Name == name {
			return n
		}
	}
	return model.Node{}
}

// A pod that is made in place of one whose node goes is not moved again within the
// hour; one made in place of a pod that ended of its own may be.
func TestMovedPodsStayForAnHour(t *testing.T) {
	for _, tc := range []struct {
		name  string
		going bool
	}{{"its node goes", true}, {"it ends of its own", false}} {
		t.Run(tc.name, func(t *testing.T) {
			w, now := inhabited(), scenario.DefaultNow()
			w.SetPod(replica("a", "old"))
			w.Snapshot(now)
			if tc.going {
				w.MarkForDeletion("old")
			}
			ending := replica("a", "old")
			ending.Terminating, ending.Ends = true, now.Add(30*time.Second)
			w.SetPod(ending)
			w.SetPod(replica("b", ""))
			w.SetPod(replica("b", "new"))
			w.DeletePod("default", "a")
			w.SetPod(replica("c", "new")) // has come besides
			for _, after := range []time.Duration{0, time.Hour - 1, time.Hour} {
				want := tc.going && after < time.Hour
				if got := nodeAt(w, "new", now.Add(after)).Disruption.Fresh; got != want {
					t.Errorf("after %s the node is fresh: %t, want %t", after, got, want)
				}
			}
		})
	}
}

// Room counts as leaving from a minute before the pod's deadline until it is overdue.
func TestCapacityOfEndingPods(t *testing.T) {
	w, now := inhabited(), scenario.DefaultNow()
	ending := replica("a", "old")
	ending.Terminating, ending.Ends = true, now.Add(3*time.Minute)
	w.SetPod(ending)
	for _, tc := range []struct {
		after time.Duration
		want  int64
	}{{0, 0}, {2*time.Minute - 1, 0}, {2 * time.Minute, 1000}, {3 * time.Minute, 1000}, {3*time.Minute + 10*time.Second, 0}} {
		n := nodeAt(w, "old", now.Add(tc.after))
		if n.Leaving.At(model.CPU) != tc.want || n.Requested.At(model.CPU) != 1000 {
			t.Errorf("after %s %d of %d are leaving, want %d of 1000", tc.after, n.Leaving.At(model.CPU), n.Requested.At(model.CPU), tc.want)
		}
	}
}
