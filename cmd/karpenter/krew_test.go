// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// TestKrewPlatforms runs make krew, with a compiler that writes what it was asked
// for. The manifest names each platform that make release builds, and its archive
// with the right checksum and a program for that platform.
func TestKrewPlatforms(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^PLATFORMS \?= (\S+)$`).FindSubmatch(makefile)
	if found == nil {
		t.Fatal("the Makefile has no PLATFORMS")
	}
	platforms := strings.Split(string(found[1]), ",")
	for _, target := range []string{"build --platforms $(PLATFORMS)", "'$(URL)' $(PLATFORMS)"} { // of release and krew
		if !strings.Contains(string(makefile), target) {
			t.Errorf("the Makefile has no %q", target)
		}
	}
	const address = "https://downloads.example.com/karpenter"
	fake, out := t.TempDir(), t.TempDir()
	compiler := "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho \"$GOOS/$GOARCH\" >\"$2\"\n"
	if err := os.WriteFile(filepath.Join(fake, "go"), []byte(compiler), 0o755); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("../../deploy/krew/release.sh", out, address, string(found[1]))
	build.Env = append(os.Environ(), "PATH="+fake+":"+os.Getenv("PATH"))
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(out, "karpenter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		Spec struct {
			Version, Homepage string
			Platforms         []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(text, &plugin); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if plugin.Spec.Homepage != address || len(plugin.Spec.Platforms) != len(platforms) {
		t.Fatalf("homepage %s and %d platforms, want %s and %d", plugin.Spec.Homepage, len(plugin.Spec.Platforms), address, len(platforms))
	}
	for i, p := range plugin.Spec.Platforms {
		system, arch, _ := strings.Cut(platforms[i], "/")
		if p.Selector.MatchLabels["os"] != system || p.Selector.MatchLabels["arch"] != arch {
			t.Errorf("platform %d is %v, want %s", i, p.Selector.MatchLabels, platforms[i])
		}
		archive := filepath.Join(out, filepath.Base(p.URI))
		content, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if p.URI != address+"/"+plugin.Spec.Version+"/"+filepath.Base(archive) || p.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: address %s, checksum %s", platforms[i], p.URI, p.SHA256)
		}
		program, err := exec.Command("tar", "-xzOf", archive, p.Bin).Output()
		if err != nil || strings.TrimSpace(string(program)) != platforms[i] {
			t.Errorf("%s: the archive has a program for %s (%v)", platforms[i], program, err)
		}
	}
}
