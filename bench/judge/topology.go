package judge

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"karpenter/bench/workload"
)

// site is a node of the plan, old or new, with what was put there.
type site struct {
	name string
	zone string // "" = not settled: its machine may be in several
	many bool   // the zone is not settled
	node *corev1.Node
	pods []*asked
}

// could notes a machine the site may become.
func (s *site) could(n *corev1.Node) {
	zone := n.Labels[corev1.LabelTopologyZone]
	switch {
	case s.node == nil:
		s.node, s.zone = n, zone
	case s.zone != zone:
		s.zone, s.many = "", true
	}
}

// domain returns the value of the topology key, or "" when it is not settled.
func (s *site) domain(key string) string {
	if key == corev1.LabelHostname {
		return s.name
	}
	return s.zone
}

// topology checks required spread and affinity among the pods placed, in what
// the plan ends at. Constraints are told apart by key and selector. Pods that
// were bound before are not selected by any in the workloads there are.
func (j *Judge) topology() {
	done := map[string]bool{}
	for i := range j.sites {
		for _, a := range j.sites[i].pods {
			for _, c := range a.pod.Spec.TopologySpreadConstraints {
				if id := "spread " + c.TopologyKey + metav1.FormatLabelSelector(c.LabelSelector); !done[id] {
					done[id] = true
					j.spread(a, c)
				}
			}
			for _, t := range affinityTerms(a.pod) {
				if id := "affinity " + t.TopologyKey + metav1.FormatLabelSelector(t.LabelSelector); !done[id] {
					done[id] = true
					j.affinity(a, t)
				}
			}
			for _, t := range antiAffinityTerms(a.pod) {
				if id := "anti " + t.TopologyKey + metav1.FormatLabelSelector(t.LabelSelector); !done[id] {
					done[id] = true
					j.apart(a, t)
				}
			}
		}
	}
}

func affinityTerms(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func antiAffinityTerms(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// count returns how many selected pods each domain has. Domains without any
// count when the pod could run on some node there.
func (j *Judge) count(a *asked, key string, selects *metav1.LabelSelector) map[string]int {
	selector, err := metav1.LabelSelectorAsSelector(selects)
	if err != nil {
		j.fault("selector of pod %s: %v", Key(a.pod), err)
		return nil
	}
	out := map[string]int{}
	for i := range j.sites {
		s := &j.sites[i]
		n := 0
		for _, b := range s.pods {
			if b.pod.Namespace == a.pod.Namespace && selector.Matches(labels.Set(b.pod.Labels)) {
				n++
			}
		}
		domain := s.domain(key)
		if domain == "" && n > 0 {
			j.fault("%s has pods that need a settled %s", s.name, key)
		} else if n > 0 || (domain != "" && s.node != nil && workload.Accepts(s.node, a.pod)) {
			out[domain] += n
		}
	}
	return out
}

func (j *Judge) spread(a *asked, c corev1.TopologySpreadConstraint) {
	if c.WhenUnsatisfiable != corev1.DoNotSchedule {
		return
	}
	counts := j.count(a, c.TopologyKey, c.LabelSelector)
	if len(counts) == 0 {
		return
	}
	values := slices.Collect(maps.Values(counts))
	if skew := slices.Max(values) - slices.Min(values); skew > int(c.MaxSkew) {
		j.fault("pods like %s are spread over %s with a skew of %d", Key(a.pod), c.TopologyKey, skew)
	}
}

func (j *Judge) affinity(a *asked, t corev1.PodAffinityTerm) {
	some := 0
	for _, n := range j.count(a, t.TopologyKey, t.LabelSelector) {
		if n > 0 {
			some++
		}
	}
	if some > 1 {
		j.fault("pods like %s should share one %s and have %d", Key(a.pod), t.TopologyKey, some)
	}
}

func (j *Judge) apart(a *asked, t corev1.PodAffinityTerm) {
	for domain, n := range j.count(a, t.TopologyKey, t.LabelSelector) {
		if n > 1 {
			j.fault("%d pods like %s share %s %s", n, Key(a.pod), t.TopologyKey, domain)
		}
	}
}
