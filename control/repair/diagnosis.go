// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"karpenter/cloud"
)

// diagnosis is a condition that a repair policy tolerates for a limited time.
type diagnosis struct {
	condition  corev1.NodeCondition
	toleration time.Duration
	due        time.Time // when the toleration ends
}

// diagnose returns that bad condition of the Node whose toleration ends first,
// and whether it has any.
func diagnose(node *corev1.Node, policies []cloud.RepairPolicy) (first diagnosis, sick bool) {
	for _, p := range policies {
		for _, c := range node.Status.Conditions {
			if c.Type != p.ConditionType || c.Status != p.ConditionStatus || !replaces(p, c.Reason) {
				continue
			}
			// No Node has been unhealthy for longer than it exists, whatever
			// its condition says or leaves out.
			since := c.LastTransitionTime.Time
			if created := node.CreationTimestamp.Time; since.Before(created) {
				since = created
			}
			due := since.Add(p.Toleration)
			if !sick || due.Before(first.due) {
				first, sick = diagnosis{condition: c, toleration: p.Toleration, due: due}, true
			}
		}
	}
	return first, sick
}

// replaces reports whether the policy wants an instance replaced for the reason.
func replaces(p cloud.RepairPolicy, reason string) bool {
	if p.Action == cloud.RebootNode {
		return false
	}
	matches, err := regexp.MatchString(p.ReasonRegex, reason)
	return err == nil && matches
}

// news passes the events of the provider's Nodes that may change a diagnosis:
// heartbeats do not.
func (r *Reconciler) news() predicate.Predicate {
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return cloud.ManagesNode(r.Provider, o.(*corev1.Node))
	})
	return predicate.And(ours, predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			old := e.ObjectOld.(*corev1.Node)
			return !cloud.ManagesNode(r.Provider, old) || changed(old, e.ObjectNew.(*corev1.Node))
		},
	})
}

// changed reports whether a condition came, went or made a transition.
func changed(old, now *corev1.Node) bool {
	if len(old.Status.Conditions) != len(now.Status.Conditions) {
		return true
	}
	was := map[corev1.NodeConditionType]corev1.NodeCondition{}
	for _, c := range old.Status.Conditions {
		was[c.Type] = c
	}
	for _, c := range now.Status.Conditions {
		before, ok := was[c.Type]
		if !ok || before.Status != c.Status || before.Reason != c.Reason || !before.LastTransitionTime.Equal(&c.LastTransitionTime) {
			return true
		}
	}
	return false
}
