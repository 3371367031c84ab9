// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"testing"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// TestKilledAnywhere kills the program with SIGKILL at the moments that hurt:
// claims created and not launched, instances launched and not registered, nodes
// draining. Each restart finishes what was begun: no pod is lost, no instance
// leaks, none is doubled, and no more nodes are launched than without the crash.
func TestKilledAnywhere(t *testing.T) {
	f := setUp(t, 4*time.Second)
	f.pool(nil)
	names := map[string]bool{} // of every claim there ever was
	v := f.Watch(t, f.oneToOne, func(v *harness.View) {
		for _, c := range f.claims(v) {
			names[c.Name] = true
		}
	})

	k := f.StartController(t)
	d := f.deployment(24, "1", "1Gi")
	v.Until("a claim appears", patience, func() string { return some(len(names), "claim") })
	k.Kill()

	k = f.StartController(t)
	v.Until("a machine is launched and has no node yet", patience, func() string {
		for _, c := range f.claims(v) {
			if c.Status.ProviderID != "" && c.Status.NodeName == "" {
				return ""
			}
		}
		return "no such claim"
	})
	k.Kill()

	k = f.StartController(t)
	v.Until("a node is there and not registered", patience, func() string {
		for _, n := range f.nodes(v) {
			if n.Labels[v1.NodeRegisteredLabelKey] == "" {
				return ""
			}
		}
		return some(0, "such node")
	})
	k.Kill()

	k = f.StartController(t)
	v.Until("pods run", patience, f.running(v, 24))
	bought := len(names)
	if now := len(f.claims(v)); now != bought {
		t.Errorf("%d claims were made, %d are there", bought, now)
	}
	if most := 24; bought > most {
		t.Errorf("%d claims for %d pods", bought, most)
	}

	for _, c := range f.claims(v)[:1] {
		if err := f.Client.Delete(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		v.Until("its node drains", patience, func() string {
			for _, p := range v.Pods(f.name) {
				if p.DeletionTimestamp != nil {
					return ""
				}
			}
			return "no pod is being evicted"
		})
		k.Kill()
		k = f.StartController(t)
		v.Until("the claim is gone and its pods run elsewhere", patience, func() string {
			for _, now := range f.claims(v) {
				if now.Name == c.Name {
					return "claim " + c.Name + " is still there"
				}
			}
			return f.running(v, 24)()
		})
	}

	f.scale(d, 0)
	v.Until("a node is being removed", patience, func() string {
		for _, n := range f.nodes(v) {
			if n.DeletionTimestamp != nil {
				return ""
			}
		}
		return some(0, "such node")
	})
	k.Kill()
	f.StartController(t)
	v.Until("nodes are gone", patience, f.empty(v))
}

func some(n int, what string) string {
	if n > 0 {
		return ""
	}
	return fmt.Sprintf("there is no %s", what)
}
