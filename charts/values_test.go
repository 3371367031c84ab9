// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestValuesTable writes the table of values in karpenter/README.md from
// values.yaml: names, defaults and the comments that begin with "--".
func TestValuesTable(t *testing.T) {
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(read(t, "karpenter/values.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	rows := table(t, "", file.Content[0])
	if len(rows) < 70 {
		t.Fatalf("only %d values", len(rows))
	}
	const path, begin, end = "karpenter/README.md", "<!-- values -->\n", "<!-- end -->\n"
	text := read(t, path)
	head, rest, found := strings.Cut(text, begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no lines %s and %s", path, begin, end)
	}
	same(t, path, head+begin+"| value | default | meaning |\n|---|---|---|\n"+strings.Join(rows, "")+end+tail)
}

// table returns a row for each value below a mapping.
func table(t *testing.T, prefix string, mapping *yaml.Node) []string {
	t.Helper()
	var rows []string
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := prefix + key.Value
		meaning := explained(key.HeadComment)
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 && meaning == "" {
			rows = append(rows, table(t, name+".", value)...)
			continue
		}
		var plain any
		if err := value.Decode(&plain); err != nil {
			t.Fatal(err)
		}
		preset, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", name, preset, meaning))
	}
	return rows
}

// explained is what a comment says of the value below it.
func explained(comment string) string {
	_, text, found := strings.Cut(comment, "# -- ")
	if !found {
		return ""
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\n# ", " "), "|", `\|`)
}
