// SPDX-License-Identifier: Apache-2.0

package zonalshift

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	karpenterv1 "karpenter/api/v1"
	"karpenter/model"
)

// Event is something to tell about a NodePool.
type Event struct {
	Object                client.Object
	Type, Reason, Message string
	Dedupe                []string // what makes two events with the same reason equal
}

// tellChanges tells every NodePool that can launch in a zone when traffic is
// shifted away from it, and when that is over; after an error, the next time.
func (s *Shifts) tellChanges(ctx context.Context) error {
	now, begun, over := s.changes()
	if len(begun)+len(over) == 0 || s.config.Tell == nil || s.config.Reader == nil {
		return nil
	}
	pools, classes := &karpenterv1.NodePoolList{}, &awsv1.EC2NodeClassList{}
	if err := s.config.Reader.List(ctx, pools); err != nil {
		return fmt.Errorf("list node pools: %w", err)
	}
	if err := s.config.Reader.List(ctx, classes); err != nil {
		return fmt.Errorf("list node classes: %w", err)
	}
	byName := map[string]*awsv1.EC2NodeClass{}
	for i := range classes.Items {
		byName[classes.Items[i].Name] = &classes.Items[i]
	}
	for i := range pools.Items {
		pool := &pools.Items[i]
		for _, id := range begun {
			if zone, ok := reaches(pool, byName, id); ok {
				s.config.Tell(event(pool, corev1.EventTypeWarning, "ZonalShiftActive", id,
					fmt.Sprintf("Zonal shift detected: offerings in zone %s (%s) are unavailable for this NodePool", zone, id)))
			}
		}
		for _, id := range over {
			if zone, ok := reaches(pool, byName, id); ok {
				s.config.Tell(event(pool, corev1.EventTypeNormal, "ZonalShiftCleared", id,
					fmt.Sprintf("Zonal shift cleared: offerings in zone %s (%s) are available for this NodePool again", zone, id)))
			}
		}
	}
	s.tell(now)
	return nil
}

func event(pool *karpenterv1.NodePool, kind, reason, zoneID, message string) Event {
	return Event{Object: pool, Type: kind, Reason: reason, Message: message, Dedupe: []string{string(pool.UID), zoneID}}
}

// reaches returns the name of the zone if the pool can launch there: its class
// has a subnet in the zone, and the pool's requirements and labels allow the
// zone by name and by ID.
func reaches(pool *karpenterv1.NodePool, classes map[string]*awsv1.EC2NodeClass, id string) (zone string, ok bool) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref == nil || ref.Group != awsv1.Group || classes[ref.Name] == nil {
		return "", false
	}
	for _, subnet := range classes[ref.Name].Status.Subnets {
		if subnet.ZoneID == id {
			zone = subnet.Zone
		}
	}
	if zone == "" {
		return "", false
	}
	labels := awsv1.Labels()
	at := model.NewRequirements(model.NewRequirement(model.LabelZone, model.In, zone), model.NewRequirement(awsv1.ZoneIDLabelKey, model.In, id))
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if _, agrees := at.Intersects(model.NewRequirements(model.NewRequirement(labels.CanonicalKey(r.Key), model.Operator(r.Operator), r.Values...))); !agrees {
			return "", false
		}
	}
	_, agrees := at.Intersects(model.LabelRequirements(pool.Spec.Template.Labels))
	return zone, agrees
}
