// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\n"

func named(name string) string { return strings.ReplaceAll(pod, "NAME", name) }

func TestRead(t *testing.T) {
	dir := write(t, map[string]string{
		"b.yaml":      "# only a comment\n---\n" + named("b1") + "---\n" + named("b2"),
		"a.yml":       named("a"),
		"c.json":      `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}}`,
		"readme.md":   "not a manifest",
		"deep/d.yaml": named("d"),
	})
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{dir}, "a b1 b2 c"},
		{[]string{filepath.Join(dir, "deep"), filepath.Join(dir, "a.yml")}, "d a"},
		{nil, ""},
	} {
		objects, err := Read(c.paths...)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range objects {
			names = append(names, o.GetName())
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v: read %q, want %q", c.paths, got, c.want)
		}
	}
}

func TestMistakesInManifests(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no manifests", map[string]string{"readme.md": "x"}, "no manifests"},
		{"no kind", map[string]string{"a.yaml": named("a") + "---\nmetadata: {name: b}\n"}, "document 2: apiVersion, kind or metadata.name is missing"},
		{"no YAML", map[string]string{"a.yaml": "a: [\n"}, "document 1: "},
	} {
		_, err := Read(write(t, c.files))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Read("nowhere.yaml"); err == nil || !strings.Contains(err.Error(), "nowhere.yaml") {
		t.Errorf("a missing file: %v", err)
	}
}
