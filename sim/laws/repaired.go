package laws

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/sim"
	"karpenter/sim/store"
)

// repairer is the controller that deletes the claims of unhealthy Nodes.
const repairer = "node.health"

// newRepaired is the law that keeps repairs from leaving nodes that drain
// forever.
func newRepaired(terms) *Law {
	return &Law{
		name:  "repaired",
		means: "A claim that node repair deletes has a deadline in the past from then on, so that its drain ends whatever runs there and whether or not the node recovers; at the end no other claim has a deadline that a repair has set.",
		check: func(s *sim.Seen) error {
			for _, c := range s.Changes {
				claim := as[*v1.NodeClaim](c.Object())
				if claim == nil || c.By != Us || !began(c) || !repairs(s, claim.Name) {
					continue
				}
				if deadline, ok := deadlineOf(claim); !ok || deadline.After(s.Now) {
					return fmt.Errorf("claim %s of an unhealthy node was deleted without a deadline in the past", claim.Name)
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

// repairs reports whether a call of this step deletes the claim for repair.
func repairs(s *sim.Seen, claim string) bool {
	return slices.ContainsFunc(s.Calls, func(c sim.Made) bool {
		return c.By == repairer && c.Verb == "delete" && c.Kind == "NodeClaim" && c.Name == claim
	})
}

// justRecovered reports whether the Node has become ready so lately that the
// process may not know.
func justRecovered(n *corev1.Node, now time.Time, lag time.Duration) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && now.Sub(c.LastTransitionTime.Time) <= lag
	})
}
