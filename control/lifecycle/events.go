// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
)

func insufficientCapacity(claim *v1.NodeClaim, err error) events.Event {
	return events.Event{
		Object:  claim,
		Type:    corev1.EventTypeWarning,
		Reason:  "InsufficientCapacityError",
		Message: limited(fmt.Sprintf("NodeClaim %s is abandoned: %s", claim.Name, err)),
	}
}

// The rate limit of events on pods whose NodeClaim was not launched.
const (
	podsPerSecond = 5
	podsAtOnce    = 10
)

// notLaunched returns the event for a pod whose planned NodeClaim was not
// launched.
func notLaunched(pod *corev1.Pod, claim *v1.NodeClaim, err error) events.Event {
	return events.Event{
		Object: pod, Type: corev1.EventTypeWarning, Reason: "InsufficientCapacityError",
		Message: limited(fmt.Sprintf("NodeClaim %s nominated for this pod failed to launch: %s", claim.Name, err)),
		Dedupe:  []string{string(pod.UID)}, Timeout: 2 * time.Minute,
		Limit: events.Limit{PerSecond: podsPerSecond, Burst: podsAtOnce},
	}
}

// limited cuts the message of an event to what the API server takes.
func limited(message string) string {
	const limit, dots = 1024, "..."
	if len(message) <= limit {
		return message
	}
	end := limit - len(dots)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + dots
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
		Message: "The instance cannot be terminated: " + cut(err.Error()),
		Dedupe:  []string{string(claim.UID), "machine"},
	}
}
