// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestFirstNodePool checks that a newcomer meets one NodePool for each cloud: that of
// docs/nodepool.md launches what that of the examples launches, within the same limits.
func TestFirstNodePool(t *testing.T) {
	type pool struct {
		Kind string
		Spec struct{ Template, Limits any }
	}
	parse := func(text string) (all []pool) {
		for manifest := range strings.SplitSeq(text, "\n---\n") {
			var p pool
			if err := yaml.Unmarshal([]byte(manifest), &p); err != nil {
				t.Fatal(err)
			}
			if p.Kind == "NodePool" {
				all = append(all, p)
			}
		}
		return all
	}
	var shown []pool
	for _, b := range pages(t)["docs/nodepool.md"].Blocks {
		if b.Language == "yaml" {
			shown = append(shown, parse(b.Text)...)
		}
	}
	for i, cloud := range []string{"aws", "azure"} {
		example := parse(read(t, "examples/"+cloud+"/default/default.yaml"))
		if len(example) != 1 || len(shown) <= i {
			t.Fatalf("%s: %d NodePools in the example, %d in docs/nodepool.md", cloud, len(example), len(shown))
		}
		if diff := cmp.Diff(example[0], shown[i]); diff != "" {
			t.Errorf("%s: the NodePool of docs/nodepool.md is not the one of the example:\n%s", cloud, diff)
		}
	}
}
