// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"karpenter/api/conditions"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/world"
)

// Node returns the Node as the world knows it.
func (c Converter) Node(n *corev1.Node) world.Node {
	return world.Node{
		Name: n.Name, UID: string(n.UID), ProviderID: n.Spec.ProviderID,
		Labels: c.canonicalLabels(n.Labels), Taints: taints(nodeTaints(n)),
		Capacity: c.Resources(n.Status.Capacity), Allocatable: c.Resources(n.Status.Allocatable),
		Ready: slices.ContainsFunc(n.Status.Conditions, func(k corev1.NodeCondition) bool {
			return k.Type == corev1.NodeReady && k.Status == corev1.ConditionTrue
		}),
		Deleting:     n.DeletionTimestamp != nil,
		DoNotDisrupt: n.Annotations[v1.DoNotDisruptAnnotationKey] == "true",
		Sick:         c.Sick != nil && c.Sick(n),
		Features:     n.Status.DeclaredFeatures,
	}
}

// nodeTaints returns the taints of the Node, with the one that a cordoned Node
// is about to get.
func nodeTaints(n *corev1.Node) []corev1.Taint {
	cordoned := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if !n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&cordoned) }) {
		return n.Spec.Taints
	}
	return append(slices.Clone(n.Spec.Taints), cordoned)
}

// Claim returns the NodeClaim as the world knows it, and false if it belongs to
// another provider.
func (c Converter) Claim(n *v1.NodeClaim) (world.Claim, bool) {
	if !c.Manages(n.Spec.NodeClassRef) {
		return world.Claim{}, false
	}
	terminating := conditions.IsTrue(n, v1.InstanceTerminatingCondition)
	drifted, _ := since(n, v1.DriftedCondition)
	return world.Claim{
		Name: n.Name, UID: string(n.UID), ProviderID: n.Status.ProviderID,
		Labels: c.canonicalLabels(n.Labels), Requirements: c.Requirements(n.Spec.Requirements),
		Taints: taints(v1.CoreTaints(n.Spec.Taints)), StartupTaints: taints(v1.CoreTaints(n.Spec.StartupTaints)),
		Requests: c.Resources(n.Spec.Resources.Requests),
		Capacity: c.Resources(n.Status.Capacity), Allocatable: c.Resources(n.Status.Allocatable),
		Deleting: n.DeletionTimestamp != nil || terminating, Terminating: terminating,
		Consolidatable: conditions.IsTrue(n, v1.ConsolidatableCondition),
		Disrupting:     conditions.IsTrue(n, v1.DisruptionReasonCondition),
		Rebooting:      conditions.IsTrue(n, v1.RebootingCondition),
		Template:       templateOf(n),
		Groups:         podGroupsOf(n),
		Advised:        advised(n),
		Drifted:        drifted, QuietSince: quietSince(n), FreshUntil: freshUntil(n), Deadline: n.Spec.TerminationGracePeriod != nil,
		Created: n.CreationTimestamp.Time,
	}, true
}

// podGroupsOf returns the names of the PodGroups that the claim was created for.
func podGroupsOf(n *v1.NodeClaim) []string {
	if n.Annotations[v1.PodGroupsAnnotationKey] == "" {
		return nil
	}
	return strings.Split(n.Annotations[v1.PodGroupsAnnotationKey], ",")
}

// advised returns the time since which the provider recommends replacing the
// node, or the zero time if it does not or the time cannot be read.
func advised(n *v1.NodeClaim) time.Time {
	at, err := time.Parse(time.RFC3339, n.Annotations[v1.RebalanceRecommendedAnnotationKey])
	if err != nil {
		return time.Time{}
	}
	return at
}

// templateOf returns the hash of the template that the claim was made from, or
// "" if the hash has another version.
func templateOf(n *v1.NodeClaim) string {
	if n.Annotations[v1.NodePoolHashVersionAnnotationKey] != v1.NodePoolHashVersion {
		return ""
	}
	return n.Annotations[v1.NodePoolHashAnnotationKey]
}

// since returns when the condition became true, and false if the condition is
// not true.
func since(n *v1.NodeClaim, condition string) (time.Time, bool) {
	c := conditions.Get(n, condition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// quietSince returns when a pod last came to or left the node, if any has, or
// else when it was initialized; the zero time before that.
func quietSince(n *v1.NodeClaim) time.Time {
	initialized, ok := since(n, v1.InitializedCondition)
	if !ok || n.Status.LastPodEventTime.IsZero() {
		return initialized
	}
	return n.Status.LastPodEventTime.Time
}

// Pool returns the NodePool as the world knows it, and false if it belongs to
// another provider.
func (c Converter) Pool(p *v1.NodePool) (world.Pool, bool) {
	template := &p.Spec.Template
	if !c.Manages(template.Spec.NodeClassRef) {
		return world.Pool{}, false
	}
	aims, _ := Aims(p) // what cannot be read is reported where the pool's prices are
	return world.Pool{
		Name: p.Name, Weight: p.WeightValue(), Drift: driftOf(p),
		Requirements: c.Requirements(template.Spec.Requirements).And(c.selector(templateLabels(p))...),
		Taints:       taints(v1.CoreTaints(template.Spec.Taints)),
		Limits:       c.limits(p.Spec.Limits),
		Unavailable:  c.unavailable(p),
		Template:     p.Hash(),
		Replicas:     replicas(p),
		Aims:         aims,

		Policy:           model.ConsolidationPolicy(p.Spec.Disruption.ConsolidationPolicy),
		ConsolidateAfter: ptr.Deref(p.Spec.Disruption.ConsolidateAfter.Duration, 0),
		Never:            p.Spec.Disruption.ConsolidateAfter.Duration == nil,
		Allowed:          allowed(p),
	}, true
}

// driftOf returns whether the pool's roll-out is halted.
func driftOf(p *v1.NodePool) world.Drift {
	switch c := conditions.Get(p, v1.RolloutHaltedCondition); {
	case c == nil || c.Status == metav1.ConditionFalse:
		return world.Free
	case c.Status == metav1.ConditionTrue:
		return world.Halted
	}
	return world.Probing
}

// templateLabels returns the labels every NodeClaim of the pool gets.
func templateLabels(p *v1.NodePool) map[string]string {
	out := map[string]string{}
	for k, v := range p.Spec.Template.Labels {
		out[k] = v
	}
	if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil {
		out[v1.NodeClassLabelKey(ref.GroupKind())] = ref.Name
	}
	out[v1.NodePoolLabelKey] = p.Name
	return out
}

func (c Converter) limits(limits v1.Limits) []model.Limit {
	out := make([]model.Limit, 0, len(limits))
	for name, q := range limits {
		i := c.Axis.Index(string(name))
		out = append(out, model.Limit{Resource: i, Max: amount(i, q)})
	}
	slices.SortFunc(out, func(a, b model.Limit) int { return cmp.Compare(a.Resource, b.Resource) })
	return out
}

// unavailable returns why the pool launches nothing for pods.
func (c Converter) unavailable(p *v1.NodePool) string {
	switch {
	case p.DeletionTimestamp != nil:
		return "being deleted"
	case unreadable.Error(p) != nil:
		return "not valid: " + unreadable.Error(p).Error()
	case p.IsStatic():
		return c.static(p)
	case !conditions.IsTrue(p, v1.ReadyCondition):
		return "not ready"
	}
	return ""
}

// allowed returns a function that evaluates the pool's current budgets at a
// given time. Budgets that cannot be parsed allow no disruption.
func allowed(p *v1.NodePool) func(time.Time, int, model.Reason) int {
	budgets := &v1.NodePool{}
	budgets.Name, budgets.Annotations = p.Name, maps.Clone(p.Annotations)
	budgets.Spec.Disruption.Budgets = p.Spec.Disruption.DeepCopy().Budgets
	return func(now time.Time, total int, reason model.Reason) int {
		n, err := budgets.AllowedDisruptions(now, total, v1.DisruptionReason(reason))
		if err != nil {
			return 0
		}
		return n
	}
}

// payback is how long a replacement node is kept at least before it can be
// replaced itself. The minimum saving of a replacement pays for the replacement
// within this time.
const payback = time.Hour

// freshUntil returns when a NodeClaim that was made to replace underutilized
// nodes may be replaced itself; zero for any other.
func freshUntil(n *v1.NodeClaim) time.Time {
	if n.Annotations[v1.ReplacesAnnotationKey] != strings.ToLower(string(model.Underutilized)) {
		return time.Time{}
	}
	return n.CreationTimestamp.Add(payback)
}
