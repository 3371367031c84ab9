// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// Demand returns what the claim demands of an instance's labels: its
// requirements, and its own labels.
func Demand(claim *v1.NodeClaim) model.Requirements {
	out := model.LabelRequirements(claim.Labels)
	for _, r := range claim.Spec.Requirements {
		next := model.NewRequirement(r.Key, model.Operator(r.Operator), r.Values...)
		if r.MinValues != nil {
			next.MinValues = *r.MinValues
		}
		out = out.And(next)
	}
	return out
}

// Orphans returns the instances without a claim: no claim has the instance's
// provider ID, and the claim that it was launched for does not exist, or is not
// about to record it. Instances that were launched after the deadline or at an
// unknown time, and instances that are being deleted, are left out.
func Orphans(machines []*Machine, claims []v1.NodeClaim, deadline time.Time) []*Machine {
	recorded := make(map[string]struct{}, len(claims))
	alive := make(map[types.UID]struct{}, len(claims))
	for i := range claims {
		recorded[claims[i].Status.ProviderID] = struct{}{}
		alive[claims[i].UID] = struct{}{}
	}
	var out []*Machine
	for _, m := range machines {
		_, isRecorded := recorded[m.ProviderID]
		_, isAlive := alive[m.ClaimUID]
		if !isRecorded && !isAlive && !m.Deleting && !m.Created.IsZero() && m.Created.Before(deadline) {
			out = append(out, m)
		}
	}
	return out
}

// Remnant returns a claim that stands for an orphan in a call of
// Provider.Delete. It does not exist in the API.
func (m *Machine) Remnant() *v1.NodeClaim {
	return &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: m.Claim, UID: m.ClaimUID, Labels: m.Labels},
		Status:     v1.NodeClaimStatus{ProviderID: m.ProviderID},
	}
}
