// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// TestNotes checks what Helm shows after an installation: the namespace, the name
// of the Deployment, and the kind of node class that the provider uses.
func TestNotes(t *testing.T) {
	c, err := loader.Load("karpenter")
	if err != nil {
		t.Fatal(err)
	}
	for values, want := range map[string][]string{
		"settings: {clusterName: prod}":                            {"an EC2NodeClass", "deployment/shop-karpenter", "--namespace infra"},
		"settings: {cloudProvider: azure}":                         {"an AKSNodeClass", "deployment/shop-karpenter", "--namespace infra"},
		"settings: {cloudProvider: kwok}\nfullnameOverride: nodes": {"a KWOKNodeClass", "deployment/nodes", "--namespace infra"},
	} {
		given, err := chartutil.ReadValues([]byte(values))
		if err != nil {
			t.Fatal(err)
		}
		all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "shop", Namespace: "infra"}, chartutil.DefaultCapabilities)
		if err != nil {
			t.Fatal(err)
		}
		files, err := engine.Render(c, all)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["karpenter/templates/NOTES.txt"]
		for _, part := range append(want, "karpenter status", "delete the NodePools") {
			if !strings.Contains(notes, part) {
				t.Errorf("with %q the notes do not contain %q:\n%s", values, part, notes)
			}
		}
	}
}
