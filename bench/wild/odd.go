// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/bench/workload"
	"karpenter/cloud/ec2"
)

// manyPools adds NodePools that differ in zones, weights and limits.
func (p *problem) manyPools(count int) {
	for i := range count {
		pool := p.Pools[0].DeepCopy()
		pool.Name = fmt.Sprintf("team-%03d", i)
		pool.UID = types.UID("pool-" + pool.Name)
		pool.Spec.Weight = new(1 + p.Int32N(100))
		pool.Spec.Limits = v1.Limits{corev1.ResourceCPU: *resource.NewQuantity(int64(8+p.IntN(400)), resource.DecimalSI)}
		if p.IntN(3) == 0 {
			pool.Spec.Limits["nodes"] = *resource.NewQuantity(int64(1+p.IntN(5)), resource.DecimalSI)
		}
		if p.IntN(2) == 0 {
			pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
				Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones()[:1+p.IntN(3)],
			})
		}
		p.Pools = append(p.Pools, pool)
	}
}

// tenants gives every four Deployments a NodePool of their own, with a taint, a label and a
// limit, which some of them reach.
func (p *problem) tenants() {
	const label = "example.com/tenant"
	n := 0
	for i := range (p.Case.Deployments + 3) / 4 {
		name := fmt.Sprintf("tenant-%03d", i)
		pool := p.Pools[0].DeepCopy()
		pool.Name, pool.UID = name, types.UID("pool-"+name)
		pool.Spec.Weight = nil
		pool.Spec.Limits = v1.Limits{corev1.ResourceCPU: *resource.NewQuantity(int64(16+p.IntN(1000)), resource.DecimalSI)}
		pool.Spec.Template.Labels = map[string]string{label: name}
		pool.Spec.Template.Spec.Taints = []v1.Taint{{Key: label, Value: name, Effect: corev1.TaintEffectNoSchedule}}
		p.Pools = append(p.Pools, pool)
	}
	p.deploy(func() rule {
		name := fmt.Sprintf("tenant-%03d", n/4)
		n++
		return all(p.mixedRule(), func(_ string, s *corev1.PodSpec) {
			if s.NodeSelector == nil {
				s.NodeSelector = map[string]string{}
			}
			s.NodeSelector[label] = name
			s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: label, Value: name, Effect: corev1.TaintEffectNoSchedule})
		})
	})
}

// singles draws Deployments of one pod, half of which keep away from their like, as many
// charts have it by default.
func (p *problem) singles() {
	for i := range podsPerDeployment * p.Case.Deployments {
		d := workload.Deployment{Name: fmt.Sprintf("app-%05d", i), Replicas: 1, Constrain: p.mixedRule()}
		if p.IntN(2) == 0 {
			d.Constrain = apart()
		}
		d.CPU, d.Memory = p.size()
		p.Workload.Deployments = append(p.Workload.Deployments, d)
	}
}

// manyDaemons adds DaemonSets of which each runs on some nodes.
func (p *problem) manyDaemons(count int) {
	for i := range count {
		d := p.Daemons[0].DeepCopy()
		d.Name = fmt.Sprintf("daemon-%03d", i)
		d.UID = types.UID("daemon-" + d.Name)
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(1+p.IntN(20)), resource.DecimalSI), "memory": *resource.NewQuantity(int64(1+p.IntN(20))<<20, resource.BinarySI)}
		labelled([]string{ec2.LabelDomain + "/instance-family", ec2.LabelDomain + "/instance-category", corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone}[p.IntN(4)],
			[]string{"c", "m", "r", "m7i", "c7g", "m6i.2xlarge", zones()[0], zones()[1]}[p.IntN(8)])("", &d.Spec.Template.Spec)
		p.Daemons = append(p.Daemons, d)
	}
}

// kitchen draws up to three odd rules for each Deployment, and 20 more NodePools.
func (p *problem) kitchen() {
	p.openPools()
	p.manyPools(20)
	kinds := []func() rule{
		p.longTerms, p.ownLabels, p.manyKeys, p.versions, p.everyPod, p.itself, p.addresses, p.tolerant, p.web, p.tier, p.extended, p.hosts, p.chart, p.mixedRule,
	}
	p.deploy(func() rule {
		var rules []rule
		for range p.IntN(4) {
			rules = append(rules, kinds[p.IntN(len(kinds))]())
		}
		return all(append(rules, p.placeRule())...)
	})
	p.label()
	for i := range p.Workload.Deployments {
		if p.IntN(2) == 0 {
			p.Workload.Deployments[i].Namespace = fmt.Sprintf("ns-%d", p.IntN(100))
		}
	}
}

// label gives the pods of each Deployment the label of its hash and one of 20 tiers.
func (p *problem) label() {
	for i := range p.Workload.Deployments {
		p.Workload.Deployments[i].Labels = map[string]string{"tier": fmt.Sprint(p.IntN(20)), "pod-template-hash": fmt.Sprint("h", i)}
	}
}

// spaces gives each Deployment a namespace of its own.
func (p *problem) spaces() {
	for i := range p.Workload.Deployments {
		p.Workload.Deployments[i].Namespace = fmt.Sprintf("ns-%d", i)
	}
}

// openPools has every NodePool leave ten labels open.
func (p *problem) openPools() {
	for _, pool := range p.Pools {
		for i := range 10 {
			pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
				Key: fmt.Sprintf("example.com/open-%d", i), Operator: corev1.NodeSelectorOpExists,
			})
		}
	}
}

// manyTaints gives every NodePool 300 taints, and pods a thousand tolerations, with which
// a third of the Deployments tolerate all of them.
func (p *problem) manyTaints() {
	for i, pool := range p.Pools {
		for k := range 300 {
			pool.Spec.Template.Spec.Taints = append(pool.Spec.Template.Spec.Taints, v1.Taint{Key: fmt.Sprintf("example.com/taint-%d", i*300+k), Effect: corev1.TaintEffectNoSchedule})
		}
	}
	odd(func(p *problem) rule {
		if p.IntN(3) > 0 {
			return p.tolerant()
		}
		return func(_ string, s *corev1.PodSpec) {
			for k := range 1000 {
				s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: fmt.Sprintf("example.com/taint-%d", k), Operator: corev1.TolerationOpExists})
			}
		}
	})(p)
}

// manyMinValues has every NodePool demand several values of four labels.
func (p *problem) manyMinValues() {
	for _, pool := range p.Pools {
		for _, m := range []struct {
			key   string
			least int
		}{{corev1.LabelInstanceTypeStable, 11}, {ec2.LabelDomain + "/instance-family", 1}, {corev1.LabelTopologyZone, 3}, {ec2.LabelDomain + "/instance-cpu", 1}} {
			pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
				Key: m.key, Operator: corev1.NodeSelectorOpExists, MinValues: new(m.least),
			})
		}
	}
	p.apart = true
	p.mix()
}

// odd draws Deployments of all sizes, each with a rule, for NodePools that leave labels
// open.
func odd(draw func(*problem) rule) func(*problem) {
	return func(p *problem) {
		p.apart = true
		p.openPools()
		p.deploy(func() rule { return draw(p) })
		p.label()
	}
}

// oddFamilies returns families of what few workloads have, but the API server accepts.
func oddFamilies() []family {
	return []family{
		{name: "odd-terms", about: "50 node affinity terms of 50 values each", draw: odd((*problem).longTerms)},
		{name: "odd-labels", about: "ten preferred labels that NodePools leave open", draw: odd((*problem).ownLabels)},
		{name: "odd-keys", about: "spread over 20 topology keys, some of it required", draw: odd((*problem).manyKeys)},
		{name: "odd-versions", about: "spread constraints with all fields set", draw: odd((*problem).versions)},
		{name: "odd-everypod", about: "constraints on all pods of all namespaces", draw: func(p *problem) { odd((*problem).everyPod)(p); p.spaces() }},
		{name: "odd-itself", about: "pods with affinity to each other that are spread, too", draw: odd((*problem).itself)},
		{name: "odd-addresses", about: "20 host ports per pod, some on one address", draw: odd((*problem).addresses)},
		{name: "odd-tolerant", about: "a thousand tolerations per pod, 300 taints per NodePool", draw: (*problem).manyTaints},
		{name: "odd-web", about: "affinity to and anti-affinity from a few other Deployments", draw: odd((*problem).web)},
		{name: "odd-tier", about: "anti-affinity from all pods of two of 20 tiers", draw: odd((*problem).tier)},
		{name: "odd-trees", about: "required affinity to the zone or hosts of an earlier Deployment", draw: (*problem).trees},
		{name: "odd-extended", about: "requests for devices, huge pages or disk", draw: odd((*problem).extended)},
		{name: "odd-boundless", about: "half of the Deployments request up to the largest number there is", draw: odd(func(p *problem) rule {
			if p.IntN(2) == 0 {
				return all()
			}
			return p.boundless()
		})},
		{name: "odd-hosts", about: "200 names of nodes per pod", draw: odd((*problem).hosts)},
		{name: "odd-chart", about: "default affinities of common charts", draw: odd((*problem).chart)},
		{name: "odd-pools", about: "as mix, with 100 more NodePools that have limits and weights", draw: func(p *problem) { p.manyPools(100); p.apart = true; p.mix() }},
		{name: "odd-pools-helm", about: "as helm, with 100 more NodePools that have limits and weights", draw: func(p *problem) { p.manyPools(100); p.apart = true; p.helm() }},
		{name: "odd-tenants", about: "as mix, with a NodePool of their own for every four Deployments", draw: func(p *problem) { p.apart = true; p.tenants() }},
		{name: "odd-daemons", about: "as mix, with 500 DaemonSets that run on some nodes", draw: func(p *problem) { p.manyDaemons(500); p.apart = true; p.mix() }},
		{name: "odd-priorities", about: "no two pods of the same priority", draw: func(p *problem) {
			p.apart = true
			n := int32(0)
			p.few("app", podsPerDeployment*p.Case.Deployments, func(_ string, s *corev1.PodSpec) { n++; s.Priority = new(n) })
		}},
		{name: "odd-minvalues", about: "as mix, with minValues for four labels in every NodePool", draw: (*problem).manyMinValues},
		{name: "odd-tiny", about: "pods that request nothing", draw: func(p *problem) {
			p.apart = true
			p.few("app", podsPerDeployment*p.Case.Deployments, func(_ string, s *corev1.PodSpec) { s.Containers[0].Resources.Requests = nil })
		}},
		{name: "odd-singles", about: "13 times as many Deployments, of one pod each, half of which keep away from their like", draw: func(p *problem) { p.apart = true; p.singles() }},
		{name: "odd-kitchen", about: "up to three of these constraints per Deployment, with 20 more NodePools", draw: func(p *problem) { p.apart = true; p.kitchen() }},
		{name: "odd-half-kitchen", about: "as odd-kitchen, packed onto nodes, then 30% to 80% of the pods gone", draw: (*problem).kitchen, disruption: true},
		{name: "odd-half-chart", about: "as odd-chart, packed likewise", draw: odd((*problem).chart), disruption: true},
		{name: "odd-half-everypod", about: "as odd-everypod in one namespace, packed likewise", draw: odd((*problem).everyPod), disruption: true},
		{name: "odd-half-keys", about: "as odd-keys, packed likewise", draw: odd((*problem).manyKeys), disruption: true},
		{name: "odd-half-singles", about: "as odd-singles, packed likewise", draw: func(p *problem) { p.apart = true; p.singles() }, disruption: true},
		{name: "odd-half-web", about: "as odd-web, packed likewise", draw: odd((*problem).web), disruption: true},
		{name: "odd-half-labels", about: "as odd-labels, packed likewise", draw: odd((*problem).ownLabels), disruption: true},
		{name: "odd-half-pools", about: "as odd-pools, packed likewise", draw: func(p *problem) { p.manyPools(100); p.mix() }, disruption: true},
		{name: "odd-half-daemons", about: "as mix with 100 DaemonSets, packed likewise", draw: func(p *problem) { p.mix(); p.manyDaemons(100) }, disruption: true},
	}
}
