// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
	"karpenter/bench/workload"
)

// unknownResources draws pods that can't run, each for a reason of its own, and
// others that have nothing to do with them.
func (p *problem) unknownResources() {
	p.apart = true
	p.few("stuck", p.Case.Deployments, func(name string, s *corev1.PodSpec) {
		s.Containers[0].Resources.Requests[corev1.ResourceName("example.com/"+name)] = resource.MustParse("1")
	})
	const ordinary = 30
	p.few("app", ordinary, nil)
}

// manySpreads draws pods with thousands of spread constraints. Each has a
// topology key of its own that no node has, so that all of them that are
// required can't be met.
func (p *problem) manySpreads() {
	p.apart = true
	const pods, each = 10, 3
	when := corev1.ScheduleAnyway
	if p.IntN(2) == 0 {
		when = corev1.DoNotSchedule
	}
	p.few("app", pods, func(name string, s *corev1.PodSpec) {
		for i := range each * p.Case.Deployments {
			spread(fmt.Sprintf("example.com/level-%04d", i), 1, when)(name, s)
		}
	})
}

// openLabels draws a NodePool whose nodes can get hundreds of values of two
// labels, and pods spread over both.
func (p *problem) openLabels() {
	p.apart = true
	values := max(3*p.Case.Deployments/10, 2)
	var rules []rule
	for _, key := range []string{"example.com/rack", "example.com/shelf"} {
		all := make([]string, values)
		for i := range all {
			all[i] = fmt.Sprintf("v%03d", i)
		}
		for _, pool := range p.Pools {
			pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: all,
			})
		}
		rules = append(rules, spread(key, 1, corev1.DoNotSchedule))
	}
	const replicas = 20
	p.Workload.Deployments = append(p.Workload.Deployments, workload.Deployment{
		Name: "app-0000", Replicas: replicas, CPU: 1000, Memory: 1024, Constrain: all(rules...),
	})
}

// manyTerms draws pods that accept one of many alternatives and prefer others.
func (p *problem) manyTerms() {
	p.deploy(func() rule {
		const alternatives, preferences = 60, 100
		n := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}
		for range alternatives {
			t := corev1.NodeSelectorTerm{MatchExpressions: p.expressions()}
			n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = append(n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, t)
		}
		for range preferences {
			t := corev1.PreferredSchedulingTerm{Weight: 1 + p.Int32N(100), Preference: corev1.NodeSelectorTerm{MatchExpressions: p.expressions()}}
			n.PreferredDuringSchedulingIgnoredDuringExecution = append(n.PreferredDuringSchedulingIgnoredDuringExecution, t)
		}
		return func(_ string, s *corev1.PodSpec) { affinity(s).NodeAffinity = n }
	})
}

// expressions draws a zone and a list of instance types.
func (p *problem) expressions() []corev1.NodeSelectorRequirement {
	const listed = 8
	var types []string
	for range listed {
		types = append(types, p.Entries[p.IntN(len(p.Entries))].Name)
	}
	return []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{zones()[p.IntN(3)]}},
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: types},
	}
}
