// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Namespaces the drawn pods live in, with labels.
func namespaces() []*corev1.Namespace {
	var out []*corev1.Namespace
	for name, env := range map[string]string{"default": "prod", "other": "dev", "third": ""} {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
		if env != "" {
			n.Labels["env"] = env
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *corev1.Namespace) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func topologyKeys() []string {
	return []string{
		corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelTopologyZone,
		corev1.LabelHostname, corev1.LabelHostname, corev1.LabelHostname,
		corev1.LabelArchStable, "team",
	}
}

// deployment draws a pod with labels, and copies of it with names of their
// own: what it demands of its peers is what this is about.
func (g dice) deployment(prefix string, copies int) []*corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	p.GenerateName, p.Namespace = prefix+"-", pick(g, "default", "default", "other", "third")
	p.Labels = map[string]string{"app": pick(g, "web", "db"), "version": pick(g, "1", "2")}
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(pick(g, "100m", "100m", "500m", "1", "1500m")),
	}
	if g.maybe(15) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{
			ContainerPort: 80, HostPort: pick[int32](g, 8080, 9090),
			HostIP: pick(g, "", "", "10.0.0.1", "10.0.0.2"), Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolTCP, corev1.ProtocolUDP),
		}}
	}
	if g.maybe(25) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	if g.maybe(25) {
		key := pick(g, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelArchStable, "team")
		p.Spec.NodeSelector = map[string]string{key: pick(g, labelValues(key)[:2]...)}
	}
	p.Spec.Affinity = &corev1.Affinity{}
	if g.maybe(20) {
		p.Spec.Affinity.NodeAffinity = g.whereabouts()
	}
	if g.maybe(50) {
		g.spread(p)
	}
	if g.maybe(55) {
		g.peers(p)
	}
	var out []*corev1.Pod
	for i := range copies {
		one := p.DeepCopy()
		name(one, p.Namespace, fmt.Sprintf("%s%d", p.GenerateName, i))
		out = append(out, one)
	}
	return out
}

// whereabouts draws node affinity with several terms and preferences.
func (g dice) whereabouts() *corev1.NodeAffinity {
	term := func() corev1.NodeSelectorTerm {
		key := pick(g, corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelArchStable, "team")
		operator := pick(g, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: some(g, 50, labelValues(key)...)}}}
	}
	out := &corev1.NodeAffinity{}
	if g.maybe(70) {
		selector := &corev1.NodeSelector{}
		for range 1 + g.IntN(2) {
			t := term()
			if e := &t.MatchExpressions[0]; len(e.Values) == 0 {
				e.Values = labelValues(e.Key)[:1]
			}
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, t)
		}
		out.RequiredDuringSchedulingIgnoredDuringExecution = selector
	}
	for range g.IntN(3) {
		t := term()
		if e := &t.MatchExpressions[0]; len(e.Values) == 0 {
			e.Values = labelValues(e.Key)[:1]
		}
		out.PreferredDuringSchedulingIgnoredDuringExecution = append(out.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: int32(1 + g.IntN(100)), Preference: t})
	}
	return out
}

// spread draws topology spread constraints, as the API server allows them.
func (g dice) spread(p *corev1.Pod) {
	for range pick(g, 1, 1, 1, 2) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: pick[int32](g, 1, 1, 1, 2, 3), TopologyKey: pick(g, topologyKeys()...),
			WhenUnsatisfiable: pick(g, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.DoNotSchedule, corev1.ScheduleAnyway),
			LabelSelector:     g.selecting(p.Labels),
		}
		if slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(d corev1.TopologySpreadConstraint) bool {
			return d.TopologyKey == c.TopologyKey && d.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			continue
		}
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && g.maybe(20) {
			c.MinDomains = ptr.To(pick[int32](g, 1, 2, 3, 4))
		}
		if g.maybe(25) {
			c.NodeAffinityPolicy = ptr.To(pick(g, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyIgnore))
		}
		if g.maybe(25) {
			c.NodeTaintsPolicy = ptr.To(pick(g, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore))
		}
		if g.maybe(20) && c.LabelSelector != nil && !mentions(c.LabelSelector, "version") {
			c.MatchLabelKeys = pick(g, []string{"version"}, []string{"version", "nobody-has-it"})
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

// peers draws affinity to other pods, or against them.
func (g dice) peers(p *corev1.Pod) {
	a := &corev1.PodAffinity{}
	b := &corev1.PodAntiAffinity{}
	for range pick(g, 1, 1, 1, 2) {
		t := g.peerTerm(p)
		weighted := corev1.WeightedPodAffinityTerm{Weight: int32(1 + g.IntN(100)), PodAffinityTerm: t}
		switch pick(g, "affinity", "affinity", "anti", "anti", "anti", "preferred", "avoided") {
		case "affinity":
			a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution, t)
		case "anti":
			b.RequiredDuringSchedulingIgnoredDuringExecution = append(b.RequiredDuringSchedulingIgnoredDuringExecution, t)
		case "preferred":
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, weighted)
		case "avoided":
			b.PreferredDuringSchedulingIgnoredDuringExecution = append(b.PreferredDuringSchedulingIgnoredDuringExecution, weighted)
		}
	}
	p.Spec.Affinity.PodAffinity, p.Spec.Affinity.PodAntiAffinity = a, b
}

func (g dice) peerTerm(p *corev1.Pod) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: pick(g, topologyKeys()...), LabelSelector: g.selecting(p.Labels)}
	if g.maybe(15) {
		t.Namespaces = some(g, 50, "default", "other", "third", "nobody-has-it")
	}
	if g.maybe(15) {
		t.NamespaceSelector = pick(g, &metav1.LabelSelector{}, selecting("env", "prod"), selecting("env", "test"), selecting(corev1.LabelMetadataName, "other"))
	}
	if t.LabelSelector != nil && !mentions(t.LabelSelector, "version") && g.maybe(20) {
		// The API server merges such keys into the selector of the pod it stores.
		operator := metav1.LabelSelectorOpIn
		if g.maybe(60) {
			t.MatchLabelKeys = []string{"version"}
		} else {
			t.MismatchLabelKeys, operator = []string{"version"}, metav1.LabelSelectorOpNotIn
		}
		t.LabelSelector.MatchExpressions = append(t.LabelSelector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: "version", Operator: operator, Values: []string{p.Labels["version"]}})
	}
	return t
}

// selecting draws a selector, more often than not of pods with such labels.
func (g dice) selecting(own map[string]string) *metav1.LabelSelector {
	switch g.IntN(20) {
	case 0:
		return nil
	case 1:
		return &metav1.LabelSelector{}
	case 2:
		return selecting("nobody-has-it", "x")
	case 3, 4, 5:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{pick(g,
			metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}},
			metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{own["app"]}},
			metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpExists},
			metav1.LabelSelectorRequirement{Key: "version", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"1"}},
			metav1.LabelSelectorRequirement{Key: "version", Operator: metav1.LabelSelectorOpDoesNotExist},
		)}}
	case 6, 7, 8, 9:
		return selecting("app", pick(g, "web", "db"))
	case 10, 11:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": own["app"], "version": own["version"]}}
	}
	return selecting("app", own["app"])
}

func mentions(s *metav1.LabelSelector, key string) bool {
	_, ok := s.MatchLabels[key]
	return ok || slices.ContainsFunc(s.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool { return e.Key == key })
}

// streets draws nodes in three zones with pods that run on them. They have
// room for two pods on average.
func (g dice) streets(s *situation, n int) {
	for i := range n {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{}}}
		node.UID = types.UID("uid-" + node.Name)
		if g.maybe(97) {
			node.Labels[corev1.LabelHostname] = fmt.Sprintf("host-%d", i)
		}
		if g.maybe(93) {
			node.Labels[corev1.LabelTopologyZone] = pick(g, zones()...)
		}
		node.Labels[corev1.LabelArchStable] = pick(g, "amd64", "amd64", "arm64")
		if g.maybe(50) {
			node.Labels["team"] = pick(g, "red", "blue")
		}
		if g.maybe(15) {
			node.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: pick(g, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule)}}
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		s.nodes = append(s.nodes, node)
		bound := g.IntN(4)
		for k := range bound {
			p := g.deployment(fmt.Sprintf("bound-%d-%d", i, k), 1)[0]
			p.Spec.NodeName, p.GenerateName = node.Name, ""
			p.Status.Phase = pick(g, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded)
			if g.maybe(10) {
				p.DeletionTimestamp = ptr.To(metav1.NewTime(now().Add(grace)))
			}
			s.pods = append(s.pods, p)
		}
		node.Status.Capacity = corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("8"),
			corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods:   *resource.NewQuantity(int64(bound+g.IntN(5)), resource.DecimalSI),
		}
		node.Status.Allocatable = node.Status.Capacity
	}
}

func zones() []string { return []string{"a", "b", "c"} }

// neighbourhood draws nodes with pods on them, often with room on one alone,
// and one pod that waits.
func (g dice) neighbourhood() *situation {
	s := &situation{namespaces: namespaces()}
	g.streets(s, 1+g.IntN(6))
	if g.maybe(70) {
		open := pick(g, s.nodes...)
		for _, n := range s.nodes {
			if n != open {
				n.Status.Capacity[corev1.ResourcePods] = resource.Quantity{}
			}
		}
	}
	p := g.deployment("pending", 1)[0]
	if a := p.Spec.Affinity.PodAntiAffinity; a != nil && g.maybe(10) {
		for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
			a.RequiredDuringSchedulingIgnoredDuringExecution[i].NamespaceSelector = &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpDoesNotExist}},
			}
		}
	}
	s.pods = append(s.pods, waiting(p)...)
	return s
}

// waiting has the scheduler have found no node for the pods.
func waiting(pods ...*corev1.Pod) []*corev1.Pod {
	for _, p := range pods {
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}
	return pods
}
