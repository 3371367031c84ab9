// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "karpenter/api/autoscaling/v1beta1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
	"karpenter/sim/script"
)

const (
	namespace = "default"
	appLabel  = "app" // of pods: the name of their workload
)

// Objects are what the script's cluster starts with.
func Objects(s *script.Script) []client.Object {
	out := []client.Object{&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	for i := range s.Pools {
		out = append(out, poolOf(&s.Pools[i]))
	}
	for i := range s.Pods {
		out = append(out, workloadOf(&s.Pods[i])...)
	}
	return out
}

// poolOf is the NodePool of the line.
func poolOf(p *script.Pool) *v1.NodePool {
	out := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: p.Name}}
	spec := &out.Spec.Template.Spec
	spec.NodeClassRef = &v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"}
	spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	for _, in := range []struct {
		key    string
		values []string
	}{{corev1.LabelInstanceTypeStable, p.Types}, {corev1.LabelTopologyZone, p.Zones}, {v1.CapacityTypeLabelKey, p.Capacity}} {
		if len(in.values) > 0 {
			spec.Requirements = append(spec.Requirements, v1.NodeSelectorRequirementWithMinValues{Key: in.key, Operator: corev1.NodeSelectorOpIn, Values: in.values})
		}
	}
	if p.Taint != "" {
		spec.Taints = []v1.Taint{{Key: p.Taint, Effect: corev1.TaintEffectNoSchedule}}
	}
	if p.Label != "" {
		out.Spec.Template.Labels = map[string]string{script.VersionLabel: p.Label}
	}
	if p.Grace > 0 {
		spec.TerminationGracePeriod = &metav1.Duration{Duration: p.Grace}
	}
	spec.ExpireAfter = spanOrNever(p.Expire)
	out.Spec.Disruption = disruptionOf(p)
	out.Spec.Limits = limitsOf(p.Limits)
	if p.Weight > 0 {
		weight := int32(p.Weight)
		out.Spec.Weight = &weight
	}
	if p.Static > 0 {
		replicas := int64(p.Static)
		out.Spec.Replicas = &replicas
	}
	return out
}

// spanOrNever is Never for what is not positive.
func spanOrNever(d time.Duration) v1.NillableDuration {
	if d <= 0 {
		return v1.MustParseNillableDuration(v1.Never)
	}
	return v1.MustParseNillableDuration(d.String())
}

func disruptionOf(p *script.Pool) v1.Disruption {
	out := v1.Disruption{
		ConsolidationPolicy: v1.ConsolidationPolicy(p.Policy),
		ConsolidateAfter:    v1.MustParseNillableDuration("0s"),
	}
	if p.After != 0 {
		out.ConsolidateAfter = spanOrNever(p.After)
	}
	if p.Policy == "" {
		out.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmptyOrUnderutilized
	}
	for _, text := range p.Budgets {
		out.Budgets = append(out.Budgets, budgetOf(text))
	}
	if len(p.Budgets) == 0 {
		out.Budgets = []v1.Budget{{Nodes: "10%"}}
	}
	return out
}

// budgetOf reads nodes[@schedule/duration][:reason]..., which the script has
// checked.
func budgetOf(text string) v1.Budget {
	parts := strings.Split(text, ":")
	nodes, when, scheduled := strings.Cut(parts[0], "@")
	out := v1.Budget{Nodes: nodes}
	for _, r := range parts[1:] {
		out.Reasons = append(out.Reasons, v1.DisruptionReason(r))
	}
	if macro, length, ok := strings.Cut(when, "/"); scheduled && ok {
		if d, err := time.ParseDuration(length); err == nil {
			schedule := "@" + macro
			out.Schedule, out.Duration = &schedule, &metav1.Duration{Duration: d}
		}
	}
	return out
}

func limitsOf(l script.Limits) v1.Limits {
	out := v1.Limits{}
	if l.Nodes > 0 {
		out[v1.ResourceNodes] = *resource.NewQuantity(int64(l.Nodes), resource.DecimalSI)
	}
	if l.CPU != "" {
		out[corev1.ResourceCPU] = resource.MustParse(l.CPU)
	}
	if l.Mem != "" {
		out[corev1.ResourceMemory] = resource.MustParse(l.Mem)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// workloadOf is the Deployment or DaemonSet of the line, with its
// PodDisruptionBudget, CapacityBuffer and PodGroup.
func workloadOf(w *script.Workload) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: w.Name}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: w.Name}}
	if w.Daemon {
		d := &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: templateOf(w)}}
		d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations,
			corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists})
		return []client.Object{d}
	}
	count := int32(w.Count)
	out := []client.Object{&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &count, Selector: selector, Template: templateOf(w)}}}
	if w.Buffer > 0 {
		room := int32(w.Buffer)
		out = append(out, &autoscalingv1beta1.CapacityBuffer{ObjectMeta: meta, Spec: autoscalingv1beta1.CapacityBufferSpec{
			ScalableRef: &autoscalingv1beta1.ScalableRef{APIGroup: appsv1.GroupName, Kind: "Deployment", Name: w.Name}, Replicas: &room,
		}})
	}
	if w.Group > 0 {
		gang := &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(w.Group)}
		g := &schedulingv1beta1.PodGroup{ObjectMeta: meta, Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: gang},
		}}
		if w.Whole {
			g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
		}
		out = append(out, g)
	}
	if w.PDB != "" {
		away := intstr.Parse(w.PDB)
		out = append(out, &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MaxUnavailable: &away}})
	}
	return out
}

func templateOf(w *script.Workload) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appLabel: w.Name}}}
	if w.Group > 0 {
		t.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &w.Name}
	}
	if w.Protect != "" {
		t.Annotations = map[string]string{v1.DoNotDisruptAnnotationKey: w.Protect}
	}
	if w.Surge {
		t.Annotations = map[string]string{v1.SurgeFirstAnnotationKey: "true"}
	}
	requests := corev1.ResourceList{}
	if w.CPU != "" {
		requests[corev1.ResourceCPU] = resource.MustParse(w.CPU)
	}
	if w.Mem != "" {
		requests[corev1.ResourceMemory] = resource.MustParse(w.Mem)
	}
	t.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/main", Resources: corev1.ResourceRequirements{Requests: requests}}}
	if w.Grace > 0 {
		grace := int64(w.Grace / time.Second)
		t.Spec.TerminationGracePeriodSeconds = &grace
	}
	if w.Tolerates != "" {
		t.Spec.Tolerations = []corev1.Toleration{{Key: w.Tolerates, Operator: corev1.TolerationOpExists}}
	}
	t.Spec.NodeSelector = map[string]string{}
	for key, value := range map[string]string{v1.NodePoolLabelKey: w.Pool, corev1.LabelTopologyZone: w.Zone, v1.CapacityTypeLabelKey: w.Capacity} {
		if value != "" {
			t.Spec.NodeSelector[key] = value
		}
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: w.Name}}
	if w.Apart != "" {
		t.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: domainKey(w.Apart)}},
		}}
	}
	if w.Spread != "" {
		t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: domainKey(w.Spread), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
		}}
	}
	return t
}

func domainKey(place string) string {
	if place == "node" {
		return corev1.LabelHostname
	}
	return corev1.LabelTopologyZone
}

// Types are the instance types the script's cloud offers. A tenth of a core and
// a quarter of a GiB are the system's.
func Types(s *script.Script) []*cloud.InstanceType {
	var out []*cloud.InstanceType
	for i := range s.Types {
		out = append(out, typeOf(&s.Types[i]))
	}
	return out
}

func typeOf(t *script.Type) *cloud.InstanceType {
	var offerings []cloud.Offering
	sold := []string{v1.CapacityTypeOnDemand}
	for _, zone := range t.Zones {
		offerings = append(offerings, offeringOf(zone, v1.CapacityTypeOnDemand, t.Price))
		if t.Spot > 0 {
			offerings = append(offerings, offeringOf(zone, v1.CapacityTypeSpot, t.Spot))
		}
	}
	if t.Spot > 0 {
		sold = append(sold, v1.CapacityTypeSpot)
	}
	return &cloud.InstanceType{
		Name: t.Name,
		Requirements: model.NewRequirements(
			model.NewRequirement(corev1.LabelInstanceTypeStable, model.In, t.Name),
			model.NewRequirement(corev1.LabelArchStable, model.In, v1.ArchitectureAmd64),
			model.NewRequirement(corev1.LabelOSStable, model.In, string(corev1.Linux)),
			model.NewRequirement(corev1.LabelTopologyRegion, model.In, "sim"),
			model.NewRequirement(corev1.LabelWindowsBuild, model.DoesNotExist),
			model.NewRequirement(corev1.LabelTopologyZone, model.In, t.Zones...),
			model.NewRequirement(v1.CapacityTypeLabelKey, model.In, sold...),
		),
		Offerings: offerings,
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse(t.CPU),
			corev1.ResourceMemory:           resource.MustParse(t.Mem),
			corev1.ResourcePods:             resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
		},
		Overhead: cloud.Overhead{KubeReserved: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
		}},
	}
}

func offeringOf(zone, sold string, dollars float64) cloud.Offering {
	return cloud.Offering{
		Requirements: model.NewRequirements(
			model.NewRequirement(corev1.LabelTopologyZone, model.In, zone),
			model.NewRequirement(v1.CapacityTypeLabelKey, model.In, sold),
		),
		Price: price(dollars), Available: true,
	}
}

func price(dollars float64) model.Price { return model.Price(dollars * float64(model.Dollar)) }
