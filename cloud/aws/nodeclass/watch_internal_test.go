// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/control/controltest"
)

// TestClaimsWakeClasses covers spec 65/136: that a claim is gone, and nothing
// else about it, has the class it refers to looked at.
func TestClaimsWakeClasses(t *testing.T) {
	claim := controltest.New(t).NewClaim("a")
	p := deletions()
	for _, tt := range []struct {
		name      string
		got, want bool
	}{
		{"created", p.Create(event.CreateEvent{Object: claim}), false},
		{"changed", p.Update(event.UpdateEvent{ObjectOld: claim, ObjectNew: claim}), false},
		{"of unknown kind", p.Generic(event.GenericEvent{Object: claim}), false},
		{"gone", p.Delete(event.DeleteEvent{Object: claim}), true},
	} {
		if tt.got != tt.want {
			t.Errorf("claim %s: class is looked at: %t", tt.name, tt.got)
		}
	}
	for _, tt := range []struct {
		ref  *v1.NodeClassReference
		want string
	}{
		{&v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}, "default"},
		{&v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}, ""},
		{nil, ""},
	} {
		claim.Spec.NodeClassRef = tt.ref
		got := ""
		for _, request := range classOf(t.Context(), claim) {
			got += request.Name
		}
		if got != tt.want {
			t.Errorf("claim of %v wakes class %q, want %q", tt.ref, got, tt.want)
		}
	}
}
