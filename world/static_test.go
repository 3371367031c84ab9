// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// keeping returns a world with static pool p of so many replicas.
func keeping(replicas int) *world.World {
	w := world.New(model.NewAxis(), nil)
	w.SetPool(world.Pool{
		Name: "p", Replicas: &replicas, Unavailable: "static",
		Allowed: func(time.Time, int, model.Reason) int { return 1 },
	})
	return w
}

func claimOf(pool, name string) world.Claim {
	return world.Claim{Name: name, UID: "uid-" + name, Labels: map[string]string{model.LabelNodePool: pool}}
}

// stands fails the test unless the claims of pool p stand like that.
func stands(t *testing.T, w *world.World, want model.Static) {
	t.Helper()
	if got := w.Static("p"); got != want {
		t.Errorf("claims stand %+v, want %+v", got, want)
	}
}

// spec 25/52: a claim counts from when it is created. spec 25/53: one without a
// pool counts nowhere. spec 25/55: a mark is pending, and taken back active.
// spec 25/56: one that is gone counts no more. spec 25/57: its provider ID does
// not count it twice.
func TestClaimsHaveOneState(t *testing.T) {
	w := keeping(3)
	c := claimOf("p", "a")
	w.Planned(c, nil)
	stands(t, w, model.Static{Replicas: 3, Active: 1})
	w.SetClaim(c)
	stands(t, w, model.Static{Replicas: 3, Active: 1})
	c.ProviderID = "id-a"
	w.SetClaim(c)
	stands(t, w, model.Static{Replicas: 3, Active: 1})
	w.SetClaim(world.Claim{Name: "alone"})
	w.SetClaim(claimOf("q", "other"))
	stands(t, w, model.Static{Replicas: 3, Active: 1})
	w.MarkForDeletion("a")
	stands(t, w, model.Static{Replicas: 3, Pending: 1})
	w.Unmark("a")
	stands(t, w, model.Static{Replicas: 3, Active: 1})
	c.Disrupting = true
	w.SetClaim(c)
	stands(t, w, model.Static{Replicas: 3, Pending: 1})
	c.Deleting = true
	w.SetClaim(c)
	stands(t, w, model.Static{Replicas: 3, Leaving: 1})
	w.DeleteClaim("a")
	stands(t, w, model.Static{Replicas: 3})
}

// spec 25/54: two claims that commands remove are two that are pending, and
// an event about one does not change that. spec 40/47: with what replaces them
// there are as many active ones as before, and in the end nothing is pending.
func TestReplacementsAreActive(t *testing.T) {
	w := keeping(2)
	old := []world.Claim{claimOf("p", "a"), claimOf("p", "b")}
	for _, c := range old {
		w.SetClaim(c)
	}
	w.MarkForDeletion("a")
	w.MarkForDeletion("b")
	stands(t, w, model.Static{Replicas: 2, Pending: 2})
	old[0].ProviderID = "id-a"
	w.SetClaim(old[0])
	stands(t, w, model.Static{Replicas: 2, Pending: 2})
	w.Planned(claimOf("p", "new-a"), nil)
	w.Planned(claimOf("p", "new-b"), nil)
	stands(t, w, model.Static{Replicas: 2, Active: 2, Pending: 2})
	if got := w.Snapshot(scenario.DefaultNow()).Pools[0]; *got.Static != (model.Static{Replicas: 2, Active: 2, Pending: 2}) || got.Unavailable != "static" {
		t.Errorf("the snapshot says %+v of %s pool", *got.Static, got.Unavailable)
	}
	for _, c := range old {
		c.Deleting = true
		w.SetClaim(c)
	}
	stands(t, w, model.Static{Replicas: 2, Active: 2, Leaving: 2})
	w.DeleteClaim("a")
	w.DeleteClaim("b")
	stands(t, w, model.Static{Replicas: 2, Active: 2})
}

// spec 25/59: a limit of 10 leaves 2 to a pool of 8 that wants 5, and none to the
// next. What is released can be granted again, once.
func TestReserve(t *testing.T) {
	w := keeping(8)
	for i := range 8 {
		w.SetClaim(claimOf("p", fmt.Sprint("c", i)))
	}
	grant := func(want int) func() {
		t.Helper()
		n, release := w.Reserve("p", 10, 5)
		if n != want {
			t.Errorf("granted %d, want %d", n, want)
		}
		return release
	}
	first := grant(2)
	second := grant(0)
	second()
	grant(0)()
	first()
	first()
	third := grant(2)
	third()
	if n, release := w.Reserve("p", world.NoLimit, 5); n != 5 {
		t.Errorf("granted %d without a limit", n)
	} else {
		release()
	}
	if n, _ := w.Reserve("p", 3, 5); n != 0 {
		t.Errorf("granted %d beyond a limit that was lowered", n)
	}
}

// Whatever is on its way out counts towards the limit; what a command removes
// is not missed yet.
func TestRefill(t *testing.T) {
	for _, tc := range []struct {
		name                     string
		active, leaving, pending int
		limit, want              int
	}{
		{"all is missing", 0, 0, 0, world.NoLimit, 5},
		{"some are there", 2, 0, 0, world.NoLimit, 3},
		{"too many", 7, 0, 0, world.NoLimit, 0},
		{"those that leave are missed", 2, 3, 0, world.NoLimit, 3},
		{"those that leave are within the limit", 2, 3, 0, 6, 1},
		{"pending ones are not missed", 2, 0, 2, world.NoLimit, 1},
		{"the limit is less than replicas", 0, 0, 0, 3, 3},
		{"no node at all", 0, 0, 0, 0, 0},
	} {
		w := keeping(5)
		add := func(n int, kind string, change func(*world.Claim)) {
			for i := range n {
				c := claimOf("p", fmt.Sprint(kind, i))
				change(&c)
				w.SetClaim(c)
			}
		}
		add(tc.active, "active", func(*world.Claim) {})
		add(tc.leaving, "leaving", func(c *world.Claim) { c.Deleting = true })
		add(tc.pending, "pending", func(c *world.Claim) { c.Disrupting = true })
		if n, _ := w.Refill("p", 5, tc.limit); n != tc.want {
			t.Errorf("%s: granted %d, want %d", tc.name, n, tc.want)
		}
		if n, _ := w.Refill("p", 5, tc.limit); n != 0 {
			t.Errorf("%s: granted %d more at once", tc.name, n)
		}
	}
}

// spec 25/58: however many ask at once, no more is granted than there is.
func TestGrantsAreExact(t *testing.T) {
	w := keeping(40)
	var all sync.WaitGroup
	var mu sync.Mutex
	sum := 0
	for i := range 16 {
		all.Go(func() {
			n, release := w.Refill("p", 40, 30)
			for j := range n {
				w.Planned(claimOf("p", fmt.Sprintf("c%d-%d", i, j)), nil)
			}
			release()
			mu.Lock()
			sum += n
			mu.Unlock()
		})
	}
	all.Wait()
	if got := w.Static("p"); sum != 30 || got.Active != 30 {
		t.Errorf("granted %d, %+v", sum, got)
	}
}

// A claim of a static pool that is not launched was asked to hold nothing. Pods
// may count on what every machine has that it may become.
func TestStaticClaimPromisesTheLeast(t *testing.T) {
	w := keeping(1)
	kind := func(name string, cpu, memory int64, available bool) *model.InstanceType {
		r := model.Resources{}.With(model.CPU, cpu).With(model.Memory, memory)
		return &model.InstanceType{
			Name: name, Capacity: r, Allocatable: r, Requirements: model.NewRequirements(model.NewRequirement(model.LabelInstanceType, model.In, name)),
			Offerings: []model.Offering{{Zone: "a", CapacityType: model.Spot, Available: available,
				Requirements: model.NewRequirements(model.NewRequirement(model.LabelZone, model.In, "a"))}},
		}
	}
	w.SetTypes("p", []*model.InstanceType{kind("wide", 8000, 100, true), kind("high", 4000, 200, true), kind("gone", 1, 1, false)})
	holds := func(want string) {
		t.Helper()
		n := w.Snapshot(scenario.DefaultNow()).Nodes[0]
		if got := fmt.Sprint(n.Allocatable.At(model.CPU), n.Allocatable.At(model.Memory)); got != want {
			t.Errorf("holds %s, want %s", got, want)
		}
	}
	c := claimOf("p", "a")
	w.SetClaim(c)
	holds("4000 100")
	c.Requirements = model.NewRequirements(model.NewRequirement(model.LabelInstanceType, model.In, "wide", "gone"))
	w.SetClaim(c)
	holds("8000 100")
	c.Requirements = model.NewRequirements(model.NewRequirement(model.LabelZone, model.In, "b"))
	w.SetClaim(c)
	holds("0 0")
	c.ProviderID, c.Allocatable = "id", model.Resources{}.With(model.CPU, 3900)
	w.SetClaim(c)
	holds("3900 0")
}
