package docs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const licence = "SPDX-License-Identifier: Apache-2.0"

// TestLicenceHeaders keeps a line with the licence at the top of every source file.
// With -update it adds the missing ones.
func TestLicenceHeaders(t *testing.T) {
	list := exec.Command("git", "ls-files", "*.go", "*.sh", "*.mjs", "*.py")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Skipf("not a Git checkout: %v", err)
	}
	for _, name := range strings.Fields(string(files)) {
		path := filepath.Join(root, name)
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text[:min(len(text), 200)], []byte(licence)) {
			continue
		}
		if !*update {
			t.Errorf("%s does not name its licence; run make headers", name)
			continue
		}
		if err := os.WriteFile(path, withHeader(filepath.Ext(name), text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// withHeader puts the licence above a file's text, and below a script's first line.
func withHeader(extension string, text []byte) []byte {
	if extension == ".go" || extension == ".mjs" {
		return append([]byte("// "+licence+"\n\n"), text...)
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	if !bytes.HasPrefix(first, []byte("#!")) {
		return append([]byte("# "+licence+"\n\n"), text...)
	}
	return append(append(first, []byte("\n# "+licence+"\n#\n")...), rest...)
}
