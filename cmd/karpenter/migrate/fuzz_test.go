// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"karpenter/cmd/karpenter/migrate"
)

// FuzzMigrate: nothing makes it panic; what comes out can be read if what went
// in could; and migrating it again changes nothing.
func FuzzMigrate(f *testing.F) {
	ins, err := filepath.Glob("testdata/cases/*/in.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, in := range ins {
		content, err := os.ReadFile(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Fuzz(func(t *testing.T, content string) {
		result, err := migrate.Migrate([]migrate.Source{{Name: "f", Text: content}}, migrate.Options{})
		if err != nil {
			return
		}
		out := result.Files[0]
		if out.Changed && readable(content) && !readable(out.Text) {
			t.Fatalf("cannot be read:\n%s", out.Text)
		}
		again, err := migrate.Migrate([]migrate.Source{out.Source}, migrate.Options{})
		if err != nil {
			t.Fatalf("cannot be migrated again: %v\n%s", err, out.Text)
		}
		if again.Files[0].Changed {
			t.Fatalf("migrating twice changes more:\n%s\nbecomes\n%s", out.Text, again.Files[0].Text)
		}
	})
}

func readable(content string) bool {
	decoder := yaml.NewDecoder(strings.NewReader(content))
	for {
		var n yaml.Node
		if err := decoder.Decode(&n); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}
