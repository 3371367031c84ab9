// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/launch"
	"karpenter/cloud/azure/machine"
	"karpenter/model"
)

// launched returns the machine that was launched for the claim. The type is nil if
// the class has it no more.
func (p *Provider) launched(claim *v1.NodeClaim, class *v1beta1.AKSNodeClass, m *machine.Machine, t *cloud.InstanceType) *cloud.Machine {
	out := p.machine(m, t)
	out.Claim, out.ClaimUID = claim.Name, claim.UID
	out.Labels[v1beta1.SKUUltraSSDLabelKey] = strconv.FormatBool(launch.UltraSSD(claim))
	wellKnown := v1beta1.Labels().WellKnown
	for _, r := range cloud.Demand(claim) {
		value, single := cloud.Demand(claim).Value(r.Key)
		if _, set := out.Labels[r.Key]; single && !set && wellKnown.Has(r.Key) {
			out.Labels[r.Key] = value
		}
	}
	out.Annotations = map[string]string{
		v1beta1.HashAnnotationKey:              class.Hash(),
		v1beta1.HashVersionAnnotationKey:       v1beta1.HashVersion,
		v1beta1.InPlaceUpdateHashAnnotationKey: launchedTags(m),
	}
	if tags, err := p.tags(class, claim); err == nil { // an error is Update's to tell
		out.Annotations[v1beta1.InPlaceUpdateTagsAnnotationKey] = keys(tags)
	}
	if !m.IsVM() {
		out.Annotations[v1beta1.MachineResourceIDAnnotationKey] = m.ID
	}
	return out
}

// launchedTags is the in-place hash of the tags and identities that the machine has.
func launchedTags(m *machine.Machine) string { return launch.InPlaceHash(ownTags(m), m.Identities...) }

// ownTags are the tags of the machine without those that name its claim.
func ownTags(m *machine.Machine) map[string]string {
	tags := maps.Clone(m.Tags)
	delete(tags, v1beta1.MachineNodeClaimTagKey)
	delete(tags, v1beta1.NodeClaimTagKey)
	return tags
}

// machine is what is known of an AKS machine; the type is nil if it is not known.
func (p *Provider) machine(m *machine.Machine, t *cloud.InstanceType) *cloud.Machine {
	out := &cloud.Machine{
		ProviderID: machine.ProviderID(m.VM),
		Claim:      m.Claim,
		Created:    m.Created,
		ImageID:    m.ImageVersion,
		Labels:     labels(m, t),
		Deleting:   m.State == machine.Deleting,
	}
	if t != nil {
		bought := cloud.Choice{Type: t, Offering: offeringOf(t, m)}
		out.Capacity, out.Allocatable = existing(bought.Capacity()), existing(bought.Allocatable())
	}
	return out
}

func labels(m *machine.Machine, t *cloud.InstanceType) map[string]string {
	out := map[string]string{}
	if t != nil {
		for _, r := range t.Requirements {
			if value, ok := t.Requirements.Value(r.Key); ok {
				out[r.Key] = value
			}
		}
	}
	scope := v1beta1.PlacementScopeZonal
	if m.Zone == v1beta1.RegionalZone {
		scope = v1beta1.PlacementScopeRegional
	}
	priority := instancetype.Priority(m.CapacityType)
	maps.Copy(out, map[string]string{
		model.LabelInstanceType:             m.Size,
		model.LabelZone:                     m.Zone,
		model.LabelCapacityType:             m.CapacityType,
		v1beta1.PlacementScopeLabelKey:      scope,
		v1beta1.AKSPriorityLabelKey:         priority,
		v1beta1.AKSScaleSetPriorityLabelKey: priority,
	})
	if pool := m.Tags[v1beta1.NodePoolTagKey]; pool != "" {
		out[v1.NodePoolLabelKey] = pool
	}
	return out
}

// offeringOf returns the offering that the machine was launched as; an empty one if
// it is not offered any more.
func offeringOf(t *cloud.InstanceType, m *machine.Machine) *cloud.Offering {
	at := slices.IndexFunc(t.Offerings, func(o cloud.Offering) bool {
		return o.Zone() == m.Zone && o.CapacityType() == m.CapacityType
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

// typeOf returns the type of the class by name, nil if there is none.
func (p *Provider) typeOf(ctx context.Context, claim *v1.NodeClaim, class *v1beta1.AKSNodeClass, size string) *cloud.InstanceType {
	types, err := p.typesFor(ctx, claim, class)
	if err != nil {
		log.FromContext(ctx).Error(err, "the type of a launched instance is not known", "instance-type", size)
	}
	return named(types, size)
}

func named(types []*cloud.InstanceType, name string) *cloud.InstanceType {
	if i := slices.IndexFunc(types, func(t *cloud.InstanceType) bool { return t.Name == name }); i >= 0 {
		return types[i]
	}
	return nil
}

// listed returns the machines with their claims and types. A type that cannot be
// told is left out: machines are listed all the same.
func (p *Provider) listed(ctx context.Context, machines []*machine.Machine, claims map[string]*v1.NodeClaim) []*cloud.Machine {
	ofPool := map[string][]*cloud.InstanceType{}
	out := make([]*cloud.Machine, len(machines))
	for i, m := range machines {
		pool := m.Tags[v1beta1.NodePoolTagKey]
		if _, known := ofPool[pool]; !known {
			ofPool[pool] = p.typesOfPool(ctx, pool)
		}
		out[i] = p.machine(m, named(ofPool[pool], m.Size))
		// A claim that has another instance does not answer for this one.
		if claim := claims[m.Claim]; claim != nil && (claim.Status.ProviderID == "" || strings.EqualFold(claim.Status.ProviderID, out[i].ProviderID)) {
			out[i].ClaimUID = claim.UID
		}
	}
	return out
}

// typesOfPool returns the types of a NodePool by its name, nil if they cannot be
// told.
func (p *Provider) typesOfPool(ctx context.Context, name string) []*cloud.InstanceType {
	pool := &v1.NodePool{}
	err := p.config.Client.Get(ctx, client.ObjectKey{Name: name}, pool)
	if err == nil {
		var types []*cloud.InstanceType
		if types, err = p.InstanceTypes(ctx, pool); err == nil {
			return types
		}
	}
	log.FromContext(ctx).V(1).Info("the instance types of a pool are not known", "NodePool", name, "error", err.Error())
	return nil
}
