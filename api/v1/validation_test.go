// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
)

// TestValidateNodePool judges templates given as YAML. Input is spec.template;
// output is "ok" or the errors, one per line, and the warnings.
func TestValidateNodePool(t *testing.T) {
	labels := v1.DefaultLabels().With(v1.Labels{
		WellKnown:         sets.New("example.com/size"),
		RestrictedDomains: sets.New("example.com"),
		Aliases:           map[string]string{"old.example.com/size": "example.com/size"},
	})
	datadriven.RunTest(t, "testdata/validation", func(t *testing.T, d *datadriven.TestData) string {
		text := d.Input
		if d.HasArg("replace-L") {
			var n int
			d.ScanArgs(t, "replace-L", &n)
			text = strings.ReplaceAll(text, "LONG", strings.Repeat("l", n))
		}
		var pool v1.NodePool
		var into any = &pool.Spec.Template
		if d.HasArg("disruption") {
			into = &pool.Spec.Disruption
		}
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			d.Fatalf(t, "%v", err)
		}
		var out strings.Builder
		err := v1.ValidateNodePool(&pool, labels)
		if err == nil {
			out.WriteString("ok\n")
		} else {
			for _, single := range err.(v1.ValidationErrors) {
				line := strings.ReplaceAll(single.Error(), strings.Repeat("l", 200), "LONG")
				out.WriteString(line + "\n")
			}
		}
		for _, warning := range v1.NodePoolWarnings(&pool, labels) {
			out.WriteString("warning: " + warning + "\n")
		}
		return out.String()
	})
}

// TestNodePoolNameIsALabelValue covers names that API servers accept for objects and not as values of
// labels: no NodeClaim of such a NodePool could be created.
func TestNodePoolNameIsALabelValue(t *testing.T) {
	for length, fits := range map[int]bool{63: true, 64: false, 253: false} {
		pool := v1.NodePool{}
		pool.Name = strings.Repeat("a", length)
		if err := v1.ValidateNodePool(&pool, v1.DefaultLabels()); (err == nil) != fits {
			t.Errorf("a name of %d characters: error is %v", length, err)
		}
	}
}

func TestLabels(t *testing.T) {
	core := v1.DefaultLabels()
	extended := core.With(v1.Labels{
		WellKnown:    sets.New("karpenter.sh/new"),
		Aliases:      map[string]string{"csi.example.com/zone": "topology.kubernetes.io/zone"},
		ValueAliases: map[string]map[string]string{"topology.kubernetes.io/zone": {"1a": "zone-1a"}},
	})
	if core.WellKnown.Has("karpenter.sh/new") || len(core.Aliases) != 5 {
		t.Error("With changed its receiver")
	}
	if err := extended.CheckRestricted("karpenter.sh/new"); err != nil {
		t.Error(err)
	}
	if k, v := extended.Canonical("csi.example.com/zone", "1a"); k != "topology.kubernetes.io/zone" || v != "zone-1a" {
		t.Errorf("canonical form is %s=%s", k, v)
	}
	for key, restricted := range map[string]bool{
		"karpenter.sh":            false, // no domain: not a reserved key
		"karpenter.sh/x":          true,
		"sub.karpenter.sh/x":      true,
		"my-karpenter.sh/x":       false, // only the schema refuses it
		"kubernetes.io/hostname":  true,
		"kubernetes.io/x":         false,
		"kops.k8s.io/x":           false,
		"karpenter.sh/nodepool":   false,
		"node.kubernetes.io/test": false,
	} {
		if got := core.CheckRestricted(key) != nil; got != restricted {
			t.Errorf("%s: restricted is %v", key, got)
		}
	}
}
