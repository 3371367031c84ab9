// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"strings"
	"testing"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// TestPauses shows how long a node is left alone after its replacement failed.
func TestPauses(t *testing.T) {
	failed := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name        string
		after       time.Duration
		replacement string // claim, node, ready or ""
		want        string
	}{
		{"at once", 0, "", "its last disruption failed at 2030-01-01T00:00:00Z"},
		{"soon", 59 * time.Second, "", "its last disruption failed at 2030-01-01T00:00:00Z"},
		{"after a minute", time.Minute, "", ""},
		{"the failed claim is there", 5 * time.Minute, "claim", "waiting until replacement r1 is gone"},
		{"its node is not ready for pods", 5 * time.Minute, "node", "waiting until replacement r1 is gone"},
		{"it became a node after all", 5 * time.Minute, "ready", ""},
		{"it does not go away", 30 * time.Minute, "claim", ""},
	} {
		var p pauses
		p.begin(&execution{replacements: []replacement{{name: "r1"}, {name: "r2", ready: true}}}, []string{"c1"}, failed)
		s := &scope{
			now: failed.Add(tt.after), claims: map[string]*v1.NodeClaim{},
			snapshot: &model.Snapshot{Nodes: []model.Node{{Name: "n1", Claim: "c1"}, {Name: "n2", Claim: "c2"}, {Name: "r1", Claim: "r1", Initialized: tt.replacement == "ready"}}},
		}
		s.managed = map[string]*model.Node{"c1": &s.snapshot.Nodes[0], "c2": &s.snapshot.Nodes[1]}
		if tt.replacement != "" {
			s.claims["r1"] = &v1.NodeClaim{}
		}
		if tt.replacement == "node" || tt.replacement == "ready" {
			s.managed["r1"] = &s.snapshot.Nodes[2]
		}
		nodes := p.keep(s)
		got := nodes[0].Disruption.Blocked
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || nodes[1].Disruption.Blocked != "" {
			t.Errorf("%s: blocked %q, want %q", tt.name, got, tt.want)
		}
		if s.snapshot.Nodes[0].Disruption.Blocked != "" {
			t.Errorf("%s: the Snapshot was modified", tt.name)
		}
		if ended := len(p) == 0; ended != (tt.want == "") {
			t.Errorf("%s: pause ended: %t", tt.name, ended)
		}
	}
}
