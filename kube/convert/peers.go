// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// spreads returns how the pod is to be spread over domains: as it says or, when
// it says nothing, as pods are by default.
func (c Converter) spreads(p *corev1.Pod) []model.Spread {
	constraints := p.Spec.TopologySpreadConstraints
	if len(constraints) == 0 && c.Spread != nil {
		constraints = c.Spread(p)
	}
	var out []model.Spread
	for i := range constraints {
		t := &constraints[i]
		if t.TopologyKey == "" {
			continue
		}
		s := c.spread(t)
		s.Select = model.PodSelector{Namespaces: []string{p.Namespace}}
		s.Select.Labels, s.Select.Nothing = selects(t.LabelSelector)
		s.Select.Labels = s.Select.Labels.And(sameLabels(p, t.MatchLabelKeys)...)
		out = append(out, s)
	}
	return out
}

// spread returns the constraint without its selector.
func (c Converter) spread(t *corev1.TopologySpreadConstraint) model.Spread {
	s := model.Spread{
		Key: c.Labels.CanonicalKey(t.TopologyKey), MaxSkew: int(t.MaxSkew),
		Soft:        t.WhenUnsatisfiable == corev1.ScheduleAnyway,
		AnyNode:     t.NodeAffinityPolicy != nil && *t.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore,
		HonorTaints: t.NodeTaintsPolicy != nil && *t.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
	}
	if t.MinDomains != nil && *t.MinDomains > 1 {
		s.MinDomains = int(*t.MinDomains)
	}
	return s
}

// selects returns the requirements of a selector on the labels of pods. If the
// selector is missing or cannot be read, it selects no pods, and nothing is
// true.
func selects(s *metav1.LabelSelector) (demands model.Requirements, nothing bool) {
	if s == nil || slices.ContainsFunc(s.MatchExpressions, meaningless) {
		return nil, true
	}
	for key, value := range s.MatchLabels {
		demands = demands.And(model.NewRequirement(key, model.In, value))
	}
	for _, e := range s.MatchExpressions {
		demands = demands.And(model.NewRequirement(e.Key, model.Operator(e.Operator), e.Values...))
	}
	return demands, false
}

// meaningless reports whether an expression is invalid. The API server has
// validated keys and values already.
func meaningless(e metav1.LabelSelectorRequirement) bool {
	switch e.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		return len(e.Values) == 0
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		return len(e.Values) > 0
	}
	return true
}

// sameLabels demands the pod's own value of each key that it has a label for.
// The API server has written the same into the selector of pods it admits.
func sameLabels(p *corev1.Pod, keys []string) []model.Requirement {
	return ownLabels(p, keys, model.In)
}

func ownLabels(p *corev1.Pod, keys []string, operator model.Operator) []model.Requirement {
	var out []model.Requirement
	for _, key := range keys {
		if value, ok := p.Labels[key]; ok {
			out = append(out, model.NewRequirement(key, operator, value))
		}
	}
	return out
}

// settled reduces the shape of a pod that never moves to the parts that matter
// to other pods. The controller of the pod has chosen its node already.
func settled(s *model.Shape) {
	s.Terms, s.Preferences, s.Spread = nil, nil, nil
	s.Claims, s.DeviceTerms = nil, nil
	s.PodTerms = slices.DeleteFunc(s.PodTerms, func(t model.PodTerm) bool { return !t.Anti || t.Weight > 0 })
}

// podTerms returns affinity terms before anti-affinity terms. Within each,
// required terms come before preferred terms, and preferred terms are in order
// of weight, heaviest first.
func (c Converter) podTerms(p *corev1.Pod) []model.PodTerm {
	if p.Spec.Affinity == nil {
		return nil
	}
	var out []model.PodTerm
	if a := p.Spec.Affinity.PodAffinity; a != nil {
		out = c.ofKind(p, a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := p.Spec.Affinity.PodAntiAffinity; a != nil {
		anti := c.ofKind(p, a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
		for i := range anti {
			anti[i].Anti = true
		}
		out = append(out, anti...)
	}
	return out
}

// ofKind returns the terms of an affinity or an anti-affinity. Preferences
// without a weight and terms without a topology key are left out.
func (c Converter) ofKind(p *corev1.Pod, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) []model.PodTerm {
	var out []model.PodTerm
	for i := range required {
		if required[i].TopologyKey != "" {
			out = append(out, c.podTerm(p, &required[i]))
		}
	}
	hard := len(out)
	for i := range preferred {
		if preferred[i].Weight > 0 && preferred[i].PodAffinityTerm.TopologyKey != "" {
			t := c.podTerm(p, &preferred[i].PodAffinityTerm)
			t.Weight = preferred[i].Weight
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out[hard:], func(a, b model.PodTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

func (c Converter) podTerm(p *corev1.Pod, t *corev1.PodAffinityTerm) model.PodTerm {
	out := model.PodTerm{Key: c.Labels.CanonicalKey(t.TopologyKey)}
	s := &out.Select
	s.Labels, s.Nothing = selects(t.LabelSelector)
	s.Labels = s.Labels.And(sameLabels(p, t.MatchLabelKeys)...).And(ownLabels(p, t.MismatchLabelKeys, model.NotIn)...)
	s.Namespaces = slices.Compact(slices.Sorted(slices.Values(t.Namespaces)))
	if t.NamespaceSelector == nil {
		if len(s.Namespaces) == 0 {
			s.Namespaces = []string{p.Namespace}
		}
		return out
	}
	var nothing bool
	s.NamespaceLabels, nothing = selects(t.NamespaceSelector)
	s.ByNamespace, s.Nothing = true, s.Nothing || nothing
	return out
}

// preferences returns the preferred node affinity, heaviest first. Two kinds of
// terms are left out: an empty term prefers nothing, and a preference that no
// node can meet is not a reason to reject the pod.
func (c Converter) preferences(p *corev1.Pod) []model.Preference {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	var out []model.Preference
	for _, t := range p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		if t.Weight > 0 && len(t.Preference.MatchExpressions)+len(t.Preference.MatchFields) > 0 && c.askable(&t.Preference) {
			out = append(out, model.Preference{Weight: t.Weight, Term: c.term(&t.Preference)})
		}
	}
	slices.SortStableFunc(out, func(a, b model.Preference) int { return cmp.Compare(b.Weight, a.Weight) })
	return out
}

func (c Converter) askable(t *corev1.NodeSelectorTerm) bool {
	return !slices.ContainsFunc(t.MatchFields, unknownField) &&
		!slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return v1.ValidateRequirement(v1.NodeSelectorRequirementWithMinValues{Key: e.Key, Operator: e.Operator, Values: e.Values}, c.Labels) != nil
		})
}

// hostPorts returns the ports the scheduler keeps free for the pod, sorted:
// those of containers and sidecars.
func hostPorts(spec *corev1.PodSpec) []model.HostPort {
	var out []model.HostPort
	add := func(k *corev1.Container) {
		for _, port := range k.Ports {
			if port.HostPort != 0 {
				out = append(out, model.HostPort{
					IP: cmp.Or(port.HostIP, "0.0.0.0"), Protocol: cmp.Or(string(port.Protocol), string(corev1.ProtocolTCP)), Port: port.HostPort,
				})
			}
		}
	}
	for i := range spec.Containers {
		add(&spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if k := &spec.InitContainers[i]; k.RestartPolicy != nil && *k.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(k)
		}
	}
	slices.SortFunc(out, byPort)
	return slices.Compact(out)
}

func byPort(a, b model.HostPort) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
}
