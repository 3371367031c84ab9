package lifecycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
)

func insufficientCapacity(claim *v1.NodeClaim, err error) events.Event {
	return events.Event{
		Object:  claim,
		Type:    corev1.EventTypeWarning,
		Reason:  "InsufficientCapacityError",
		Message: fmt.Sprintf("node claim %s is given up: %s", claim.Name, cut(err.Error())),
	}
}

func unregisteredTaintMissing(claim *v1.NodeClaim, node string) events.Event {
	return events.Event{
		Object:  claim,
		Type:    corev1.EventTypeWarning,
		Reason:  "UnregisteredTaintMissing",
		Message: fmt.Sprintf("node %s joined without the taint %s, so pods may have been bound before it was ready", node, v1.UnregisteredTaintKey),
	}
}

func gracePeriodExpiring(claim *v1.NodeClaim, deadline string) events.Event {
	return events.Event{
		Object:  claim,
		Type:    corev1.EventTypeWarning,
		Reason:  "TerminationGracePeriodExpiring",
		Message: fmt.Sprintf("pods that are still on the node by %s will be removed by force", deadline),
		Dedupe:  []string{claim.Name},
	}
}

func failedTermination(claim *v1.NodeClaim, err error) events.Event {
	return events.Event{
		Object: claim, Type: corev1.EventTypeWarning, Reason: "FailedTermination",
		Message: "The machine cannot be ended: " + cut(err.Error()),
		Dedupe:  []string{string(claim.UID), "machine"},
	}
}
