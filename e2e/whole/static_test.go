// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"testing"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStaticCapacity keeps a pool at its number of nodes: up, down, and through
// drifts that replace every node before it goes, with a crash of the program
// after the first and in the middle of the last. At no
// moment are there more nodes than the limit allows, and while the pool drifts
// never fewer than it asks for.
//
// spec 45/2, spec 45/4, spec 45/10, spec 40/43, spec 40/44, spec 40/47
func TestStaticCapacity(t *testing.T) {
	f := setUp(t, time.Second)
	const limit = 4
	two := int64(2)
	pool := f.pool(func(p *v1.NodePool) {
		p.Spec.Replicas = &two
		p.Spec.Limits = v1.Limits{"nodes": quantity(fmt.Sprint(limit))}
		p.Spec.Template.Spec.Requirements = append(p.Spec.Template.Spec.Requirements,
			v1.NodeSelectorRequirementWithMinValues{Key: "karpenter.kwok.sh/instance-cpu", Operator: "In", Values: []string{"4"}})
	})
	drifting := 0 // nodes that must be ready
	v := f.Watch(t, f.oneToOne, func(v *harness.View) {
		if n := len(f.claims(v)); n > limit {
			t.Errorf("%d claims exceed the limit of %d nodes", n, limit)
		}
		if n := f.readyClaims(v); n < drifting {
			t.Errorf("%d claims are ready while the pool drifts, want %d", n, drifting)
		}
	})
	const gate = "FEATURE_GATES=StaticCapacity=true"
	first := f.StartController(t, gate)
	v.Until("two nodes are ready", patience, f.keeps(v, 2))
	f.deployment(2, "1", "1Gi")
	v.Until("pods run", patience, f.running(v, 2))

	f.patch(pool, `{"spec":{"replicas":6}}`)
	v.Until("as many nodes as the limit allows", patience, f.keeps(v, limit))
	first.Kill()
	second := f.StartController(t, gate)
	v.Throughout(5 * time.Second)
	f.patch(pool, `{"spec":{"replicas":2}}`)
	v.Until("two nodes are left", patience, f.keeps(v, 2))
	v.Until("pods run", patience, f.running(v, 2))

	drifting = 2
	f.patch(pool, `{"spec":{"template":{"metadata":{"annotations":{"generation":"two"}}}}}`)
	v.Until("all nodes are new", patience, f.keepsNew(v, 2, "two"))
	v.Until("pods run", patience, f.running(v, 2))

	f.patch(pool, `{"spec":{"template":{"metadata":{"annotations":{"generation":"three"}}}}}`)
	v.Until("a replacement is on its way", patience, func() string {
		if n := len(f.claims(v)); n <= 2 {
			return fmt.Sprintf("%d claims", n)
		}
		return ""
	})
	second.Kill()
	f.StartController(t, gate)
	v.Until("all nodes are new", patience, f.keepsNew(v, 2, "three"))
	v.Until("pods run", patience, f.running(v, 2))
	drifting = 0
	f.patch(pool, `{"spec":{"replicas":0}}`)
	v.Until("nodes are gone", patience, f.empty(v))
}

// keeps says what keeps the test's pool from having n nodes, all of them ready.
func (f *fixture) keeps(v *harness.View, n int) func() string {
	return func() string {
		if claims, nodes, ready := len(f.claims(v)), len(f.nodes(v)), f.readyClaims(v); claims != n || nodes != n || ready != n {
			return fmt.Sprintf("%d claims, %d nodes and %d that are ready; want %d", claims, nodes, ready, n)
		}
		return ""
	}
}

// keepsNew says that too, and which claim is not of the generation.
func (f *fixture) keepsNew(v *harness.View, n int, generation string) func() string {
	return func() string {
		for _, c := range f.claims(v) {
			if c.Annotations["generation"] != generation {
				return "claim " + c.Name + " is an old one"
			}
		}
		return f.keeps(v, n)()
	}
}

// readyClaims counts the claims of the test's pool that are ready and to stay.
func (f *fixture) readyClaims(v *harness.View) int {
	n := 0
	for _, c := range f.claims(v) {
		if ready(&c) && c.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (f *fixture) patch(o client.Object, merge string) {
	f.Helper()
	if err := f.Client.Patch(f.Context(), o, client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
		f.Fatal(err)
	}
}
