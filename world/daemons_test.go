// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"
	"time"

	"karpenter/model"
	"karpenter/world"
)

// TestDevicesOfDaemons: a DaemonSet claims the devices that its newest pod claims, and of
// pods of the same second that with the greater UID, whatever comes first. Without claims in its
// template it claims none, also if older pods still have some.
func TestDevicesOfDaemons(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pod := func(uid string, created time.Time, claims ...string) world.Pod {
		p := world.Pod{Namespace: "default", Name: uid, UID: uid, Created: created, DaemonSet: "default/d", Daemon: true, Shape: &model.Shape{Key: "s"}}
		for _, c := range claims {
			p.Devices = append(p.Devices, model.DeviceClaim{Name: c})
		}
		return p
	}
	template := func(claims bool) world.Daemon {
		return world.Daemon{Name: "default/d", Shape: &model.Shape{Key: "template"}, Claims: claims}
	}
	old, a, b := pod("z", now.Add(-time.Hour), "old"), pod("a", now, "a"), pod("b", now, "b")
	for _, c := range []struct {
		name string
		do   func(*world.World)
		want string
	}{
		{"the newest pod", func(w *world.World) { w.SetPod(a); w.SetPod(old) }, "a"},
		{"pods of one second", func(w *world.World) { w.SetPod(b); w.SetPod(a) }, "b"},
		{"the same in another order", func(w *world.World) { w.SetPod(a); w.SetPod(b) }, "b"},
		{"a pod that changes", func(w *world.World) { w.SetPod(b); w.SetPod(pod("b", now, "c")) }, "c"},
		{"a pod whose claims are not there yet", func(w *world.World) { w.SetPod(old); w.SetPod(pod("new", now)) }, "old"},
		{"a template without claims", func(w *world.World) { w.SetPod(a); w.SetDaemon(template(false)) }, ""},
		{"and pods of the one before", func(w *world.World) { w.SetDaemon(template(false)); w.SetPod(a) }, ""},
	} {
		w := world.New(model.NewAxis(), nil)
		w.SetDaemon(template(true))
		c.do(w)
		got := ""
		for _, d := range w.Snapshot(now).Daemons {
			for _, claim := range d.Shape.Claims {
				got += claim.Name
			}
		}
		if got != c.want {
			t.Errorf("%s: claims %q, want %q", c.name, got, c.want)
		}
	}
}
