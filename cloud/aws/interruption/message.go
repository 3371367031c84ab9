// SPDX-License-Identifier: Apache-2.0

package interruption

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is the kind of event that a message or a failing check reports; it is
// the reason in metrics.
type Kind string

// The kinds of messages.
const (
	SpotInterrupted         Kind = "spot_interrupted"
	RebalanceRecommendation Kind = "rebalance_recommendation"
	ScheduledChange         Kind = "scheduled_change"
	InstanceStopped         Kind = "instance_stopped"
	InstanceTerminated      Kind = "instance_terminated"
	ReservationInterrupted  Kind = "capacity_reservation_interrupted"
	NoOp                    Kind = "no_op"
)

// Message is what matters of one event.
type Message struct {
	Kind      Kind
	Instances []string  // IDs
	At        time.Time // of the event; zero = unknown
}

// envelope is an event as EventBridge delivers it.
type envelope struct {
	Version    string          `json:"version"`
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Time       string          `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// detail is of all events that are known.
type detail struct {
	InstanceID string `json:"instance-id"`
	State      string `json:"state"`
	Service    string `json:"service"`
	Category   string `json:"eventTypeCategory"`
	Affected   []struct {
		ID string `json:"entityValue"`
	} `json:"affectedEntities"`
}

// source names a kind of event, all of version 0.
type source struct{ name, detailType string }

// parsers returns functions that find the kind and the instances of events.
// They return NoOp for events that don't matter.
func parsers() map[source]func(*detail) (Kind, []string) {
	one := func(kind Kind) func(*detail) (Kind, []string) {
		return func(d *detail) (Kind, []string) { return kind, []string{d.InstanceID} }
	}
	return map[source]func(*detail) (Kind, []string){
		{"aws.ec2", "EC2 Spot Instance Interruption Warning"}:                 one(SpotInterrupted),
		{"aws.ec2", "EC2 Instance Rebalance Recommendation"}:                  one(RebalanceRecommendation),
		{"aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"}: one(ReservationInterrupted),
		{"aws.ec2", "EC2 Instance State-change Notification"}:                 stateChange,
		{"aws.health", "AWS Health Event"}:                                    healthEvent,
	}
}

func stateChange(d *detail) (Kind, []string) {
	switch strings.ToLower(d.State) {
	case "stopping", "stopped":
		return InstanceStopped, []string{d.InstanceID}
	case "shutting-down", "terminated":
		return InstanceTerminated, []string{d.InstanceID}
	}
	return NoOp, nil
}

func healthEvent(d *detail) (Kind, []string) {
	if d.Service != "EC2" || d.Category != "scheduledChange" {
		return NoOp, nil
	}
	var ids []string
	for _, entity := range d.Affected {
		ids = append(ids, entity.ID)
	}
	return ScheduledChange, ids
}

// Parse reads the body of a message. After an error, another attempt is
// useless.
func Parse(body string) (Message, error) {
	none := Message{Kind: NoOp}
	if strings.TrimSpace(body) == "" {
		return none, nil
	}
	var e envelope
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return none, fmt.Errorf("the message is no event of EventBridge: %w", err)
	}
	none.At, _ = time.Parse(time.RFC3339, e.Time)
	parse, known := parsers()[source{e.Source, e.DetailType}]
	if !known || e.Version != "0" {
		return none, nil
	}
	var d detail
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return none, fmt.Errorf("detail of %q from %s: %w", e.DetailType, e.Source, err)
	}
	kind, ids := parse(&d)
	if kind == NoOp {
		return none, nil
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	return Message{Kind: kind, Instances: ids, At: none.At}, nil
}
