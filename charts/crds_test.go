// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the tests compare with")

// annotations is where controller-gen leaves its mark on a definition.
var annotations = regexp.MustCompile(`(?m)^  annotations:\n    controller-gen.*\n`)

// TestDefinitions holds the definitions in the charts to those of the API: as
// they are in karpenter/crds, which Helm installs and never changes, and with
// annotations of the user's in karpenter-crd, which Helm upgrades.
func TestDefinitions(t *testing.T) {
	sources, err := filepath.Glob("../api/crds/*.yaml")
	if err != nil || len(sources) < 6 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		plain := read(t, source)
		if strings.Contains(plain, "{{") {
			t.Errorf("%s: Helm would take a part of it for a template", source)
		}
		mark := annotations.FindString(plain)
		if mark == "" {
			t.Fatalf("%s has no annotations of controller-gen", source)
		}
		templated := strings.Replace(plain, mark, mark+"    {{- with .Values.additionalAnnotations }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n", 1)
		name := filepath.Base(source)
		same(t, filepath.Join("karpenter", "crds", name), plain)
		same(t, filepath.Join("karpenter-crd", "templates", name), templated)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// same compares a file with what it should hold, or writes that.
func same(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Errorf("%s is not up to date (go test ./... -update in charts/): -want +got\n%s", path, diff)
	}
}
