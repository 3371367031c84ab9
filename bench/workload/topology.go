// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// topology adds deployments of mixed sizes, a quarter of them each spread over
// zones, spread over nodes, kept in one zone, and kept apart from each other.
// Constraints are among the pods of one deployment.
func (w *Workload) topology(rng *rand.Rand, deployments, pods int) {
	for i := range deployments {
		cpu, memory := size(rng)
		kind := [...]func(string, *corev1.PodSpec){zoneSpread, nodeSpread, zoneAffinity, antiAffinity}[i%4]
		w.add(rng, 1, pods/deployments, func(int) func(string, *corev1.PodSpec) { return kind })
		d := &w.Deployments[len(w.Deployments)-1]
		d.Name, d.CPU, d.Memory = "app-"+string(rune('a'+i/26))+string(rune('a'+i%26)), cpu, memory
	}
}

func zoneSpread(name string, s *corev1.PodSpec) {
	s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread(name, corev1.LabelTopologyZone)}
}

func nodeSpread(name string, s *corev1.PodSpec) {
	s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread(name, corev1.LabelHostname)}
}

func spread(name, key string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector(name),
	}
}

func zoneAffinity(name string, s *corev1.PodSpec) {
	s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelTopologyZone, LabelSelector: selector(name)}},
	}}
}

func antiAffinity(name string, s *corev1.PodSpec) {
	s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selector(name)}},
	}}
}

func selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{Label: name}}
}
