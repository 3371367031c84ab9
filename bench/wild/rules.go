// SPDX-License-Identifier: Apache-2.0

package wild

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/bench/workload"
	"karpenter/cloud/ec2"
)

// rule changes the pod spec of the Deployment of that name.
type rule = func(name string, s *corev1.PodSpec)

// all applies several rules.
func all(rules ...rule) rule {
	return func(name string, s *corev1.PodSpec) {
		for _, r := range rules {
			r(name, s)
		}
	}
}

func selecting(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{workload.Label: name}}
}

// spread spreads a Deployment's pods over the domains of a topology key.
func spread(key string, skew int32, when corev1.UnsatisfiableConstraintAction) rule {
	return func(name string, s *corev1.PodSpec) {
		s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: when, LabelSelector: selecting(name),
		})
	}
}

// apart keeps a Deployment's pods on different nodes.
func apart() rule {
	return func(name string, s *corev1.PodSpec) {
		term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selecting(name)}
		affinity(s).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	}
}

// preferApart prefers a Deployment's pods to be in different domains of each
// topology key, the first one most.
func preferApart(keys ...string) rule {
	return func(name string, s *corev1.PodSpec) {
		anti := &corev1.PodAntiAffinity{}
		for i, key := range keys {
			anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{
				Weight: 100 / int32(i+1), PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: selecting(name)},
			})
		}
		affinity(s).PodAntiAffinity = anti
	}
}

// affinity returns the pod spec's affinity, which is made if it is missing.
func affinity(s *corev1.PodSpec) *corev1.Affinity {
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	return s.Affinity
}

// labelled demands a label of the node.
func labelled(key, value string) rule {
	return func(_ string, s *corev1.PodSpec) {
		if s.NodeSelector == nil {
			s.NodeSelector = map[string]string{}
		}
		s.NodeSelector[key] = value
	}
}

// inZones demands one of the zones.
func inZones(zones ...string) rule {
	return func(_ string, s *corev1.PodSpec) {
		affinity(s).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones},
			}}},
		}}
	}
}

// zones returns the names of all zones.
func zones() []string {
	return []string{workload.Region + "a", workload.Region + "b", workload.Region + "c"}
}

// onBatch sends pods to the tainted pool.
func onBatch() rule {
	return all(labelled(workload.BatchLabel, workload.Batch), func(_ string, s *corev1.PodSpec) {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{
			Key: workload.BatchTaint, Operator: corev1.TolerationOpEqual, Value: workload.Batch, Effect: corev1.TaintEffectNoSchedule,
		})
	})
}

func onArm() rule { return labelled(corev1.LabelArchStable, v1.ArchitectureArm64) }

func onDemand() rule { return labelled(v1.CapacityTypeLabelKey, v1.CapacityTypeOnDemand) }

func inCategory(category string) rule {
	return labelled(ec2.LabelDomain+"/instance-category", category)
}
