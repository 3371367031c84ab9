// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
	"karpenter/model"
)

// quiet is how long the event Unconsolidatable is not repeated for the same cause.
const quiet = 15 * time.Minute

// The least score a consolidation must have in pools whose policy is Balanced,
// and what it is the reciprocal of.
const (
	balance   = 2
	threshold = 1.0 / balance
)

// stays limits events about nodes that stay. A new leader has one for each node and
// NodeClaim, and must renew its lease on the same API server. Later passes
// publish the events that are left out.
var stays = events.Limit{PerSecond: 5, Burst: 100}

// aboutNodes makes events about nodes that stay, in a cluster with so many nodes.
type aboutNodes int

// apart returns how long the same event is not repeated, which is usually the given time.
// In a large cluster it is longer, so that each node has its turn before the first
// node has its second.
func (nodes aboutNodes) apart(usually time.Duration) time.Duration {
	const objects = 2 // the Node and the NodeClaim
	return max(usually, time.Duration(float64(nodes)*objects/stays.PerSecond*float64(time.Second)))
}

// stayed returns the event about a node that stays, if there is one. Budgets
// have events on the NodePool. Causes that last only for a moment have none:
// pods are expected on the node, or the node is not quiet yet.
func (nodes aboutNodes) stayed(o client.Object, stay *model.Stay) (events.Event, bool) {
	switch {
	case stay.Buffer != "", stay.Cause == model.ByNode:
		return nodes.blocked(o, stay.Why), true
	case stay.Cause == model.ByPolicy || stay.Cause == model.ByPlace || stay.Cause == model.ByPrice || stay.Cause == model.Unexamined:
		if stay.Reason == model.Drifted || stay.Reason == model.Unhealthy {
			return nodes.blocked(o, stay.Why), true
		}
		return nodes.unconsolidatable(o, stay.Cause, stay.Why), true
	}
	return events.Event{}, false
}

func (nodes aboutNodes) blocked(o client.Object, why string) events.Event {
	return events.Event{
		Object: o, Type: corev1.EventTypeNormal, Reason: "DisruptionBlocked", Message: "Not disrupted: " + why,
		Timeout: nodes.apart(events.DefaultTimeout), Limit: stays,
	}
}

// unconsolidatable returns an event that is repeated if the cause changes. The
// message is not compared, because it differs with every change of prices or
// pods, except for causes that come from the policy.
func (nodes aboutNodes) unconsolidatable(o client.Object, cause model.Cause, why string) events.Event {
	same := string(cause)
	if cause == model.ByPolicy {
		same += why
	}
	return events.Event{
		Object: o, Type: corev1.EventTypeNormal, Reason: "Unconsolidatable", Message: why,
		Dedupe: []string{string(o.GetUID()), same}, Timeout: nodes.apart(quiet), Limit: stays,
	}
}

func budgetBlocks(pool *v1.NodePool, reason v1.DisruptionReason) events.Event {
	return events.Event{
		Object: pool, Type: corev1.EventTypeNormal, Reason: "DisruptionBlocked",
		Message: fmt.Sprintf("No allowed disruptions for disruption reason %s due to blocking budget", reason),
		Dedupe:  []string{string(pool.UID), string(reason)}, Timeout: time.Minute,
	}
}

func candidate(o client.Object, what string) events.Event {
	return events.Event{
		Object: o, Type: corev1.EventTypeNormal, Reason: "ConsolidationCandidate",
		Message: "May be consolidated: " + what, Dedupe: []string{string(o.GetUID()), what},
	}
}

func rejected(o client.Object, what, category string) events.Event {
	return events.Event{
		Object: o, Type: corev1.EventTypeNormal, Reason: "ConsolidationRejected",
		Message: fmt.Sprintf("Not consolidated after all (%s): %s", category, what),
		Dedupe:  []string{string(o.GetUID()), what, category},
	}
}

func approved(o client.Object, s *model.Score) events.Event {
	return events.Event{
		Object: o, Type: corev1.EventTypeNormal, Reason: "ConsolidationApproved",
		Message: fmt.Sprintf("Consolidation scores %.2f, which is at least %.2f (k=%d): it saves %.1f%% of the cost of NodePool %s and disrupts %.1f%% of it",
			s.Value, threshold, balance, 100*s.Savings, s.Pool, 100*s.Disruption),
	}
}

func launching(claim *v1.NodeClaim, reason model.Reason) events.Event {
	return events.Event{
		Object: claim, Type: corev1.EventTypeNormal, Reason: "DisruptionLaunching",
		Message: "Launching NodeClaim: " + string(reason), Dedupe: []string{string(claim.UID), string(reason)},
	}
}

func waiting(claim *v1.NodeClaim) events.Event {
	return events.Event{
		Object: claim, Type: corev1.EventTypeNormal, Reason: "DisruptionWaitingReadiness",
		Message: "Waiting for the node to be initialized before those it replaces are disrupted",
	}
}

func terminating(o client.Object, reason model.Reason) events.Event {
	return events.Event{
		Object: o, Type: corev1.EventTypeNormal, Reason: "DisruptionTerminating",
		Message: "Disrupting " + kind(o) + ": " + string(reason),
		Dedupe:  []string{string(o.GetUID()), string(reason)},
	}
}

func kind(o client.Object) string {
	if _, ok := o.(*corev1.Node); ok {
		return "Node"
	}
	return "NodeClaim"
}
