// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/cloud/ec2"
)

// instanceLabels returns the labels that instances of all types have.
func instanceLabels() []string {
	var out []string
	for _, name := range []string{"category", "family", "generation", "size", "cpu", "memory", "cpu-manufacturer", "hypervisor", "network-bandwidth", "ebs-bandwidth"} {
		out = append(out, ec2.LabelDomain+"/instance-"+name)
	}
	return append(out, corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, v1.CapacityTypeLabelKey, corev1.LabelArchStable, corev1.LabelOSStable)
}

// longTerms draws 50 node affinity terms that list 50 values each or bound numbers
// from both sides.
func (p *problem) longTerms() rule {
	const alternatives, listed = 50, 50
	s := &corev1.NodeSelector{}
	for range alternatives {
		var e []corev1.NodeSelectorRequirement
		if p.IntN(2) == 0 {
			var names []string
			for range listed {
				names = append(names, p.Entries[p.IntN(len(p.Entries))].Name)
			}
			e = append(e, corev1.NodeSelectorRequirement{Key: corev1.LabelInstanceTypeStable, Operator: []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}[p.IntN(2)], Values: names})
		} else {
			low := 1 + p.IntN(8)
			e = append(e,
				corev1.NodeSelectorRequirement{Key: ec2.LabelDomain + "/instance-cpu", Operator: corev1.NodeSelectorOpGt, Values: []string{fmt.Sprint(low)}},
				corev1.NodeSelectorRequirement{Key: ec2.LabelDomain + "/instance-cpu", Operator: corev1.NodeSelectorOpLt, Values: []string{fmt.Sprint(low + 2 + p.IntN(60))}},
				corev1.NodeSelectorRequirement{Key: ec2.LabelDomain + "/instance-memory", Operator: corev1.NodeSelectorOpGt, Values: []string{fmt.Sprint(1024 * (1 + p.IntN(60)))}})
		}
		e = append(e, corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{zones()[p.IntN(3)]}})
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: e})
	}
	return func(_ string, spec *corev1.PodSpec) { node(spec).RequiredDuringSchedulingIgnoredDuringExecution = s }
}

// node returns the pod spec's node affinity, which is made if it is missing.
func node(s *corev1.PodSpec) *corev1.NodeAffinity {
	a := affinity(s)
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	return a.NodeAffinity
}

// ownLabels draws ten preferred labels, which NodePools leave open or no one knows.
func (p *problem) ownLabels() rule {
	const preferred = 10
	var terms []corev1.PreferredSchedulingTerm
	open := p.IntN(2) == 0
	for i := range preferred {
		key := fmt.Sprintf("example.com/k%d", p.IntN(1_000_000))
		if open {
			key = fmt.Sprintf("example.com/open-%d", i)
		}
		terms = append(terms, corev1.PreferredSchedulingTerm{Weight: 1 + p.Int32N(100), Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{fmt.Sprintf("v%d", p.IntN(1000))}},
		}}})
	}
	return func(_ string, s *corev1.PodSpec) {
		node(s).PreferredDuringSchedulingIgnoredDuringExecution = append(node(s).PreferredDuringSchedulingIgnoredDuringExecution, terms...)
	}
}

// manyKeys draws spread over all labels of instances, for a few of them required.
func (p *problem) manyKeys() rule {
	var rules []rule
	for _, key := range append(instanceLabels(), corev1.LabelHostname, v1.NodePoolLabelKey, "example.com/none-1", "example.com/open-1", "example.com/open-2") {
		when := corev1.ScheduleAnyway
		if p.IntN(6) == 0 && !strings.HasPrefix(key, "example.com/") {
			when = corev1.DoNotSchedule
		}
		rules = append(rules, spread(key, 1+p.Int32N(3), when))
	}
	return all(rules...)
}

// versions draws up to three spread constraints with all fields set.
func (p *problem) versions() rule {
	var list []corev1.TopologySpreadConstraint
	for range 1 + p.IntN(3) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: 1 + p.Int32N(3), TopologyKey: []string{corev1.LabelTopologyZone, corev1.LabelHostname, v1.CapacityTypeLabelKey, ec2.LabelDomain + "/instance-family"}[p.IntN(4)],
			WhenUnsatisfiable:  []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}[p.IntN(2)],
			NodeAffinityPolicy: new([]corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}[p.IntN(2)]),
			NodeTaintsPolicy:   new([]corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}[p.IntN(2)]),
			MatchLabelKeys:     []string{"pod-template-hash"},
		}
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && p.IntN(2) == 0 {
			c.MinDomains = new(1 + p.Int32N(5))
		}
		if slices.ContainsFunc(list, func(o corev1.TopologySpreadConstraint) bool {
			return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			continue
		}
		list = append(list, c)
	}
	return func(name string, s *corev1.PodSpec) {
		for _, c := range list {
			c.LabelSelector = selecting(name)
			s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, c)
		}
	}
}

// everyPod draws a constraint on all pods of all namespaces.
func (p *problem) everyPod() rule {
	term := corev1.PodAffinityTerm{TopologyKey: []string{corev1.LabelHostname, corev1.LabelTopologyZone}[p.IntN(2)], LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}}
	w := []corev1.WeightedPodAffinityTerm{{Weight: 1 + p.Int32N(100), PodAffinityTerm: term}}
	switch kind := p.IntN(20); {
	case kind == 0:
		term.TopologyKey = corev1.LabelHostname
		return func(_ string, s *corev1.PodSpec) {
			affinity(s).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		}
	case kind < 5:
		return func(_ string, s *corev1.PodSpec) {
			affinity(s).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		}
	case kind < 10:
		return func(_ string, s *corev1.PodSpec) {
			affinity(s).PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: w}
		}
	case kind < 15:
		return func(_ string, s *corev1.PodSpec) {
			affinity(s).PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: w}
		}
	}
	return func(_ string, s *corev1.PodSpec) {
		s.TopologySpreadConstraints = append(s.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: term.TopologyKey, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{},
		})
	}
}

// itself draws pods with affinity to each other that are spread, too.
func (p *problem) itself() rule {
	switch p.IntN(4) {
	case 0:
		return func(name string, s *corev1.PodSpec) {
			near(corev1.LabelTopologyZone, name)(name, s)
			spread(corev1.LabelHostname, 1, corev1.DoNotSchedule)(name, s)
		}
	case 1:
		return func(name string, s *corev1.PodSpec) { near(corev1.LabelHostname, name)(name, s) }
	case 2:
		return func(name string, s *corev1.PodSpec) {
			near(v1.CapacityTypeLabelKey, name)(name, s)
			spread(corev1.LabelTopologyZone, 1, corev1.DoNotSchedule)(name, s)
		}
	}
	return func(name string, s *corev1.PodSpec) {
		near(corev1.LabelTopologyZone, name)(name, s)
		spread(corev1.LabelTopologyZone, 2, corev1.DoNotSchedule)(name, s)
		spread(corev1.LabelHostname, 1, corev1.ScheduleAnyway)(name, s)
	}
}

// addresses draws 20 host ports, some on one address of the host.
func (p *problem) addresses() rule {
	var list []corev1.ContainerPort
	for range 20 {
		port := 30000 + p.Int32N(100)
		c := corev1.ContainerPort{ContainerPort: port, HostPort: port, Protocol: []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}[p.IntN(3)],
			HostIP: []string{"", "0.0.0.0", "::", "127.0.0.1", "10.0.0.1", "fe80::1"}[p.IntN(6)]}
		if !slices.ContainsFunc(list, func(o corev1.ContainerPort) bool { return o.HostPort == c.HostPort }) {
			list = append(list, c)
		}
	}
	return func(_ string, s *corev1.PodSpec) { s.Containers[0].Ports = append(s.Containers[0].Ports, list...) }
}

// tolerant draws a thousand tolerations.
func (p *problem) tolerant() rule {
	var list []corev1.Toleration
	for range 1000 {
		list = append(list, corev1.Toleration{Key: fmt.Sprintf("example.com/taint-%d", p.IntN(1200)), Operator: corev1.TolerationOpExists, Effect: []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}[p.IntN(3)]})
	}
	return func(_ string, s *corev1.PodSpec) { s.Tolerations = append(s.Tolerations, list...) }
}

// web draws affinity to and anti-affinity from a few other Deployments, most of it preferred.
func (p *problem) web() rule {
	var soft, softAnti []corev1.WeightedPodAffinityTerm
	var hardAnti []corev1.PodAffinityTerm
	other := func() *metav1.LabelSelector { return selecting(fmt.Sprintf("app-%04d", p.IntN(p.Case.Deployments))) }
	for range 5 {
		soft = append(soft, corev1.WeightedPodAffinityTerm{Weight: 1 + p.Int32N(100), PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: []string{corev1.LabelHostname, corev1.LabelTopologyZone}[p.IntN(2)], LabelSelector: other()}})
		softAnti = append(softAnti, corev1.WeightedPodAffinityTerm{Weight: 1 + p.Int32N(100), PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: []string{corev1.LabelHostname, corev1.LabelTopologyZone}[p.IntN(2)], LabelSelector: other()}})
	}
	for range p.IntN(4) {
		hardAnti = append(hardAnti, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: other()})
	}
	return func(_ string, s *corev1.PodSpec) {
		affinity(s).PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: soft}
		affinity(s).PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: softAnti, RequiredDuringSchedulingIgnoredDuringExecution: hardAnti}
	}
}

// tier draws anti-affinity from the pods of two of the tiers that labels tell.
func (p *problem) tier() rule {
	other := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{fmt.Sprint(p.IntN(20)), fmt.Sprint(p.IntN(20))}}}}
	return func(_ string, s *corev1.PodSpec) {
		affinity(s).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: other}}}
	}
}

// extended draws a request for devices, huge pages or disk.
func (p *problem) extended() rule {
	name := []string{"nvidia.com/gpu", "nvidia.com/gpu", "hugepages-2Mi", "example.com/fpga", "ephemeral-storage", "vpc.amazonaws.com/pod-eni", "aws.amazon.com/neuron"}[p.IntN(7)]
	amount := map[string]string{"hugepages-2Mi": "64Mi", "ephemeral-storage": "10Gi"}[name]
	if amount == "" {
		amount = fmt.Sprint(1 + p.IntN(4))
	}
	return func(_ string, s *corev1.PodSpec) {
		s.Containers[0].Resources.Requests[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
}

// boundless draws a request for more, or for less, than makes sense.
func (p *problem) boundless() rule {
	name := []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "ephemeral-storage", "example.com/x"}[p.IntN(5)]
	amount := []string{"9223372036854775807", "9E", "9223372036854775", "1e18", "1e30", "1n", "1u", "4611686018427387904"}[p.IntN(8)]
	return func(_ string, s *corev1.PodSpec) {
		s.Containers[0].Resources.Requests[name] = resource.MustParse(amount)
	}
}

// hosts draws 200 names of nodes that pods must or must not be on.
func (p *problem) hosts() rule {
	var names []string
	for range 200 {
		names = append(names, fmt.Sprintf("%s-%05d", []string{"general", "arm", "batch"}[p.IntN(3)], p.IntN(max(p.Nodes, 1))))
	}
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}[p.IntN(2)], Values: names}}}
	if p.IntN(3) == 0 {
		term = corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: names[:1]}}}
	}
	soft := p.IntN(2) == 0
	return func(_ string, s *corev1.PodSpec) {
		if soft {
			node(s).PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 50, Preference: term}}
			return
		}
		node(s).RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
	}
}

// chart draws the default affinity of a chart that many clusters install.
func (p *problem) chart() rule {
	weighted := func(weight int32, key string) rule {
		return func(name string, s *corev1.PodSpec) {
			a := affinity(s)
			if a.PodAntiAffinity == nil {
				a.PodAntiAffinity = &corev1.PodAntiAffinity{}
			}
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{
				Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: selecting(name)},
			})
		}
	}
	linux := labelled(corev1.LabelOSStable, "linux")
	kinds := []rule{
		all(linux),                        // ingress-nginx
		weighted(1, corev1.LabelHostname), // bitnami: podAntiAffinityPreset soft
		apart(),                           // elasticsearch
		all(apart(), spread(corev1.LabelTopologyZone, 1, corev1.DoNotSchedule)), // cockroach, consul
		all(weighted(100, corev1.LabelTopologyZone), apart()),                   // coredns of EKS
		istio, // istio: archs weighted
		all(weighted(100, corev1.LabelHostname), spread(corev1.LabelTopologyZone, 1, corev1.ScheduleAnyway)),
		all(spread(corev1.LabelHostname, 1, corev1.ScheduleAnyway), spread(corev1.LabelTopologyZone, 1, corev1.DoNotSchedule)),
		func(name string, s *corev1.PodSpec) { // airflow workers: near their release
			weighted(100, corev1.LabelHostname)(name, s)
			linux(name, s)
		},
		func(name string, s *corev1.PodSpec) { // kafka: near zookeeper, apart from themselves
			apart()(name, s)
			affinity(s).PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
				{Weight: 50, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selecting("app-0000")}},
			}}
		},
		func(name string, s *corev1.PodSpec) { // spark executors: with the driver in one zone
			near(corev1.LabelTopologyZone, name)(name, s)
		},
		all(),
	}
	return kinds[p.IntN(len(kinds))]
}

// istio prefers four architectures alike, and demands one of them.
func istio(_ string, s *corev1.PodSpec) {
	n := node(s)
	n.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64", "arm64", "ppc64le", "s390x"}},
	}}}}
	for _, arch := range []string{"amd64", "arm64", "ppc64le", "s390x"} {
		n.PreferredDuringSchedulingIgnoredDuringExecution = append(n.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: 2, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}}}},
		})
	}
}
