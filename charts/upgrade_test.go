// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestUpgradeFromUpstream renders the chart with the default values of
// upstream's chart, as a values file that was copied from it has them. Every
// key is accepted.
func TestUpgradeFromUpstream(t *testing.T) {
	paths, err := filepath.Glob("testdata/upstream-*.yaml")
	if err != nil || len(paths) != 2 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		values := read(t, path)
		if _, err := render(t, "karpenter", values); err == nil || !strings.Contains(err.Error(), "settings.clusterName") {
			t.Errorf("%s without a cluster name: %v", path, err)
		}
		if env := environment(t, strings.Replace(values, `clusterName: ""`, "clusterName: demo", 1)); env["CLUSTER_NAME"] != "demo" {
			t.Errorf("%s: CLUSTER_NAME is %q", path, env["CLUSTER_NAME"])
		}
	}
}

// TestDRAValues: spec 48/94.
func TestDRAValues(t *testing.T) {
	for _, tc := range []struct{ settings, ignore, gates string }{
		{"", "true", "DRANVIDIAGPU=false,DRAEFA=false"},
		{"ignoreDRARequests: null", "true", "DRANVIDIAGPU=false,DRAEFA=false"},
		{"ignoreDRARequests: false", "false", "DRANVIDIAGPU=false,DRAEFA=false"},
		{"awsFeatureGates: {draEFA: true}", "false", "DRANVIDIAGPU=false,DRAEFA=true"},
		{"awsFeatureGates: {draNVIDIAGPU: true}, ignoreDRARequests: true", "false", "DRANVIDIAGPU=true,DRAEFA=false"},
		{"enableDRA: true", "false", "DRANVIDIAGPU=true,DRAEFA=true"},
	} {
		env := environment(t, "{settings: {clusterName: demo, "+tc.settings+"}}")
		if env["IGNORE_DRA_REQUESTS"] != tc.ignore || !strings.Contains(env["AWS_FEATURE_GATES"], tc.gates) {
			t.Errorf("%s: IGNORE_DRA_REQUESTS=%s AWS_FEATURE_GATES=%s", tc.settings, env["IGNORE_DRA_REQUESTS"], env["AWS_FEATURE_GATES"])
		}
	}
}

// TestPodDeletionCostRole: spec 48/94, the gate lets the controller patch pods.
func TestPodDeletionCostRole(t *testing.T) {
	for gate, want := range map[string]bool{"false": false, "true": true} {
		files, err := render(t, "karpenter", "{settings: {clusterName: demo, featureGates: {podDeletionCostManagement: "+gate+"}}}")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(files["clusterrole-core.yaml"], "resources: [pods]\n    verbs: [patch]"); got != want {
			t.Errorf("gate %s: patch on pods: %t", gate, got)
		}
	}
}
