// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestVersion checks that the program, both charts, the image that the chart
// names, the kubectl plugin and the changelog have the same version.
func TestVersion(t *testing.T) {
	source := read(t, "../kube/manager/version.go")
	constant := func(name string) string {
		m := regexp.MustCompile(`const ` + name + ` = "([0-9.]+)"`).FindStringSubmatch(source)
		if m == nil {
			t.Fatalf("kube/manager/version.go has no constant %s", name)
		}
		return m[1]
	}
	version, upstream := constant("Version"), constant("Upstream")
	for _, chart := range []string{"karpenter", "karpenter-crd"} {
		var c struct {
			Version, AppVersion string
			Annotations         map[string]string
		}
		if err := yaml.Unmarshal([]byte(lowerKey(read(t, chart+"/Chart.yaml"))), &c); err != nil {
			t.Fatal(err)
		}
		if c.Version != version || c.AppVersion != version {
			t.Errorf("chart %s has version %s and appVersion %s, want %s", chart, c.Version, c.AppVersion, version)
		}
		if chart == "karpenter" && c.Annotations["karpenter.sh/compatible-with"] != upstream {
			t.Errorf("chart %s is compatible with %q, want %s", chart, c.Annotations["karpenter.sh/compatible-with"], upstream)
		}
	}
	for path, want := range map[string]string{
		"karpenter/values.yaml":         "    tag: " + version + "\n",
		"karpenter/Chart.yaml":          "image: karpenter/controller:" + version + "\n",
		"../deploy/krew/karpenter.yaml": "  version: v" + version + "\n",
		"../CHANGELOG.md":               "\n## " + version + " ",
	} {
		if !strings.Contains(read(t, path), want) {
			t.Errorf("%s does not contain %q", path, want)
		}
	}
}

// lowerKey has the decoder, which expects keys in lower case, find appVersion.
func lowerKey(text string) string { return strings.Replace(text, "\nappVersion:", "\nappversion:", 1) }
