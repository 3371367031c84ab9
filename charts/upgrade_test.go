// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// upstream returns the paths of values files: the default values of releases of
// upstream's chart.
func upstream(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/upstream-*.yaml")
	if err != nil || len(paths) != 2 {
		t.Fatal(paths, err)
	}
	return paths
}

// TestUpgradeFromUpstream upgrades a release of upstream's chart to this chart
// with Helm's own code. The user had set a few values. With every way to pass
// values these stay in force, and no way runs upstream's image with our roles.
func TestUpgradeFromUpstream(t *testing.T) {
	const refused = "upgrade without --reuse-values"
	for _, path := range upstream(t) {
		defaults, err := chartutil.ReadValues([]byte(read(t, path)))
		if err != nil {
			t.Fatal(err)
		}
		ours, err := chartutil.ReadValues([]byte("controller: {image: {repository: registry.example.com/karpenter, tag: v1, digest: ''}}"))
		if err != nil {
			t.Fatal(err)
		}
		everything := map[string]any{"settings": map[string]any{"clusterName": "demo"}, "logLevel": "debug"}
		chartutil.CoalesceTables(everything, ours)
		chartutil.CoalesceTables(everything, defaults)
		for _, tc := range []struct {
			name   string
			set    func(*action.Upgrade)
			values map[string]any
			want   string // part of the error; empty: the upgrade succeeds
		}{
			{name: "without values"},
			{name: "--reset-then-reuse-values", set: func(u *action.Upgrade) { u.ResetThenReuseValues = true }},
			{name: "a copy of all values, with our image", values: everything},
			{name: "a copy of all values", values: chartutil.CoalesceTables(map[string]any{"settings": map[string]any{"clusterName": "demo"}}, defaults), want: refused},
			{name: "--reuse-values", set: func(u *action.Upgrade) { u.ReuseValues = true }, want: refused},
		} {
			t.Run(filepath.Base(path)+"/"+tc.name, func(t *testing.T) {
				manifest, err := upgraded(t, defaults, tc.set, tc.values)
				if tc.want != "" {
					if err == nil || !strings.Contains(err.Error(), tc.want) {
						t.Fatalf("error %v, want one that contains %q", err, tc.want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range []string{"name: CLUSTER_NAME\n              value: \"demo\"", "name: LOG_LEVEL\n              value: \"debug\"", "kind: PodDisruptionBudget"} {
					if !strings.Contains(manifest, part) {
						t.Errorf("the manifest lacks %q", part)
					}
				}
				if strings.Contains(manifest, "public.ecr.aws/karpenter") {
					t.Error("the manifest names upstream's image")
				}
			})
		}
	}
}

// upgraded installs a chart with the default values of upstream's and a few values
// of a user, upgrades it to ours, and returns its manifest.
func upgraded(t *testing.T, defaults map[string]any, set func(*action.Upgrade), values map[string]any) (string, error) {
	t.Helper()
	config := &action.Configuration{
		Releases:     storage.Init(driver.NewMemory()),
		KubeClient:   &fake.PrintingKubeClient{Out: io.Discard},
		Capabilities: chartutil.DefaultCapabilities.Copy(),
		Log:          t.Logf,
	}
	config.Capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.35.0", Major: "1", Minor: "35"}
	theirs := &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "karpenter", Version: "1.0.0"}, Values: defaults}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace = "karpenter", "kube-system"
	if _, err := install.Run(theirs, map[string]any{"settings": map[string]any{"clusterName": "demo"}, "logLevel": "debug"}); err != nil {
		t.Fatal(err)
	}
	ours, err := loader.Load("karpenter")
	if err != nil {
		t.Fatal(err)
	}
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace = "kube-system"
	if set != nil {
		set(upgrade)
	}
	release, err := upgrade.Run("karpenter", ours, values)
	if err != nil {
		return "", err
	}
	return release.Manifest, nil
}

// TestUpgradeWithoutClusterName: the default values of upstream's chart have none,
// and the error names the reason.
func TestUpgradeWithoutClusterName(t *testing.T) {
	for _, path := range upstream(t) {
		if _, err := render(t, "karpenter", read(t, path)); err == nil || !strings.Contains(err.Error(), "settings.clusterName") {
			t.Errorf("%s without a cluster name: %v", path, err)
		}
	}
}

// TestDRAValues: spec 48/94.
func TestDRAValues(t *testing.T) {
	for _, tc := range []struct{ settings, ignore, gates string }{
		{"", "", "NodeClassCEL=false,RebootForRepair=false"},
		{"ignoreDRARequests: null", "", "NodeClassCEL=false,RebootForRepair=false"},
		{"ignoreDRARequests: false", "false", "NodeClassCEL=false,RebootForRepair=false"},
		{"ignoreDRARequests: true", "true", "NodeClassCEL=false,RebootForRepair=false"},
		{"awsFeatureGates: {draEFA: true}", "false", "=false,DRAEFA=true,"},
		{"awsFeatureGates: {draNVIDIAGPU: true}, ignoreDRARequests: true", "false", "=false,DRANVIDIAGPU=true,Reboot"},
		{"awsFeatureGates: {draNVIDIAGPU: false}", "", "=false,DRANVIDIAGPU=false,Reboot"},
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
