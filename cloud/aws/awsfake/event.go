// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// envelope is an event as EventBridge delivers it.
type envelope struct {
	Version    string         `json:"version"`
	ID         string         `json:"id"`
	DetailType string         `json:"detail-type"`
	Source     string         `json:"source"`
	Account    string         `json:"account"`
	Time       string         `json:"time"`
	Region     string         `json:"region"`
	Resources  []string       `json:"resources"`
	Detail     map[string]any `json:"detail"`
}

// tell puts an event into the cluster's queue.
func (a *AWS) tell(source, kind string, resources []string, detail map[string]any, at time.Time) {
	q := a.queues[a.config.Cluster]
	if q == nil {
		return
	}
	n := a.next()
	body, err := json.Marshal(envelope{
		Version: "0", ID: fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", uint32(n>>32), uint16(n>>16), uint16(n), uint16(n>>48), n&0xffffffffffff), DetailType: kind, Source: source,
		Account: a.config.Account, Time: at.UTC().Format(time.RFC3339), Region: a.config.Region, Resources: resources, Detail: detail,
	})
	if err != nil {
		panic(err) // texts and lists of texts are always JSON
	}
	a.send(q, string(body), at)
}

func (a *AWS) tellOf(i *instance, kind string, detail map[string]any, at time.Time) {
	detail["instance-id"] = *i.InstanceId
	a.tell("aws.ec2", kind, []string{a.arn("ec2", a.config.Region, "instance/"+*i.InstanceId)}, detail, at)
}

// announce tells of a change of an instance's state.
func (a *AWS) announce(i *instance, state string, at time.Time) {
	a.tellOf(i, "EC2 Instance State-change Notification", map[string]any{"state": state}, at)
}

// notice is how long before its end an instance is warned.
const notice = 2 * time.Minute

// Interrupt interrupts a spot instance (or one in an interruptible
// reservation): the queue gets the warning now, and the instance terminates in
// two minutes.
func (a *AWS) Interrupt(id string) error {
	return a.instanceDo(id, func(i *instance, now time.Time) {
		defer a.record(now, a.ids, "Interrupt", id)
		kind := "EC2 Spot Instance Interruption Warning"
		if i.InstanceLifecycle == types.InstanceLifecycleTypeInterruptibleCapacityReservation {
			kind = "EC2 Capacity Reservation Instance Interruption Warning"
		}
		a.tellOf(i, kind, map[string]any{"instance-action": "terminate"}, now)
		a.later(now.Add(notice), func(at time.Time) { a.end(i, at) })
	})
}

// Rebalance recommends to move away from a spot instance.
func (a *AWS) Rebalance(id string) error {
	return a.instanceDo(id, func(i *instance, now time.Time) {
		a.tellOf(i, "EC2 Instance Rebalance Recommendation", map[string]any{}, now)
	})
}

// Lose ends an instance as if its machine broke or a person ended it: without a
// warning.
func (a *AWS) Lose(id string) error {
	return a.instanceDo(id, func(i *instance, now time.Time) {
		defer a.record(now, a.ids, "Lose", id)
		a.end(i, now)
	})
}

// Schedule announces an event such as instance-retirement for instances: in
// their status and as an AWS Health event.
func (a *AWS) Schedule(code types.EventCode, begin time.Time, ids ...string) error {
	var entities []any
	var resources []string
	for _, id := range ids {
		if err := a.instanceDo(id, func(i *instance, _ time.Time) {
			i.health.events = append(i.health.events, types.InstanceStatusEvent{
				Code: code, Description: aws.String("The instance is scheduled for " + string(code)), InstanceEventId: aws.String(a.id("instance-event")), NotBefore: &begin,
			})
		}); err != nil {
			return err
		}
		entities = append(entities, map[string]any{"entityValue": id})
		resources = append(resources, id)
	}
	a.locked(func(now time.Time) {
		a.tell("aws.health", "AWS Health Event", resources, map[string]any{
			"service": "EC2", "eventTypeCategory": "scheduledChange", "eventTypeCode": "AWS_EC2_" + string(code), "startTime": begin.UTC().Format(time.RFC1123),
			"eventArn":         fmt.Sprintf("arn:aws:health:%s::event/EC2/AWS_EC2_%s/%d", a.config.Region, code, a.next()),
			"eventDescription": []any{map[string]any{"language": "en_US", "latestDescription": "A scheduled change"}}, "affectedEntities": entities,
		}, now)
	})
	return nil
}

// RefuseSpotRole says whether the service-linked role of spot is missing and may
// not be made.
func (a *AWS) RefuseSpotRole(refuse bool) { a.locked(func(time.Time) { a.spotRole = !refuse }) }

// SetQuota limits the vCPUs in use at once of a capacity type; negative is no
// limit.
func (a *AWS) SetQuota(capacityType string, cpus int64) {
	a.locked(func(time.Time) {
		if cpus < 0 {
			delete(a.quotas, capacityType)
		} else {
			a.quotas[capacityType] = cpus
		}
	})
}
