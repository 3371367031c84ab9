// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// TestChartValuesFirst checks that documents name settings as users of Helm set them: by
// the value of the chart, not by the flag.
func TestChartValuesFirst(t *testing.T) {
	values := map[string]string{} // by flag
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| `(--[a-z-]+)`").FindAllStringSubmatch(read(t, "docs/settings.md"), -1) {
		values[m[2]] = m[1]
	}
	if len(values) < 40 {
		t.Fatalf("only %d flags with a value of the chart in docs/settings.md", len(values))
	}
	named := regexp.MustCompile("`(--[a-z-]+)[` =]")
	for path, p := range pages(t) {
		if !strings.HasPrefix(path, "docs/") || strings.HasPrefix(path, "docs/contract/") || path == "docs/settings.md" || path == "docs/benchmarks.md" {
			continue // contracts are about flags, and benchmarks run the program without Helm
		}
		for i, line := range strings.Split(p.Text, "\n") {
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				if value := values[m[1]]; value != "" {
					t.Errorf("%s:%d: %s: name the value of the chart, `%s`", path, i+1, m[1], value)
				}
			}
		}
	}
}
