// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/component-helpers/resource"

	v1 "karpenter/api/v1"
	"karpenter/kube/devices"
	"karpenter/kube/pods"
	"karpenter/kube/volumes"
	"karpenter/model"
)

// shape returns the scheduling-relevant part of the pod's spec, its requests
// for resources that are not on the axis, and the Answers about its volumes and
// its ResourceClaims.
func (c Converter) shape(p *corev1.Pod) (s *model.Shape, unknown map[string]int64, a volumes.Answer, d devices.Answer) {
	s, unknown = c.demand(p)
	s.Preferences, s.Spread, s.PodTerms = c.preferences(p), c.spreads(p), c.podTerms(p)
	s.Refused = c.refused(p)
	if c.Volumes != nil {
		a = c.Volumes(p)
		s.Volumes, s.VolumeTerms = a.Volumes, a.Terms
		s.Refused = append(s.Refused, a.Refused...)
		s.PodTerms = append(together(p.Namespace, a), s.PodTerms...)
	}
	if c.Devices != nil {
		d = c.Devices(p)
		s.Claims, s.DeviceTerms = d.Claims, d.Terms
		s.Refused = append(s.Refused, d.Refused...)
	}
	if pods.DaemonSet(p) || pods.Static(p) {
		settled(s)
	}
	s.Key = c.identity(s, unknown)
	return s, unknown, a, d
}

// identity returns the identity that the shape has together with the unknown
// requests.
func (c Converter) identity(s *model.Shape, unknown map[string]int64) string {
	names, whole := c.Axis.Names(), *s
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		whole.Requests = whole.Requests.With(len(names), unknown[name])
		names = append(names, name)
	}
	return whole.Identity(names)
}

// together returns affinity terms that keep the pod in one zone with the other
// pods that use a volume which is not provisioned yet.
func together(namespace string, a volumes.Answer) []model.PodTerm {
	var out []model.PodTerm
	for _, claim := range a.Together {
		out = append(out, model.PodTerm{Key: model.LabelZone, Select: model.PodSelector{
			Namespaces: []string{namespace}, Labels: model.Requirements{model.NewRequirement(claimLabel+claim, model.Exists)},
		}})
	}
	return out
}

// claimLabel and the name of a PersistentVolumeClaim make the key of a label
// that pods get if they must run in one zone, so that their selectors find each
// other. No real label has such a key.
const claimLabel = "PersistentVolumeClaim/"

// labelled returns the labels of a pod, and those of claims.
func labelled(labels map[string]string, a volumes.Answer) map[string]string {
	if len(a.Together) == 0 {
		return labels
	}
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	for _, claim := range a.Together {
		out[claimLabel+claim] = ""
	}
	return out
}

// demand returns the shape of what the pod demands of its node, without a Key.
func (c Converter) demand(p *corev1.Pod) (s *model.Shape, unknown map[string]int64) {
	requests, unknown := c.requests(p)
	s = &model.Shape{
		Requests:    requests,
		Selector:    c.selector(p.Spec.NodeSelector),
		Terms:       c.terms(p),
		Tolerations: tolerations(p.Spec.Tolerations),
		HostPorts:   hostPorts(&p.Spec),
	}
	if p.Spec.Priority != nil {
		s.Priority = *p.Spec.Priority
	}
	for _, name := range features(p) {
		s.Selector = s.Selector.And(model.NewRequirement(model.FeaturePrefix+name, model.In, "true"))
	}
	return s, unknown
}

// features returns what the scheduler wants the kubelet of the pod's node to declare, sorted.
func features(p *corev1.Pod) []string {
	framework := nodedeclaredfeatures.DefaultFramework
	needed, err := framework.InferForPodScheduling(&nodedeclaredfeatures.PodInfo{Spec: &p.Spec, Status: &p.Status}, newest)
	if err != nil || needed.IsEmpty() {
		return nil
	}
	out, _ := framework.Unmap(needed)
	slices.Sort(out)
	return out
}

// newest is the version of Kubernetes whose scheduler decides which features matter.
var newest = version.MajorMinor(1, 37)

// requests returns the requests that the scheduler counts for the pod:
// containers, init containers, sidecars, pod-level resources and overhead.
// While the pod is being resized, the larger of the old and the new value
// counts. Any user can invent resource names, so unknown names are returned
// apart and not added to the axis.
func (c Converter) requests(p *corev1.Pod) (known model.Resources, unknown map[string]int64) {
	known = make(model.Resources, model.EphemeralStorage+1)
	for name, q := range resource.PodRequests(p, resource.PodResourcesOptions{UseStatusResources: true}) {
		i, ok := c.Axis.Position(string(name))
		switch {
		case ok:
			known = known.With(i, amount(i, q))
		case !q.IsZero():
			if unknown == nil {
				unknown = map[string]int64{}
			}
			unknown[string(name)] = amount(model.Nodes+1, q)
		}
	}
	return known.With(model.Pods, 1), unknown
}

func (c Converter) selector(labels map[string]string) model.Requirements {
	var out model.Requirements
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = out.And(c.requirement(key, corev1.NodeSelectorOpIn, []string{labels[key]}))
	}
	return out
}

// terms returns the required node affinity. An empty term matches no node and
// is left out. If no term is left, the pod can run on no node.
func (c Converter) terms(p *corev1.Pod) []model.Requirements {
	if hasOnlyEmptyTerms(p) {
		nowhere := model.Requirement{Key: model.LabelHostname, Present: true}
		return []model.Requirements{{nowhere}}
	}
	var out []model.Requirements
	for _, t := range requiredTerms(p) {
		if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
			continue
		}
		out = append(out, c.term(&t))
	}
	return out
}

func (c Converter) term(t *corev1.NodeSelectorTerm) model.Requirements {
	var out model.Requirements
	for _, e := range t.MatchExpressions {
		out = out.And(c.requirement(e.Key, e.Operator, e.Values))
	}
	for _, f := range t.MatchFields {
		if !unknownField(f) {
			out = out.And(model.NewRequirement(model.FieldName, model.Operator(f.Operator), f.Values...))
		}
	}
	return out
}

// unknownField reports whether the scheduler does not support the field. It
// supports only the name of a Node.
func unknownField(f corev1.NodeSelectorRequirement) bool {
	return f.Key != metav1.ObjectNameField || f.Operator != corev1.NodeSelectorOpIn && f.Operator != corev1.NodeSelectorOpNotIn
}

func requiredTerms(p *corev1.Pod) []corev1.NodeSelectorTerm {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

// tolerations returns the tolerations. The API server takes those that compare numbers
// only if the scheduler is to read them.
func tolerations(list []corev1.Toleration) []model.Toleration {
	var out []model.Toleration
	for _, t := range list {
		o := model.Toleration{
			Key: t.Key, Value: t.Value, Effect: model.Effect(t.Effect),
			Exists: t.Operator == corev1.TolerationOpExists,
		}
		switch t.Operator {
		case corev1.TolerationOpGt:
			o.Compare = model.Greater
		case corev1.TolerationOpLt:
			o.Compare = model.Less
		}
		out = append(out, o)
	}
	return out
}

// optedOut reports whether the pod excludes nodes that Karpenter manages.
func (c Converter) optedOut(s *model.Shape) bool {
	out := false
	for _, alternative := range s.Alternatives() {
		r, ok := alternative.Get(v1.NodePoolLabelKey)
		if !ok || r.Operator() != model.DoesNotExist {
			return false
		}
		out = true
	}
	return out
}

// refusal is something in a pod spec that no plan honors yet.
type refusal struct {
	what string // as in "the pod uses …"
	in   func(*corev1.Pod) bool
}

// refusals returns what is rejected. To support one, delete its line.
func refusals() []refusal {
	return []refusal{
		{"nodeAffinity matchFields of other than metadata.name", hasUnknownField},
	}
}

// refused lists what the pod uses and no plan can honor.
func (c Converter) refused(p *corev1.Pod) []string {
	var out []string
	for _, r := range refusals() {
		if r.in(p) {
			out = append(out, r.what+" (not supported yet)")
		}
	}
	if c.Volumes == nil && slices.ContainsFunc(p.Spec.Volumes, needsClaim) {
		out = append(out, "volumes of PersistentVolumeClaims, which are not looked at here")
	}
	if c.Devices == nil && hasDeviceClaims(p) {
		out = append(out, "resourceClaims, which are not looked at here")
	}
	return append(out, c.invalid(p)...)
}

// invalid lists demands on labels that no node can be launched for.
func (c Converter) invalid(p *corev1.Pod) []string {
	var out []string
	check := func(where, key string, operator corev1.NodeSelectorOperator, values []string) {
		err := v1.ValidateRequirement(v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values}, c.Labels)
		if err != nil {
			out = append(out, fmt.Sprintf("%s %s (%v)", where, key, err))
		}
	}
	if hasOnlyEmptyTerms(p) {
		out = append(out, "a required nodeAffinity without a term that can match")
	}
	for _, key := range slices.Sorted(maps.Keys(p.Spec.NodeSelector)) {
		check("nodeSelector", key, corev1.NodeSelectorOpIn, []string{p.Spec.NodeSelector[key]})
	}
	for _, t := range requiredTerms(p) {
		for _, e := range t.MatchExpressions {
			check("nodeAffinity", e.Key, e.Operator, e.Values)
		}
	}
	return out
}

func hasUnknownField(p *corev1.Pod) bool {
	return slices.ContainsFunc(requiredTerms(p), func(t corev1.NodeSelectorTerm) bool { return slices.ContainsFunc(t.MatchFields, unknownField) })
}

func hasOnlyEmptyTerms(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	return !slices.ContainsFunc(requiredTerms(p), func(t corev1.NodeSelectorTerm) bool {
		return len(t.MatchExpressions)+len(t.MatchFields) > 0
	})
}

func needsClaim(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }

func hasDeviceClaims(p *corev1.Pod) bool { return len(p.Spec.ResourceClaims) > 0 }
