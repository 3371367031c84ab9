// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
)

// TestReasons holds documents against the program: each block that begins with
// "$ karpenter" shows what that command prints. With -rewrite it writes what the
// command prints into the document.
func TestReasons(t *testing.T) {
	t.Chdir("../..")
	for file, least := range map[string]int{"docs/reasons.md": 20, "docs/nodes.md": 15, "docs/plan.md": 5, "docs/migration.md": 4, "docs/concepts.md": 2, "docs/savings.md": 1, "docs/groups.md": 3} {
		t.Run(file, func(t *testing.T) { shows(t, file, least) })
	}
}

// shows holds one document, which has at least so many blocks, against the
// program.
func shows(t *testing.T, file string, least int) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	shown := 0
	rest := string(text)
	for {
		before, block, found := strings.Cut(rest, "```\n$ karpenter ")
		out.WriteString(before)
		if !found {
			break
		}
		shown++
		command, after, _ := strings.Cut(block, "\n")
		_, rest, _ = strings.Cut("\n"+after, "\n```\n")
		out.WriteString("```\n$ karpenter " + command + "\n" + printed(t, command) + "```\n")
	}
	if shown < least {
		t.Errorf("%s shows %d commands", file, shown)
	}
	if out.String() == string(text) {
		return
	}
	if !*rewrite {
		t.Fatalf("%s does not show what the program prints; go test ./cmd/karpenter -run TestReasons -rewrite, and read it", file)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

var rewrite = flag.Bool("rewrite", false, "write the documents anew")

func printed(t *testing.T, command string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	env := func(string) (string, bool) { return "", false }
	if code := run(context.Background(), surroundings{strings.Fields(command), env, strings.NewReader(""), &stdout, &stderr, "", nil}); code != 0 && code != exitByHand {
		t.Errorf("karpenter %s: exit code %d: %s", command, code, stderr.String())
	}
	return stdout.String()
}
