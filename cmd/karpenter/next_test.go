// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestNextCommandReadsTheSame: a command that is named reads the cluster, recording or
// snapshot that was read, as the same user.
func TestNextCommandReadsTheSame(t *testing.T) {
	for _, c := range []struct{ args, command, want string }{
		{"status", "karpenter plan", "karpenter plan"},
		{"--context prod status --strict -w", "karpenter plan", "karpenter plan --context prod"},
		{"status --context=prod --as jane --as-group dev --as-group ops", "karpenter plan", "karpenter plan --context prod --as jane --as-group dev --as-group ops"},
		{"explain pods -A -o wide --recording a.recording --at 90s", "karpenter explain pod web -n shop", "karpenter explain pod web -n shop --recording a.recording --at 90s"},
		{"explain pods --file s.txt -A", "karpenter plan", "karpenter plan --snapshot s.txt"},
		{"explain pods --file s.txt -A", "karpenter status", "karpenter status"},
		{"explain pods --file -", "karpenter plan", "karpenter plan"},
		{"snapshot --recording a.recording", "karpenter plan --snapshot FILE", "karpenter plan --snapshot FILE"},
		{"record --kubeconfig k", "karpenter record --freeze > baseline.yaml", "karpenter record --freeze --kubeconfig k > baseline.yaml"},
		{"savings --kubeconfig k", "karpenter migrate --check MANIFESTS", "karpenter migrate --check MANIFESTS"},
		{"explain nodes -n shop --kubeconfig|my files/k", "karpenter explain node n", `karpenter explain node n --kubeconfig "my files/k"`},
	} {
		var args []string
		for word := range strings.FieldsSeq(c.args) {
			args = append(args, word)
		}
		if first, last, spaced := strings.Cut(c.args, "|"); spaced {
			args = append(strings.Fields(first), last)
		}
		if got := reading(c.command, args); got != c.want {
			t.Errorf("after %s: %s, want %s", c.args, got, c.want)
		}
	}
}
