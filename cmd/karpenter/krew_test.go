package main

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKrewManifest: the plugin's description names commands that there are, and
// each platform has what Krew asks for.
func TestKrewManifest(t *testing.T) {
	text, err := os.ReadFile("../../deploy/krew/karpenter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version, ShortDescription, Description string
			Platforms                              []struct{ URI, Sha256, Bin string }
		}
	}
	if err := yaml.Unmarshal(text, &plugin); err != nil {
		t.Fatal(err)
	}
	chart, err := os.ReadFile("../../charts/karpenter/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(chart), "appVersion: "+strings.TrimPrefix(plugin.Spec.Version, "v")) && !strings.Contains(string(chart), `appVersion: "`+strings.TrimPrefix(plugin.Spec.Version, "v")) {
		t.Errorf("version %s is not that of the chart", plugin.Spec.Version)
	}
	if len(plugin.Spec.ShortDescription) > 50 {
		t.Errorf("the short description has %d letters, Krew wants 50 at most", len(plugin.Spec.ShortDescription))
	}
	root, named := rootCommand(surroundings{}), 0
	for _, line := range strings.Split(plugin.Spec.Description, "\n") {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "kubectl" {
			continue
		}
		named++
		if c, _, err := root.Find(words[2:3]); err != nil || c == root {
			t.Errorf("%s: there is no such command", line)
		}
	}
	if named < 4 || len(plugin.Spec.Platforms) < 2 {
		t.Errorf("%d commands, %d platforms", named, len(plugin.Spec.Platforms))
	}
	for _, p := range plugin.Spec.Platforms {
		if p.Bin != "kubectl-karpenter" || len(p.Sha256) != 64 || !strings.Contains(p.URI, plugin.Spec.Version) {
			t.Errorf("platform %+v", p)
		}
	}
}
