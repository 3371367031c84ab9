// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"karpenter/sim/laws"
	"karpenter/sim/script"
)

// TestDocs keeps the table of laws in docs/reliability.md true.
func TestDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range laws.All(&script.Script{}, nil) {
		if row := fmt.Sprintf("| `%s` | %s |\n", l.Name(), l.Means()); !strings.Contains(string(docs), row) {
			t.Errorf("docs/reliability.md lacks the row\n%s", row)
		}
	}
}
