// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"fmt"
	"testing"
	"time"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// worker is a pod of a Job that was created at the time.
func worker(name, node string, created time.Time) world.Pod {
	p := replica(name, node)
	p.Class, p.Created = "Job", created
	return p
}

// finish has a pod of the class end that has lived so long.
func finish(w *world.World, n int, lived time.Duration, now time.Time) {
	p := worker(fmt.Sprint("ended-", n), "new", now.Add(-lived))
	w.SetPod(p)
	p.Terminal, p.Reschedulable = true, false
	w.SetPod(p)
	w.DeletePod(p.Namespace, p.Name)
}

// A node's pods have usually ended when nine of ten pods of their classes would have.
func TestLifetimesOfPods(t *testing.T) {
	w, now := inhabited(), scenario.DefaultNow()
	w.Snapshot(now)
	w.SetPod(worker("a", "old", now))
	w.SetPod(worker("b", "old", now.Add(-3*time.Minute)))
	end := func(after time.Duration) time.Duration {
		t.Helper()
		if at := nodeAt(w, "old", now.Add(after)).Disruption.PodsEnd; !at.IsZero() {
			return at.Sub(now)
		}
		return 0
	}
	for i := range 4 {
		finish(w, i, time.Minute, now)
	}
	if got := end(0); got != 0 {
		t.Errorf("four pods have ended, and others are taken to end after %s", got)
	}
	finish(w, 4, 9*time.Minute+30*time.Second, now)
	if got := end(0); got != 10*time.Minute {
		t.Errorf("the pods end after %s, want 10m", got)
	}
	if got := end(7*time.Minute - 1); got != 10*time.Minute {
		t.Errorf("shortly before a pod has outlived its class they end after %s, want 10m", got)
	}
	if got := end(7 * time.Minute); got != 0 {
		t.Errorf("a pod has outlived its class, and they are taken to end after %s", got)
	}
	for i := range 16 {
		finish(w, 5+i, 19*time.Minute, now.Add(7*time.Minute))
	}
	if got := end(7 * time.Minute); got != 20*time.Minute {
		t.Errorf("pods live longer now, and these end after %s, want 20m", got)
	}
	w.SetPod(replica("c", "old"))
	if got := end(8 * time.Minute); got != 0 {
		t.Errorf("one of the pods stays, and they are taken to end after %s", got)
	}
}

// Pods that end because their node goes say nothing about how long pods live.
func TestLifetimesOfMovedPods(t *testing.T) {
	w, now := inhabited(), scenario.DefaultNow()
	w.Snapshot(now)
	w.SetPod(worker("a", "old", now))
	w.MarkForDeletion("new")
	for i := range 9 {
		finish(w, i, time.Minute, now)
	}
	if at := nodeAt(w, "old", now).Disruption.PodsEnd; !at.IsZero() {
		t.Errorf("the pod is taken to end at %s", at)
	}
}

// What is kept about pods that have ended is bounded, however many Jobs there are.
func TestLifetimesAreBounded(t *testing.T) {
	w, now := inhabited(), scenario.DefaultNow()
	w.Snapshot(now)
	end := func(class string, n int) {
		p := worker(fmt.Sprint("p", n), "new", now.Add(-time.Minute))
		p.Class = class
		w.SetPod(p)
		w.DeletePod(p.Namespace, p.Name)
	}
	for i := range 5 {
		end("first", i)
		end("last", 5+i)
	}
	for i := range 5000 {
		end(fmt.Sprint("class-", i), 10+i)
		if i%1000 == 0 {
			now = now.Add(time.Minute)
			w.Snapshot(now)
			end("last", 6000+i)
		}
	}
	for class, want := range map[string]bool{"first": false, "last": true} {
		w.DeletePod("default", "a")
		p := worker("a", "old", now)
		p.Class = class
		w.SetPod(p)
		if got := !nodeAt(w, "old", now).Disruption.PodsEnd.IsZero(); got != want {
			t.Errorf("the lifetime of the class %s is known: %t, want %t", class, got, want)
		}
	}
}

// Since when a node is there comes from its NodeClaim.
func TestNodesSince(t *testing.T) {
	w, now := inhabited(), scenario.DefaultNow()
	labels := map[string]string{model.LabelNodePool: "p0", model.LabelInitialized: "true", model.LabelRegistered: "true"}
	w.SetClaim(world.Claim{Name: "old", UID: "claim-old", ProviderID: "old", Labels: labels, Created: now.Add(-time.Hour)})
	if got := nodeAt(w, "old", now).Disruption.Since; !got.Equal(now.Add(-time.Hour)) {
		t.Errorf("the node is there since %s", got)
	}
}
