// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPartsOfMakeTest runs targets side by side as make test does: the output of
// each is in one piece, a failure is named and fails the whole, and what comes
// after it runs all the same.
func TestPartsOfMakeTest(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(root, "internal/parts.sh"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	targets := "long:\n\t@for i in 1 2 3 4 5; do echo long $$i; done\nbroken:\n\t@echo cause >&2; exit 3\nnext:\n\t@echo next ran\n"
	if err := os.WriteFile(filepath.Join(folder, "Makefile"), []byte(targets), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(lanes ...string) (string, error) {
		c := exec.Command(script, lanes...)
		c.Dir = folder
		c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") })
		output, err := c.CombinedOutput()
		return string(output), err
	}
	output, err := run("long", "broken next")
	if err == nil || !strings.HasSuffix(output, "=== failed: broken\n") {
		t.Errorf("a part fails, but the whole ends with %v:\n%s", err, output)
	}
	for _, want := range []string{
		"=== make long: output\nlong 1\nlong 2\nlong 3\nlong 4\nlong 5\n=== long +\\d+ s\n",
		"=== make broken: output\ncause\n(?s:.*)=== broken +\\d+ s  FAILED\n",
		"=== make next: output\nnext ran\n=== next +\\d+ s\n",
		"=== all parts ended after \\d+ s, in this order:\n(  .* s(  FAILED)?\n){3}",
	} {
		if !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("found no %q in:\n%s", want, output)
		}
	}
	if output, err := run("long", "next"); err != nil || strings.Contains(output, "FAILED") {
		t.Errorf("no part fails, but the whole ends with %v:\n%s", err, output)
	}
}
