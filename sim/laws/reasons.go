// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/store"
)

// newReasoned is the law that keeps partial and stale answers from costing
// healthy nodes.
func newReasoned(t terms) *Law {
	return &Law{
		name:  "reasoned",
		means: "The process deletes the NodeClaim of a running instance with a ready Node for one of these reasons only: Empty, Underutilized, Drifted, Unhealthy, expired, the Node is being deleted, or repair of a Node that has just become ready again. This also holds if the answers of the cloud are incomplete.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				claim := as[*v1.NodeClaim](c.Old)
				if claim == nil || c.By != Us || !began(c) || voluntary(claim) != "" {
					continue
				}
				if age := claim.Spec.ExpireAfter.Duration; age != nil && !s.Now.Before(claim.CreationTimestamp.Add(*age)) {
					continue
				}
				m, ok := s.Cloud.Find(claim.Status.ProviderID)
				n := nodeOf(s, claim)
				if n != nil && deletes(s, legacyRepairer, claim.Name) && justRecovered(n, s.Now, t.lag) {
					continue
				}
				if ok && m.Runs() && n != nil && isReady(n) && n.DeletionTimestamp == nil && conditions.IsTrue(claim, v1.RegisteredCondition) {
					return fmt.Errorf("claim %s was deleted without a reason: its machine %s runs and node %s is ready", claim.Name, m.ProviderID, n.Name)
				}
			}
			return nil
		},
	}
}

func newDrift() *Law {
	return &Law{
		name:  "drift",
		means: "No NodeClaim is Drifted while its type is available and its NodePool has not changed, even if the answers of the cloud are incomplete.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				claim, old := as[*v1.NodeClaim](c.New), as[*v1.NodeClaim](c.Old)
				if claim == nil || old == nil || c.By != Us || !conditions.IsTrue(claim, v1.DriftedCondition) || conditions.IsTrue(old, v1.DriftedCondition) {
					continue
				}
				if err := drifted(s, claim); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func drifted(s *sim.Seen, c *v1.NodeClaim) error {
	why := conditions.Get(c, v1.DriftedCondition).Reason
	pool := store.Find[*v1.NodePool](s.API, "", c.Labels[v1.NodePoolLabelKey])
	switch why {
	case v1.InstanceTypeNotFoundReason:
		for _, t := range s.Cloud.Types() {
			if t.Name == c.Labels[model.LabelInstanceType] {
				return fmt.Errorf("claim %s is called drifted, for its type %s is not found, but it is offered", c.Name, t.Name)
			}
		}
	case v1.NodePoolDriftedReason, v1.RequirementsDriftedReason:
		if pool != nil && pool.Generation == 1 {
			return fmt.Errorf("claim %s is called drifted (%s), but pool %s was never changed", c.Name, why, pool.Name)
		}
	default:
		if m, ok := s.Cloud.Find(c.Status.ProviderID); !ok || m.Drift == "" {
			return fmt.Errorf("claim %s is called drifted (%s), but its instance has not", c.Name, why)
		}
	}
	return nil
}
