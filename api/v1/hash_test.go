// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
)

// TestHashGolden compares the drift hash with upstream's: spec 10/58,
// spec 10/59 (requirements) and spec 10/60.
func TestHashGolden(t *testing.T) {
	seen := map[string]string{}
	datadriven.RunTest(t, "testdata/hash", func(t *testing.T, d *datadriven.TestData) string {
		var pool v1.NodePool
		if err := yaml.UnmarshalStrict([]byte(d.Input), &pool.Spec.Template); err != nil {
			d.Fatalf(t, "template: %v", err)
		}
		hash := pool.Hash()
		var name, same string
		d.ScanArgs(t, "name", &name)
		seen[name] = hash
		if d.HasArg("same-as") {
			d.ScanArgs(t, "same-as", &same)
			if seen[same] != hash {
				d.Fatalf(t, "hash %s differs from %s of case %s", hash, seen[same], same)
			}
		}
		return hash + "\n"
	})
}

// TestHashIgnoresRest covers spec 10/59: only the template is hashed.
func TestHashIgnoresRest(t *testing.T) {
	pool := v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	want := pool.Hash()
	weight, replicas := int32(3), int64(4)
	pool.Name = "b"
	pool.Spec.Weight = &weight
	pool.Spec.Replicas = &replicas
	pool.Spec.Limits = v1.Limits{"nodes": {}}
	pool.Spec.Disruption = v1.Disruption{
		ConsolidateAfter:    v1.MustParseNillableDuration("5m"),
		ConsolidationPolicy: v1.ConsolidationPolicyBalanced,
		Budgets:             []v1.Budget{{Nodes: "1"}},
	}
	if got := pool.Hash(); got != want {
		t.Errorf("hash %s, want %s: something outside the template is hashed", got, want)
	}
}
