// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	"karpenter/internal/docs"
)

// TestShownCommandsAreUnderstood gives the program every command of its own that
// a document shows, up to the point at which it would do something.
func TestShownCommandsAreUnderstood(t *testing.T) {
	pages, err := docs.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]bool{"explain node NAME --file": true} // named, not to be run
	count := 0
	for _, page := range pages {
		for _, c := range page.Commands("karpenter") {
			text, _, _ := strings.Cut(c.Text, " > ")
			words := strings.Fields(text)[1:]
			if len(words) == 0 || c.Elided() || parts[strings.Join(words, " ")] || strings.HasPrefix(strings.Join(words, " "), "on .cluster") {
				continue
			}
			count++
			if words[0] != "version" && words[0] != "help" {
				words = append(words, "--help")
			}
			var stdout, stderr strings.Builder
			env := func(string) (string, bool) { return "", false }
			if code := run(context.Background(), surroundings{words, env, strings.NewReader(""), &stdout, &stderr, "", nil}); code != 0 {
				t.Errorf("%s:%d: %s: exit code %d: %s", c.Page, c.Line, c.Text, code, stderr.String())
			}
		}
	}
	if count < 60 {
		t.Errorf("only %d commands", count)
	}
	t.Logf("%d commands", count)
}
