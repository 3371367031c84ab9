// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestProjectFiles checks the files that the hosts of repositories read: they can
// be read, the workflows run targets that the Makefile has, and the bug report
// asks for a snapshot.
func TestProjectFiles(t *testing.T) {
	for _, name := range []string{
		"SECURITY.md", "CODE_OF_CONDUCT.md", "GOVERNANCE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "NOTICE",
		".editorconfig", ".github/CODEOWNERS", ".github/PULL_REQUEST_TEMPLATE.md",
	} {
		if strings.TrimSpace(read(t, name)) == "" {
			t.Errorf("%s is empty", name)
		}
	}
	var files []string
	for _, pattern := range []string{".golangci.yml", ".github/*.yml", ".github/*/*.y*ml"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no file %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	targets := regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1)
	run := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(text, &content); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, m := range regexp.MustCompile(`(?m)\bmake ([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(path, "workflows") {
				continue
			}
			run++
			if !slices.ContainsFunc(targets, func(t []string) bool { return t[1] == m[1] }) {
				t.Errorf("%s: the Makefile has no target %s", path, m[1])
			}
		}
	}
	if run < 4 {
		t.Errorf("the workflows run only %d targets", run)
	}
	if text := read(t, ".github/ISSUE_TEMPLATE/bug.yaml"); !strings.Contains(text, "karpenter snapshot") {
		t.Error("the bug report does not ask for a snapshot")
	}
	var container map[string]any
	if err := json.Unmarshal([]byte(read(t, ".devcontainer/devcontainer.json")), &container); err != nil {
		t.Errorf("devcontainer.json: %v", err)
	}
}

// TestDependabotKnowsModules checks that each Go module of the repository is
// updated.
func TestDependabotKnowsModules(t *testing.T) {
	config := read(t, ".github/dependabot.yml")
	count := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (entry.Name() == "bin" || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".")) {
			return filepath.SkipDir
		}
		if entry.Name() != "go.mod" {
			return nil
		}
		count++
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if want := `"/` + strings.TrimPrefix(filepath.ToSlash(folder), ".") + `"`; !strings.Contains(config, want) {
			t.Errorf(".github/dependabot.yml does not list the module in %s", want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 7 {
		t.Errorf("only %d modules", count)
	}
}
