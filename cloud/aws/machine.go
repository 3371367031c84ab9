// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/instance"
	"karpenter/cloud/aws/instancetype"
	"karpenter/model"
)

// launched returns the machine that was started for the claim. The class is nil
// if it is gone.
func (p *Provider) launched(ctx context.Context, claim *v1.NodeClaim, class *awsv1.EC2NodeClass, i *instance.Instance) *cloud.Machine {
	if class == nil { // not ready any more, perhaps
		class, _ = p.class(ctx, i.Tags[awsv1.NodeClassTagKey])
	}
	var t *cloud.InstanceType
	if class != nil {
		types, err := p.typesFor(ctx, claim, class)
		if err != nil {
			log.FromContext(ctx).Error(err, "the type of a launched instance is not known", "instance-type", i.Type)
		}
		t = typeOf(types, i.Type)
	}
	m := machine(i, t, class)
	m.Claim, m.ClaimUID = claim.Name, claim.UID
	if class == nil {
		return m
	}
	m.Annotations = map[string]string{
		awsv1.HashAnnotationKey:                class.Hash(p.config.CABundle),
		awsv1.HashVersionAnnotationKey:         awsv1.HashVersion,
		awsv1.InstanceProfileNameAnnotationKey: class.Status.InstanceProfile,
	}
	if !instancetype.RequestsEFA(claim) && !configuresEFA(class) {
		delete(m.Capacity, instancetype.ResourceEFA)
		delete(m.Allocatable, instancetype.ResourceEFA)
	}
	if group, err := p.config.Group(ctx, class); err == nil && group != nil && group.Strategy == partitioned {
		// EC2 tells the partition later; see PartitionHook.
		demanded, _ := cloud.Demand(claim).Value(awsv1.PlacementGroupPartitionLabelKey)
		if _, known := m.Labels[awsv1.PlacementGroupPartitionLabelKey]; !known {
			m.Labels[awsv1.PlacementGroupPartitionLabelKey] = demanded
		}
	}
	return m
}

func configuresEFA(class *awsv1.EC2NodeClass) bool {
	return slices.ContainsFunc(class.Spec.NetworkInterfaces, func(n *awsv1.NetworkInterface) bool {
		return n.InterfaceType == awsv1.InterfaceTypeEFAOnly
	})
}

func typeOf(types []*cloud.InstanceType, name string) *cloud.InstanceType {
	if i := slices.IndexFunc(types, func(t *cloud.InstanceType) bool { return t.Name == name }); i >= 0 {
		return types[i]
	}
	return nil
}

// machine is what is known of an instance; type and class are nil if they are
// not known.
func machine(i *instance.Instance, t *cloud.InstanceType, class *awsv1.EC2NodeClass) *cloud.Machine {
	m := &cloud.Machine{
		ProviderID: providerID(i),
		Created:    i.Launched,
		ImageID:    i.ImageID,
		Labels:     labels(i, t, class),
		Deleting:   i.Ending(),
	}
	if t != nil {
		bought := cloud.Choice{Type: t, Offering: offeringOf(t, i)}
		m.Capacity, m.Allocatable = existing(bought.Capacity()), existing(bought.Allocatable())
	}
	if i.Described && i.EFAs == 0 {
		delete(m.Capacity, instancetype.ResourceEFA)
		delete(m.Allocatable, instancetype.ResourceEFA)
	}
	return m
}

// offeringOf returns the offering of the instance, or an empty one if it is no
// longer offered.
func offeringOf(t *cloud.InstanceType, i *instance.Instance) *cloud.Offering {
	at := slices.IndexFunc(t.Offerings, func(o cloud.Offering) bool {
		return o.Zone() == i.Zone && o.CapacityType() == i.CapacityType && o.ReservationID == i.ReservationID
	})
	if at < 0 {
		return &cloud.Offering{}
	}
	return &t.Offerings[at]
}

// existing returns a copy of the list without what there is nothing of.
func existing(list corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range list {
		if q.Sign() != 0 {
			out[name] = q.DeepCopy()
		}
	}
	return out
}

func labels(i *instance.Instance, t *cloud.InstanceType, class *awsv1.EC2NodeClass) map[string]string {
	out := map[string]string{}
	if t != nil {
		for _, r := range t.Requirements {
			if value, ok := t.Requirements.Value(r.Key); ok {
				out[r.Key] = value
			}
		}
	}
	// What a type can have the instance need not have.
	for _, key := range []string{
		awsv1.CapacityReservationIDLabelKey, awsv1.CapacityReservationTypeLabelKey, awsv1.CapacityReservationInterruptibleLabelKey,
		awsv1.PlacementGroupIDLabelKey, awsv1.PlacementGroupPartitionLabelKey, awsv1.ZoneIDLabelKey,
	} {
		delete(out, key)
	}
	maps.Copy(out, map[string]string{
		model.LabelInstanceType:       i.Type,
		model.LabelZone:               i.Zone,
		model.LabelCapacityType:       i.CapacityType,
		awsv1.InstanceTenancyLabelKey: i.Tenancy,
	})
	if i.CapacityType == model.Reserved {
		out[awsv1.CapacityReservationIDLabelKey] = i.ReservationID
		out[awsv1.CapacityReservationTypeLabelKey] = string(i.ReservationType)
		out[awsv1.CapacityReservationInterruptibleLabelKey] = strconv.FormatBool(i.ReservationInterruptible)
	}
	if i.GroupID != "" {
		out[awsv1.PlacementGroupIDLabelKey] = i.GroupID
	}
	if i.Partition > 0 {
		out[awsv1.PlacementGroupPartitionLabelKey] = strconv.Itoa(int(i.Partition))
	}
	if id := zoneID(i, class); id != "" {
		out[awsv1.ZoneIDLabelKey] = id
	}
	if pool := i.Tags[awsv1.NodePoolTagKey]; pool != "" {
		out[v1.NodePoolLabelKey] = pool
	}
	return out
}

func zoneID(i *instance.Instance, class *awsv1.EC2NodeClass) string {
	if class != nil {
		for _, s := range class.Status.Subnets {
			if s.Zone == i.Zone && s.ZoneID != "" {
				return s.ZoneID
			}
		}
	}
	return i.ZoneID
}

// sold is a class with its types, by name.
type sold struct {
	class *awsv1.EC2NodeClass
	types map[string]*cloud.InstanceType
}

// catalogue returns the classes of the instances by name, with their types. What
// cannot be read is left out: instances are listed all the same.
func (p *Provider) catalogue(ctx context.Context, list []*instance.Instance) map[string]sold {
	out := map[string]sold{}
	for _, i := range list {
		name := i.Tags[awsv1.NodeClassTagKey]
		if _, done := out[name]; done {
			continue
		}
		out[name] = sold{}
		class, err := p.class(ctx, name)
		if err != nil {
			continue
		}
		types, err := p.config.Types(ctx, class)
		if err != nil {
			log.FromContext(ctx).V(1).Info("the instance types of a class are not known", "EC2NodeClass", name, "error", err.Error())
		}
		s := sold{class: class, types: make(map[string]*cloud.InstanceType, len(types))}
		for _, t := range types {
			s.types[t.Name] = t
		}
		out[name] = s
	}
	return out
}

// listed is a machine with its claim.
func (p *Provider) listed(i *instance.Instance, catalogue map[string]sold) *cloud.Machine {
	s := catalogue[i.Tags[awsv1.NodeClassTagKey]]
	m := machine(i, s.types[i.Type], s.class)
	claim := p.instances.ClaimOf(i)
	m.Claim, m.ClaimUID = claim.Name, claim.UID
	return m
}
