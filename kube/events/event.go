// SPDX-License-Identifier: Apache-2.0

package events

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultTimeout is how long equal events are dropped if they set no Timeout.
const DefaultTimeout = 2 * time.Minute

// Event is a Kubernetes event about one object.
type Event struct {
	Object  client.Object // what it is about; needs name, namespace and UID
	Type    string        // corev1.EventTypeNormal or corev1.EventTypeWarning
	Reason  string        // CamelCase word
	Message string        // for people; not part of the identity

	// Dedupe are the values that, with Reason, make two events equal. Empty
	// means the UID of Object.
	Dedupe []string
	// Timeout is how long equal events are dropped after this one; 0 means
	// DefaultTimeout.
	Timeout time.Duration
	// Limit caps all events of this Reason together. Zero means no limit.
	Limit Limit
}

// Limit is a rate of events.
type Limit struct {
	PerSecond float64
	Burst     int
}

// Recorder publishes events. It is safe for concurrent use and does not wait
// for the API server.
type Recorder interface {
	Publish(events ...Event)
}
