// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"strings"
	"testing"
)

// TestMigrateExitCodes are what CI relies on.
func TestMigrateExitCodes(t *testing.T) {
	const template = "apiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\nmetadata: {name: a}\nspec: {}\n"
	for _, test := range []struct {
		args, stdin string
		want        int
	}{
		{"migrate --check -", "kind: Pod\n", 0},
		{"migrate --check -", template, 4},
		{"migrate -", template, 0},
		{"migrate --check -", "karpenter: {{\n", 1},
		{"migrate --check", "", 2},
	} {
		s := surroundings{strings.Fields(test.args), nil, strings.NewReader(test.stdin), io.Discard, io.Discard, "", nil}
		if got := run(context.Background(), s); got != test.want {
			t.Errorf("karpenter %s: exit code %d, want %d, for\n%s", test.args, got, test.want, test.stdin)
		}
	}
}
