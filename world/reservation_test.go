// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"
	"time"

	"karpenter/model"
	"karpenter/world"
)

// spec 55/12: a claim takes its place in a reservation from the moment it is
// made. Once it is launched, the provider counts it.
func TestClaimsHoldTheirReservation(t *testing.T) {
	w := world.New(model.NewAxis(), nil)
	in := func(key string, values ...string) model.Requirement {
		return model.NewRequirement(key, model.In, values...)
	}
	offering := func(id string) model.Offering {
		return model.Offering{CapacityType: model.Reserved, ReservationID: id, Requirements: model.NewRequirements(
			in(model.LabelCapacityType, model.Reserved), in("reservation", id))}
	}
	w.SetTypes("p", []*model.InstanceType{{Name: "t", Offerings: []model.Offering{offering("one"), offering("two")}}})
	claim := func(provider string, rs ...model.Requirement) world.Claim {
		return world.Claim{Name: "c", ProviderID: provider, Labels: map[string]string{model.LabelNodePool: "p"}, Requirements: model.NewRequirements(rs...)}
	}
	reserved, two := in(model.LabelCapacityType, model.Reserved), in("reservation", "two")
	for _, c := range []struct {
		name  string
		claim world.Claim
		want  string
	}{
		{"on its way", claim("", reserved, two), "two"},
		{"launched", claim("machine", reserved, two), ""},
		{"of another capacity type", claim("", in(model.LabelCapacityType, model.OnDemand), two), ""},
		{"names none", claim("", reserved), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.SetClaim(c.claim)
			if got := w.Snapshot(time.Unix(0, 0)).Nodes[0].Reservation; got != c.want {
				t.Errorf("holds %q, want %q", got, c.want)
			}
		})
	}
}
