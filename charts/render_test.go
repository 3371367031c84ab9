// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// render returns what Helm makes of a chart and a values file, "" for none, by
// the file name of the template.
func render(t *testing.T, chart, values string) (map[string]string, error) {
	t.Helper()
	c, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.35.0", Major: "1", Minor: "35"}
	capabilities.APIVersions = append(capabilities.APIVersions, "monitoring.coreos.com/v1")
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "karpenter", Namespace: "kube-system", Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	out := map[string]string{}
	for name, text := range files {
		if base := filepath.Base(name); !strings.HasPrefix(base, "_") && filepath.Ext(base) != ".txt" && strings.TrimSpace(text) != "" {
			out[base] = text
		}
	}
	return out, err
}

// TestRender compares what the chart makes of the values in testdata with what
// it made of them before.
func TestRender(t *testing.T) {
	values, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(values) < 3 {
		t.Fatal(values, err)
	}
	for _, path := range values {
		files, err := render(t, "karpenter", read(t, path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var all strings.Builder
		for _, name := range slices.Sorted(maps.Keys(files)) {
			all.WriteString("---\n# " + name + "\n" + strings.TrimSpace(files[name]) + "\n")
		}
		same(t, strings.TrimSuffix(path, ".values.yaml")+".yaml", all.String())
	}
}

// TestMonitorWithoutConfig: null takes the default of a value away.
func TestMonitorWithoutConfig(t *testing.T) {
	for secure, scheme := range map[string]int{"false": 0, "true": 1} {
		files, err := render(t, "karpenter", "{settings: {clusterName: demo}, serviceMonitor: {enabled: true, endpointConfig: null}, controller: {metrics: {secure: "+secure+"}}}")
		if got := strings.Count(files["servicemonitor.yaml"], "scheme: https"); err != nil || got != scheme {
			t.Errorf("secure %s: %d schemes, %v", secure, got, err)
		}
	}
}

// TestInvalidValues shows the errors for invalid values.
func TestInvalidValues(t *testing.T) {
	for _, tc := range []struct{ values, want string }{
		{"{}", "Chart cannot be installed without a valid settings.clusterName!"},
		{"{settings: {clusterNmae: demo}}", "additional properties 'clusterNmae' not allowed"},
		{"{settings: {clusterName: demo, featureGates: {nodeRepair: 'yes'}}}", "got string, want boolean"},
		{"{settings: {clusterName: demo}, controller: {metrics: {certDir: /tls}}}", "set controller.metrics.secure, too"},
		{"{settings: {clusterName: demo, enableDRA: true, awsFeatureGates: {draEFA: false}}}", "settings.enableDRA sets draNVIDIAGPU, draEFA and ignoreDRARequests"}, // spec 48/94
		{"{settings: {clusterName: demo, legacyNodeRepair: true, featureGates: {terminateFirstRepair: true}}}", "exclude each other"},                                // spec 48/94
		{"{settings: {clusterName: demo}, logLevel: loud}", "value must be one of 'debug', 'info', 'error'"},
	} {
		if _, err := render(t, "karpenter", tc.values); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", tc.values, err, tc.want)
		}
	}
}

func TestLint(t *testing.T) {
	linter := action.NewLint()
	for _, chart := range []string{"karpenter", "karpenter-crd"} {
		result := linter.Run([]string{chart}, map[string]any{"settings": map[string]any{"clusterName": "demo"}})
		for _, m := range result.Messages {
			if !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %v", chart, m)
			}
		}
	}
}

// TestDefinitionsTakeAnnotations shows the one value of karpenter-crd.
func TestDefinitionsTakeAnnotations(t *testing.T) {
	files, err := render(t, "karpenter-crd", "{additionalAnnotations: {argocd.argoproj.io/sync-options: ServerSideApply=true}}")
	if err != nil || len(files) < 6 {
		t.Fatal(len(files), err)
	}
	for name, text := range files {
		if !strings.Contains(text, "    argocd.argoproj.io/sync-options: ServerSideApply=true\n") {
			t.Errorf("%s has no annotation of the user's", name)
		}
	}
}
