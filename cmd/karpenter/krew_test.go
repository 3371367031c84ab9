// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKrewManifest: the plugin's description names commands that there are, and
// nothing in the tree pretends to be a checksum: make krew writes those.
func TestKrewManifest(t *testing.T) {
	text, err := os.ReadFile("../../deploy/krew/karpenter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version, ShortDescription, Description string
			Platforms                              []any
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
	if named < 5 {
		t.Errorf("only %d commands", named)
	}
	if len(plugin.Spec.Platforms) > 0 || strings.Contains(string(text), "sha256: ") {
		t.Error("the manifest has platforms; they come with the archives, from make krew")
	}
}
