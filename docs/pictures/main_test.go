// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPicturesAreCurrent draws the charts again and compares them with the files
// that the documents show.
func TestPicturesAreCurrent(t *testing.T) {
	pictures, err := Draw("..")
	if err != nil {
		t.Fatal(err)
	}
	if len(pictures) < 3 {
		t.Fatalf("only %d pictures", len(pictures))
	}
	for name, want := range pictures {
		got, err := os.ReadFile(filepath.Join("..", "screens", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/screens/%s is not what its data says (%v); run: make pictures", name, err)
		}
	}
}

// TestDayLacksNumbers reads a table that has no number for a policy.
func TestDayLacksNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	text := "# Title\n\n## A steady day\n\n| seed | now | `Balanced` of upstream |\n|---|---|---|\n| hours counted | 2 | 3 |\n" +
		"| pods evicted, for each of those | 1,000, 0.5 | 3 |\n| instances launched | 4 | 6 |\n| dollars per hour | 5.5 | %s |\n"
	for _, c := range []struct {
		dollars string
		want    bool
	}{{"6", true}, {"not measured", false}} {
		if err := os.WriteFile(path, bytes.ReplaceAll([]byte(text), []byte("%s"), []byte(c.dollars)), 0o644); err != nil {
			t.Fatal(err)
		}
		days, err := readDay(path)
		if (err == nil) != c.want {
			t.Errorf("with %q: %v", c.dollars, err)
		}
		if c.want && (len(days) != 2 || days[0] != Day{"now", 500, 2, 5.5} || days[1] != Day{"Balanced of upstream", 1, 2, 6}) {
			t.Errorf("got %+v", days)
		}
	}
}
