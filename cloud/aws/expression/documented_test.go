// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented compiles the expressions that people are shown.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "fields", "ec2nodeclass.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "name: by-type\n")
	example, _, _ := strings.Cut(rest, "```")
	found := regexp.MustCompile(`: "(.*)"\n`).FindAllStringSubmatch(example, -1)
	if len(found) != 3 {
		t.Errorf("%d expressions in docs/fields/ec2nodeclass.md", len(found))
	}
	l := language(t)
	for _, e := range found {
		if _, err := l.Compile(e[1]); err != nil {
			t.Error(err)
		}
	}
}
