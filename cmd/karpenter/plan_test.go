// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

// TestPlanExitCodes: a pipeline can tell what would change from what is wrong.
func TestPlanExitCodes(t *testing.T) {
	const idle = "type small cpu=2 mem=8Gi zones=a spot=0.03\npool general\n"
	const waits = idle + "pods web-1 cpu=1\n"
	for _, c := range []struct {
		name, situation, args string
		code                  int
	}{
		{"nothing to do", idle, "--exit-code", 0},
		{"something to do", waits, "", 0},
		{"something to do, and asked", waits, "--exit-code", 3},
		{"a gate", waits, "--max-cost 0.01", 1},
		{"a gate comes before changes", waits, "--exit-code --max-cost 0.01", 1},
		{"a gate that lets it through", waits, "--exit-code --max-cost 0.03", 3},
		{"no situation", "pol x\n", "--exit-code", 1},
		{"no such flag", idle, "--exit", 2},
	} {
		args := append([]string{"plan", "--snapshot", "-"}, strings.Fields(c.args)...)
		env := func(string) (string, bool) { return "", false }
		if code := run(context.Background(), surroundings{args, env, strings.NewReader(c.situation), io.Discard, io.Discard, "", nil}); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.name, code, c.code)
		}
	}
}
