// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"karpenter/bench/workload"
)

// template is what a pod template of scheduler_perf asks for, from
// test/integration/scheduler_perf of k8s.io/kubernetes v1.36.4. There, the pods
// of one workload select each other by a label named color; here, those of one
// Deployment do by its name.
type template struct {
	file        string // below scheduler_perf
	cpu, memory int64  // millicores, MiB
	constrain   rule
}

// templates returns the pod templates whose pods a node can be launched for.
// Those left out select namespaces by label and are otherwise like others here,
// or have volumes or scheduling gates.
func templates() []template {
	return []template{
		{"templates/pod-default.yaml", 100, 500, all()},
		{"templates/pod-low-priority.yaml", 900, 500, all()},
		{"templates/pod-high-priority.yaml", 3000, 500, all()},
		{"templates/pod-large-cpu.yaml", 9000, 500, all()},
		{"templates/pod-with-label.yaml", 0, 0, all()},
		{"templates/pod-with-node-affinity.yaml", 100, 500, inZones(zones()[:2]...)},
		{"templates/pod-with-node-inclusion-policy.yaml", 100, 500, inclusionPolicy},
		{"templates/pod-with-pod-affinity.yaml", 100, 500, nearItself},
		{"templates/pod-with-pod-anti-affinity.yaml", 100, 500, apart()},
		{"templates/pod-with-preferred-pod-affinity.yaml", 100, 500, preferNearItself},
		{"templates/pod-with-preferred-pod-anti-affinity.yaml", 100, 500, preferApart(corev1.LabelHostname)},
		{"templates/pod-with-preferred-topology-spreading.yaml", 100, 500, spread(corev1.LabelTopologyZone, 5, corev1.ScheduleAnyway)},
		{"templates/pod-with-topology-spreading.yaml", 100, 500, spread(corev1.LabelTopologyZone, 5, corev1.DoNotSchedule)},
		{"event_handling/templates/poddelete-pod-blocker-topology-ports-resources.yaml", 350, 3072, blocker},
		{"event_handling/templates/nodeupdate-pod-noderesources.yaml", 350, 3072, all()},
	}
}

// schedulerPerf draws a template for each Deployment.
func (p *problem) schedulerPerf() {
	p.apart = true
	all := templates()
	for i, replicas := range p.heavyTailed(p.Case.Deployments) {
		t := all[p.IntN(len(all))]
		p.Workload.Deployments = append(p.Workload.Deployments, workload.Deployment{
			Name: fmt.Sprintf("app-%04d", i), Replicas: replicas, CPU: t.cpu, Memory: t.memory, Constrain: t.constrain,
		})
	}
}

func nearItself(name string, s *corev1.PodSpec) { near(corev1.LabelTopologyZone, name)(name, s) }

func preferNearItself(name string, s *corev1.PodSpec) {
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selecting(name)}
	affinity(s).PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}}}
}

func inclusionPolicy(name string, s *corev1.PodSpec) {
	spread(corev1.LabelHostname, 1, corev1.DoNotSchedule)(name, s)
	c := &s.TopologySpreadConstraints[0]
	c.NodeAffinityPolicy, c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor), new(corev1.NodeInclusionPolicyHonor)
}

func blocker(name string, s *corev1.PodSpec) {
	spread(corev1.LabelHostname, 10, corev1.DoNotSchedule)(name, s)
	s.TopologySpreadConstraints[0].MinDomains = new(int32(10000))
	hostPorts(80)(name, s) // there, pods take turns with 12 ports
}
