// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/cmd/karpenter/migrate"
)

var rewrite = flag.Bool("rewrite", false, "write what comes out into testdata/cases")

// TestCases migrates the manifests of testdata/cases: in.yaml becomes out.yaml,
// with report.txt. What comes out is accepted by the schema, and migrating it
// again changes nothing.
func TestCases(t *testing.T) {
	ins, err := filepath.Glob("testdata/cases/*/in.yaml")
	if err != nil || len(ins) < 15 {
		t.Fatalf("%d cases, %v", len(ins), err)
	}
	schemas := readSchemas(t)
	for _, in := range ins {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			content, err := os.ReadFile(in)
			if err != nil {
				t.Fatal(err)
			}
			out, report := migrated(t, string(content))
			golden(t, filepath.Join(dir, "out.yaml"), out)
			golden(t, filepath.Join(dir, "report.txt"), report)
			if again, _ := migrated(t, out); again != out {
				t.Errorf("migrating twice changes more:\n%s", cmp.Diff(out, again))
			}
			if faults := schemas.faults(t, out); len(faults) > 0 && !strings.Contains(report, "would reject") && !strings.Contains(report, "there is no Provisioner") {
				t.Errorf("the API server would reject it, and the report does not say so:\n%s", strings.Join(faults, "\n"))
			}
		})
	}
}

// TestGuide: the API server accepts what the guide tells people to apply, and
// the guide's manifests of v1 need no migration.
func TestGuide(t *testing.T) {
	files, err := filepath.Glob("../../../docs/migration/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	schemas := readSchemas(t)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := migrated(t, string(content))
		for _, fault := range schemas.faults(t, out) {
			t.Errorf("%s: %s", file, fault)
		}
		if filepath.Base(file) == "node-group.yaml" && out != string(content) {
			t.Errorf("%s is changed:\n%s", file, out)
		}
	}
}

func migrated(t *testing.T, content string) (out, report string) {
	t.Helper()
	result, err := migrate.Migrate([]migrate.Source{{Name: "in.yaml", Text: content}}, migrate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := result.Report.Write(&text); err != nil {
		t.Fatal(err)
	}
	if f := result.Files[0]; f.Changed != (f.Text != content) {
		t.Errorf("changed is %t", f.Changed)
	}
	return result.Files[0].Text, text.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -rewrite writes it anew):\n%s", path, diff)
	}
}
