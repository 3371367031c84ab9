// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulncheck runs the check with databases of its own: it passes when nothing
// is known, and fails with the module's name when something is.
func TestVulncheck(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sbom")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "./sbom").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const module = "stdlib"
	known := `{"schema_version": "1.3.1", "id": "GO-2000-0001", "modified": "2000-01-01T00:00:00Z", "summary": "made up",
		"database_specific": {"url": "https://pkg.go.dev/vuln/GO-2000-0001"},
		"affected": [{"package": {"name": "` + module + `", "ecosystem": "Go"}, "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
			"ecosystem_specific": {"imports": [{"path": "debug/buildinfo", "symbols": ["ReadFile"]}]}}]}`
	for _, tc := range []struct {
		name  string
		files map[string]string
		fails bool
		says  string
	}{
		{"nothing is known", map[string]string{"index/modules.json": "[]", "index/vulns.json": "[]"}, false, "No vulnerabilities found."},
		{"something is known", map[string]string{
			"index/modules.json":   `[{"path": "` + module + `", "vulns": [{"id": "GO-2000-0001", "modified": "2000-01-01T00:00:00Z"}]}]`,
			"index/vulns.json":     `[{"id": "GO-2000-0001", "modified": "2000-01-01T00:00:00Z"}]`,
			"ID/GO-2000-0001.json": known,
		}, true, "buildinfo.ReadFile"},
		{"no database", nil, true, "there is no database at file://"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			db := t.TempDir()
			if tc.files != nil {
				tc.files["index/db.json"] = `{"modified": "2000-01-01T00:00:00Z"}`
			}
			for name, text := range tc.files {
				path := filepath.Join(db, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			check := exec.CommandContext(t.Context(), "make", "-C", "..", "vulncheck", "VULNDB=file://"+db, "SCANNED="+program)
			check.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=")
			out, err := check.CombinedOutput()
			if (err != nil) != tc.fails || !strings.Contains(string(out), tc.says) {
				t.Errorf("%v, want failure %t and %q:\n%s", err, tc.fails, tc.says, out)
			}
		})
	}
}
