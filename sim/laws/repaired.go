// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// The controllers that delete the claims of unhealthy Nodes: legacy does so at
// once and by force.
const (
	legacyRepairer = "node.health"
	disrupter      = "disruption"
)

// newRepaired is the law that keeps repairs from leaving nodes that drain
// forever.
func newRepaired(terms) *Law {
	return &Law{
		name:  "repaired",
		means: "A NodeClaim that node repair deletes has a deadline from then on. The deadline is in the past or within the bound of the repair policy, so the drain ends in all cases. At the end of the run, no other NodeClaim has a deadline that a repair set.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				claim := as[*v1.NodeClaim](c.Object())
				if claim == nil || c.By != Us || !began(c) {
					continue
				}
				latest := s.Now
				switch {
				case deletes(s, legacyRepairer, claim.Name):
				case deletes(s, disrupter, claim.Name) && voluntary(claim) == model.Unhealthy:
					latest = latest.Add(simcloud.RepairBound)
				default:
					continue
				}
				if deadline, ok := deadlineOf(claim); !ok || deadline.After(latest) {
					return fmt.Errorf("claim %s of an unhealthy node was deleted without a deadline that ends its repair", claim.Name)
				}
			}
			return nil
		},
		end: func(s *sim.Seen) error {
			for c := range store.All[*v1.NodeClaim](s.API) {
				if c.DeletionTimestamp == nil && c.Annotations[v1.RepairDeadlineAnnotationKey] != "" {
					return fmt.Errorf("claim %s still has the deadline of a repair that never came", c.Name)
				}
			}
			return nil
		},
	}
}

// deletes reports whether a call of the controller deletes the claim in this step.
func deletes(s *sim.Seen, controller, claim string) bool {
	return slices.ContainsFunc(s.Calls, func(c sim.Made) bool {
		return c.By == controller && c.Verb == "delete" && c.Kind == "NodeClaim" && c.Name == claim
	})
}

// justRecovered reports whether the Node has become ready so recently that the
// process may not know.
func justRecovered(n *corev1.Node, now time.Time, lag time.Duration) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && now.Sub(c.LastTransitionTime.Time) <= lag
	})
}
