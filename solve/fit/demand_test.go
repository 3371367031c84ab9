// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/model/modeltest"
)

// keyed says of every field of a Shape whether the demands of two pods may
// differ because of it, so that it must change constraintKey. A field within
// another changes the key if all fields that lead to it do.
func keyed() map[string]bool {
	return map[string]bool{
		"Shape.Key":         false, // what is derived from the other fields
		"Shape.Requests":    false, // whether a pod fits is asked of its Demand each time
		"Shape.Selector":    true,
		"Shape.Terms":       true,
		"Shape.Preferences": false, // relaxed before a Demand is made
		"Shape.Tolerations": true,
		"Shape.Priority":    false, // orders pods
		"Shape.Spread":      false, // of package topology, as the next
		"Shape.PodTerms":    false,
		"Shape.HostPorts":   false, // depend on other pods of a node, as the next
		"Shape.Volumes":     false,
		"Shape.VolumeTerms": true,
		"Shape.Claims":      false, // devices are resources here
		"Shape.DeviceTerms": true,
		"Shape.GroupTerms":  true,
		"Shape.Refused":     false, // such pods have no Demand

		"Requirement.Key":        true,
		"Requirement.Complement": true,
		"Requirement.Values":     true,
		"Requirement.Gte":        true,
		"Requirement.Lte":        true,
		"Requirement.MinValues":  true,
		"Requirement.Present":    true,
		"Bound.Set":              true,
		"Bound.N":                true,
		"Toleration.Key":         true,
		"Toleration.Exists":      true,
		"Toleration.Compare":     true,
		"Toleration.Value":       true,
		"Toleration.Effect":      true,
	}
}

// TestConstraintKeyFields: shapes share compiled constraints only if they are
// equal in every field that the constraints depend on.
func TestConstraintKeyFields(t *testing.T) {
	s := &model.Shape{}
	modeltest.Fill(s)
	key, fields, unseen := constraintKey(s.Alternatives(), s.Tolerations), keyed(), keyed()
	for _, leaf := range modeltest.Leaves(s) {
		want := true
		for _, step := range leaf.Path {
			matters, known := fields[step]
			if !known {
				t.Fatalf("the field %s is new: say in keyed whether it changes constraintKey", step)
			}
			delete(unseen, step)
			if want = matters; !want {
				break
			}
		}
		leaf.Change()
		if changed := constraintKey(s.Alternatives(), s.Tolerations) != key; changed != want {
			t.Errorf("another %s changes the key: %t, want %t", strings.Join(leaf.Path, " "), changed, want)
		}
		leaf.Undo()
	}
	for step := range unseen {
		t.Errorf("keyed has %s, which no Shape has", step)
	}
}
