// SPDX-License-Identifier: Apache-2.0

package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
	karpenterv1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/launch"
	"karpenter/model"
)

// Want is a launch that needs templates.
type Want struct {
	Claim        *karpenterv1.NodeClaim // its labels, taints and requests count
	Class        *awsv1.EC2NodeClass
	Candidates   []launch.Candidate
	CapacityType string // as launch.CapacityType says
	Tenancy      string // as launch.Tenancy says
	GroupID      string // of the placement group; "" = none
	Partition    string // as launch.Partition says
	OwnPrices    bool   // nodes differ in what they cost besides their instances, so EC2 cannot tell which is cheapest
}

// Template is a launch template in EC2, and what is to be launched from it.
type Template struct {
	Name          string
	ImageID       string
	ReservationID string // "" = it is bound to none
	Candidates    []launch.Candidate
}

// kind is what types must have in common to share a template.
type kind struct {
	image        string
	efa          int64
	pods         int64
	kube, system string // what is reserved
	reservation  string
	market       string // of the reservation
}

// variant is a kind with its candidates.
type variant struct {
	kind
	kubeReserved   corev1.ResourceList
	systemReserved corev1.ResourceList
	candidates     []launch.Candidate
}

// variants groups the candidates, in the order of their first appearance.
func variants(want *Want) ([]*variant, error) {
	if len(want.Class.Status.SecurityGroups) == 0 {
		return nil, errors.New("no security groups are present in the status")
	}
	if len(want.Class.Status.AMIs) == 0 {
		return nil, errors.New("no amis exist given constraints")
	}
	var out []*variant
	images := image.NewChoice(want.Class.Status.AMIs)
	byKind := map[kind]*variant{}
	for _, c := range want.Candidates {
		ami, ok := images.For(c.Type)
		if !ok {
			continue
		}
		v := newVariant(want, c.Type, ami.ID)
		for _, part := range perReservation(c, want.CapacityType) {
			bound := *v
			bound.reservation, bound.market = part.reservation, part.market
			if byKind[bound.kind] == nil {
				byKind[bound.kind] = &bound
				out = append(out, &bound)
			}
			into := byKind[bound.kind]
			into.candidates = append(into.candidates, part.Candidate)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no instance types satisfy requirements of amis [%s]", strings.Join(imageIDs(want.Class), ", "))
	}
	return out, nil
}

func imageIDs(class *awsv1.EC2NodeClass) []string {
	var out []string
	for _, ami := range class.Status.AMIs {
		out = append(out, ami.ID)
	}
	return out
}

func newVariant(want *Want, t *cloud.InstanceType, ami string) *variant {
	config := want.Class.Spec.Kubelet
	v := &variant{
		kind:           kind{image: ami, pods: maxPods(config, t)},
		kubeReserved:   resolved(config, "kubeReserved", t.Overhead.KubeReserved),
		systemReserved: resolved(config, "systemReserved", t.Overhead.SystemReserved),
	}
	if instancetype.RequestsEFA(want.Claim) {
		has := t.Capacity[instancetype.ResourceEFA]
		v.efa = has.Value()
	}
	v.kube, v.system = text(v.kubeReserved), text(v.systemReserved)
	return v
}

// maxPods is what the class says when that is a number, and else what was worked
// out for the type.
func maxPods(config awsv1.KubeletConfiguration, t *cloud.InstanceType) int64 {
	var pods *int64
	if raw, ok := config["maxPods"]; ok && json.Unmarshal(raw.Raw, &pods) == nil && pods != nil {
		return *pods
	}
	worked := t.Capacity[corev1.ResourcePods]
	return worked.Value()
}

// resolved returns what became of the entries of a field of the class; what the
// class says nothing of is left to the image.
func resolved(config awsv1.KubeletConfiguration, field string, worked corev1.ResourceList) corev1.ResourceList {
	var said map[string]any
	if raw, ok := config[field]; !ok || json.Unmarshal(raw.Raw, &said) != nil {
		return nil
	}
	out := corev1.ResourceList{}
	for name := range said {
		if q, ok := worked[corev1.ResourceName(name)]; ok {
			out[corev1.ResourceName(name)] = q
		}
	}
	return out
}

func text(quantities corev1.ResourceList) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		q := quantities[name]
		fmt.Fprintf(&out, "%s=%s,", name, q.String())
	}
	return out.String()
}

// bound is a candidate, or the part of it that is in one reservation.
type bound struct {
	launch.Candidate
	reservation string
	market      string
}

// perReservation splits a candidate of reserved capacity by reservation, without
// what is in none.
func perReservation(c launch.Candidate, capacityType string) []bound {
	if capacityType != model.Reserved {
		return []bound{{Candidate: c}}
	}
	var out []bound
	for _, o := range c.Offerings {
		if o.ReservationID == "" {
			continue
		}
		at := slices.IndexFunc(out, func(b bound) bool { return b.reservation == o.ReservationID })
		if at < 0 {
			at = len(out)
			out = append(out, bound{reservation: o.ReservationID, market: marketOf(o), Candidate: launch.Candidate{Type: c.Type}})
		}
		out[at].Offerings = append(out[at].Offerings, o)
	}
	return out
}

// marketOf is what EC2 calls the market of a reservation, "" for a usual one.
func marketOf(o *cloud.Offering) string {
	reservation, _ := o.Requirements.Value(awsv1.CapacityReservationTypeLabelKey)
	taken, _ := o.Requirements.Value(awsv1.CapacityReservationInterruptibleLabelKey)
	switch {
	case reservation == string(awsv1.CapacityReservationTypeCapacityBlock):
		return "capacity-block"
	case taken == "true":
		return "interruptible-capacity-reservation"
	}
	return ""
}
