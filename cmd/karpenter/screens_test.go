// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karpenter/internal/docs"
)

const (
	root = "../.."
	shop = "docs/recorded/shop.recording"
)

// ranAs returns what the command prints. The working directory must be the root. With a
// screen it prints as to a terminal.
func ranAs(t *testing.T, on *screen, args ...string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	env := func(string) (string, bool) { return "", false }
	code := run(t.Context(), surroundings{args, env, strings.NewReader(""), &stdout, &stderr, "karpenter", on})
	if code != 0 && args[0] != "status" {
		t.Fatalf("karpenter %s: exit code %d: %s", strings.Join(args, " "), code, stderr.String())
	}
	if next := stderr.String(); strings.Contains(next, "Next: ") {
		stdout.WriteString(next)
	}
	return stdout.String()
}

// TestRecordedScreens draws top, status and savings at 80 and 160 columns as the
// program prints them, from a recording of a real run and from a dump, and compares
// the pictures with those in docs/screens.
func TestRecordedScreens(t *testing.T) {
	t.Chdir(root)
	for _, c := range []struct {
		name   string
		frames [][]string
		lines  map[int]int // of the terminal, by its columns
	}{
		{"top", [][]string{
			{"top", "--once", "--recording", shop, "--at", "6s"},
			{"top", "--once", "--recording", shop, "--at", "12s"},
			{"top", "--once", "--recording", shop, "--at", "22s"},
			{"top", "--once", "--recording", shop},
		}, map[int]int{80: 30, 160: 36}},
		{"status", [][]string{{"status", "--recording", shop}}, nil},
		{"savings", [][]string{{"savings", "-f", "docs/savings/nodegroups.json"}}, nil},
	} {
		for _, columns := range []int{80, 160} {
			name := fmt.Sprintf("%s-%d.svg", c.name, columns)
			t.Run(name, func(t *testing.T) {
				var frames []string
				for _, args := range c.frames {
					text := ranAs(t, &screen{columns, c.lines[columns]}, args...)
					text, _, _ = strings.Cut(text, "\nNext: ")
					frames = append(frames, text)
				}
				compare(t, filepath.Join("docs", "screens", name), docs.SVG(columns, frames...))
			})
		}
	}
}

// compare compares a file, whose path is from the root, with what it is to hold.
func compare(t *testing.T, path, want string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the program prints (%v); run: make screens", path, err)
	}
}

// TestRecordedOutputs runs each command whose output a document shows and that reads
// a recording, and compares what it prints with what is shown.
func TestRecordedOutputs(t *testing.T) {
	t.Chdir(root)
	pages, err := docs.Pages(".")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, page := range pages {
		text, err := os.ReadFile(page.Path)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(string(text), "```\n$ karpenter ")
		for i, part := range parts[1:] {
			block, rest, _ := strings.Cut(part, "\n```")
			command, _, _ := strings.Cut(block, "\n")
			if !strings.Contains(command, "--recording docs/") && !strings.HasPrefix(command, "replay docs/") {
				continue
			}
			shown++
			want := command + "\n" + strings.TrimRight(ranAs(t, nil, strings.Fields(command)...), "\n")
			if want == block {
				continue
			}
			if !*rewrite {
				t.Errorf("%s: karpenter %s does not print what is shown; run: make screens", page.Path, command)
			}
			parts[i+1] = want + "\n```" + rest
		}
		if *rewrite {
			if err := os.WriteFile(page.Path, []byte(strings.Join(parts, "```\n$ karpenter ")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if shown < 2 {
		t.Errorf("only %d outputs are shown", shown)
	}
}
