// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/control/controltest"
	"karpenter/kube/join"
)

// TestJoin covers the joins of spec 30 §1, both ways. Objects without a
// provider ID never belong together.
func TestJoin(t *testing.T) {
	c := controltest.New(t)
	if _, err := c.Do(`
		claim a {status: {providerID: "fake:///uid-of-a"}}
		claim empty
		claim lonely {status: {providerID: "fake:///uid-of-lonely"}}
		claim twin1 {status: {providerID: "fake:///uid-of-twin"}}
		claim twin2 {status: {providerID: "fake:///uid-of-twin"}}
		node na a
		node nempty
		node ntwin1 twin
		node ntwin2 twin
		claim busy {status: {providerID: "fake:///uid-of-busy"}}
		node nbusy busy
		node nforged busy
	`); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		claim, node string
		want        error
	}{
		{"a", "na", nil},
		{"empty", "nempty", join.ErrNotFound},
		{"lonely", "", join.ErrNotFound},
		{"twin1", "ntwin1", join.ErrDuplicate},
		{"busy", "nbusy", join.ErrDuplicate},
		{"busy", "nforged", join.ErrDuplicate},
	}
	ctx := context.Background()
	for _, tt := range tests {
		claim := &v1.NodeClaim{}
		if err := c.Client.Get(ctx, client.ObjectKey{Name: tt.claim}, claim); err != nil {
			t.Fatal(err)
		}
		node, err := join.NodeOf(ctx, c.Client, claim)
		if !errors.Is(err, tt.want) || (err == nil && node.Name != tt.node) {
			t.Errorf("node of claim %s: %v, want %v", tt.claim, err, tt.want)
		}
		if tt.node == "" {
			continue
		}
		stored := &corev1.Node{}
		if err := c.Client.Get(ctx, client.ObjectKey{Name: tt.node}, stored); err != nil {
			t.Fatal(err)
		}
		back, err := join.ClaimOf(ctx, c.Client, stored)
		if !errors.Is(err, tt.want) || (err == nil && back.Name != tt.claim) {
			t.Errorf("claim of node %s: %v, want %v", tt.node, err, tt.want)
		}
	}
}
