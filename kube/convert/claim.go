// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// NodeClaimFor returns the NodeClaim for the launch. The pool is the NodePool
// that the plan was made with. The claim records its hash, so a later edit of
// the NodePool shows as drift. The grace period applies to pools that set none;
// nil means none. For a static pool, the claim has the requirements of the
// template and not those of the launch.
func (c Converter) NodeClaimFor(l *model.Launch, pool *v1.NodePool, gracePeriod *metav1.Duration) *v1.NodeClaim {
	template := pool.Spec.Template.DeepCopy()
	labels := templateLabels(pool)
	requirements := c.claimRequirements(l, labels)
	if pool.IsStatic() {
		l, requirements = &model.Launch{Pool: pool.Name}, c.templateRequirements(pool, labels)
	}
	for _, r := range requirements {
		if value, ok := c.labelValue(r); ok {
			if _, set := labels[r.Key]; !set {
				labels[r.Key] = value
			}
		}
	}
	if template.Spec.TerminationGracePeriod == nil {
		template.Spec.TerminationGracePeriod = gracePeriod
	}
	return &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    pool.Name + "-",
			Finalizers:      []string{v1.TerminationFinalizer},
			Labels:          labels,
			Annotations:     c.claimAnnotations(l, pool),
			OwnerReferences: []metav1.OwnerReference{ownerReference(pool)},
		},
		Spec: v1.NodeClaimSpec{
			Taints: template.Spec.Taints, StartupTaints: template.Spec.StartupTaints,
			Requirements:           render(requirements),
			Resources:              v1.ResourceRequirements{Requests: c.List(l.Requests)},
			NodeClassRef:           template.Spec.NodeClassRef,
			TerminationGracePeriod: template.Spec.TerminationGracePeriod,
			ExpireAfter:            template.Spec.ExpireAfter,
		},
	}
}

func (c Converter) claimAnnotations(l *model.Launch, pool *v1.NodePool) map[string]string {
	out := maps.Clone(pool.Spec.Template.Annotations)
	if out == nil {
		out = map[string]string{}
	}
	out[v1.NodePoolHashAnnotationKey] = pool.Hash()
	out[v1.NodePoolHashVersionAnnotationKey] = v1.NodePoolHashVersion
	out[v1.NodeClaimMinValuesRelaxedAnnotationKey] = strconv.FormatBool(len(l.MinValues) > 0)
	if len(l.Drivers) > 0 {
		out[v1.RequestedDRADriversAnnotationKey] = strings.Join(l.Drivers, ",")
	}
	if groups := groupsOf(l.Pods); len(groups) > 0 {
		out[v1.PodGroupsAnnotationKey] = strings.Join(groups, ",")
	}
	if c.Overlaid != nil {
		price, capacity := c.Overlaid(l.Pool, l.Types)
		if price {
			out[v1.PriceOverlayAppliedAnnotationKey] = "true"
		}
		if capacity {
			out[v1.CapacityOverlayAppliedAnnotationKey] = "true"
		}
	}
	return out
}

// groupsOf returns the PodGroups of the pods, sorted.
func groupsOf(pods []model.Pod) []string {
	var out []string
	for _, p := range pods {
		if p.Group != "" {
			out = append(out, p.Group)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func ownerReference(pool *v1.NodePool) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1.GroupVersion().String(), Kind: "NodePool",
		Name: pool.Name, UID: pool.UID, BlockOwnerDeletion: ptr.To(true),
	}
}

// claimRequirements returns the requirements of the claim: those of the launch,
// the labels that the node will have, and the instance types and capacity types
// that it can become. Labels that are used for planning only are left out.
func (c Converter) claimRequirements(l *model.Launch, labels map[string]string) model.Requirements {
	out := l.Requirements.Without(model.FieldName, model.LabelHostname, model.LabelRegistered, model.LabelInitialized, model.LabelInstanceType, model.LabelCapacityType)
	out = slices.DeleteFunc(out, func(r model.Requirement) bool { return strings.HasPrefix(r.Key, model.FeaturePrefix) })
	out = out.And(c.selector(labels)...)
	for _, listed := range []struct {
		key    string
		values []string
	}{{model.LabelInstanceType, l.Types}, {model.LabelCapacityType, l.CapacityTypes}} {
		if len(listed.values) == 0 {
			continue
		}
		r := model.NewRequirement(listed.key, model.In, listed.values...)
		if old, ok := l.Requirements.Get(listed.key); ok {
			r.MinValues = old.MinValues
		}
		out = out.And(r)
	}
	for _, relaxed := range l.MinValues {
		if i := slices.IndexFunc(out, func(r model.Requirement) bool { return r.Key == relaxed.Key }); i >= 0 {
			out[i].MinValues = relaxed.Spans
		}
	}
	return out
}

// labelValue returns a label value for a requirement on a custom key that needs
// one: a value that the requirement allows. Other keys get their values from
// the instance.
func (c Converter) labelValue(r model.Requirement) (string, bool) {
	nothing := !r.Complement && len(r.Values) == 0
	if c.Labels.WellKnown.Has(r.Key) || r.AllowsAbsence() || nothing {
		return "", false
	}
	if !r.Complement {
		return r.Values[0], true
	}
	return r.Number()
}

// render writes requirements as the API does.
func render(rs model.Requirements) []v1.NodeSelectorRequirementWithMinValues {
	out := []v1.NodeSelectorRequirementWithMinValues{}
	for _, r := range rs {
		add := func(operator corev1.NodeSelectorOperator, values ...string) {
			next := v1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: operator, Values: values}
			if r.MinValues > 0 {
				next.MinValues = ptr.To(r.MinValues)
			}
			out = append(out, next)
		}
		if r.Present {
			add(corev1.NodeSelectorOpExists)
		}
		if r.Gte.Set {
			add(v1.NodeSelectorOpGte, strconv.FormatInt(r.Gte.N, 10))
		}
		if r.Lte.Set {
			add(v1.NodeSelectorOpLte, strconv.FormatInt(r.Lte.N, 10))
		}
		if len(r.Values) > 0 || !r.Gte.Set && !r.Lte.Set {
			add(corev1.NodeSelectorOperator(r.Operator()), r.Values...)
		}
	}
	return out
}
