// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/bench/judge"
	"karpenter/bench/workload"
)

// peers returns a workload of Deployments a, b and c of 3 pods each, on a node
// of zone a that runs a pod of Deployment a. The constraint is that of b.
func peers(t *testing.T, constrain func(string, *corev1.PodSpec)) *workload.Workload {
	t.Helper()
	w, err := workload.Empty("peers")
	if err != nil {
		t.Fatal(err)
	}
	w.SetPools(workload.Terms{Spot: true})
	for _, name := range []string{"a", "b", "c"} {
		d := workload.Deployment{Name: name, Replicas: 3, CPU: 100, Memory: 128}
		if name == "b" {
			d.Constrain = constrain
		}
		w.Deployments = append(w.Deployments, d)
	}
	for i := range w.Entries {
		if e := &w.Entries[i]; e.Name == "m6i.2xlarge" {
			m := workload.NewMachine("n", w.Pools[0], e, e.Offerings[0])
			if zone := m.Node.Labels[corev1.LabelTopologyZone]; zone != workload.Region+"a" {
				t.Fatalf("the first offering is in %s", zone)
			}
			m.Bind(w.Deployments[0].Pod(9))
			w.Machines = append(w.Machines, m)
		}
	}
	w.Count()
	return w
}

func selecting(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{workload.Label: name}}
}

func near(key, other string) func(string, *corev1.PodSpec) {
	return func(_ string, s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: selecting(other)}},
		}}
	}
}

func apart(key, other string) func(string, *corev1.PodSpec) {
	return func(_ string, s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: selecting(other)}},
		}}
	}
}

func spread(key, of string) func(string, *corev1.PodSpec) {
	return func(_ string, s *corev1.PodSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selecting(of)}}
	}
}

func port(number int32) func(string, *corev1.PodSpec) {
	return func(_ string, s *corev1.PodSpec) {
		s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: number, ContainerPort: number}}
	}
}

func TestConstraintsCountBoundPodsAndOtherDeployments(t *testing.T) {
	const zone, host = corev1.LabelTopologyZone, corev1.LabelHostname
	in := func(zone string, pods ...string) judge.Claim {
		c := onType("m5.24xlarge")
		c.Requirements[1] = in(corev1.LabelTopologyZone, workload.Region+zone)
		for _, p := range pods {
			c.Pods = append(c.Pods, "default/"+p)
		}
		return c
	}
	onNode := func(pods ...string) map[string][]string {
		var out []string
		for _, p := range pods {
			out = append(out, "default/"+p)
		}
		return map[string][]string{"n": out}
	}
	for _, c := range []struct {
		name, want string
		constrain  func(string, *corev1.PodSpec)
		plan       judge.Plan
	}{
		{"spread counts the bound pod", "skew of 2", spread(zone, "a"), judge.Plan{Claims: []judge.Claim{in("a", "a-00000", "b-00000"), in("b", "c-00000")}}},
		{"spread evens the bound pod out", "", spread(zone, "a"), judge.Plan{Claims: []judge.Claim{in("b", "a-00000", "b-00000")}}},
		{"affinity to the bound pod", "", near(zone, "a"), judge.Plan{Claims: []judge.Claim{in("a", "b-00000")}}},
		{"affinity away from the bound pod", "no pod it needs", near(zone, "a"), judge.Plan{Claims: []judge.Claim{in("b", "b-00000")}}},
		{"affinity to a pod of the plan", "", near(host, "c"), judge.Plan{Claims: []judge.Claim{in("b", "b-00000", "c-00000")}}},
		{"affinity to a pod on another node", "no pod it needs", near(host, "c"), judge.Plan{Claims: []judge.Claim{in("b", "b-00000"), in("b", "c-00000")}}},
		{"anti-affinity to the bound pod", "share topology.kubernetes.io/zone", apart(zone, "a"), judge.Plan{Claims: []judge.Claim{in("a", "b-00000")}}},
		{"anti-affinity, another zone", "", apart(zone, "a"), judge.Plan{Claims: []judge.Claim{in("b", "b-00000", "b-00001")}}},
		{"anti-affinity is mutual", "share kubernetes.io/hostname", apart(host, "c"), judge.Plan{Claims: []judge.Claim{in("b", "b-00000", "c-00000")}}},
		{"anti-affinity that is said twice", "", func(name string, s *corev1.PodSpec) {
			apart(host, "b")(name, s)
			terms := &s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			*terms = append(*terms, *terms...)
		}, judge.Plan{Claims: []judge.Claim{in("b", "b-00000")}}},
		{"two pods with one port", "host port 80", port(80), judge.Plan{Placed: onNode("b-00000", "b-00001")}},
		{"one pod with the port", "", port(80), judge.Plan{Placed: onNode("b-00000", "c-00001")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge.New(peers(t, c.constrain)).Judge(&c.plan)
			if got := strings.Join(v.Faults, "\n"); (c.want == "") != (v.Count == 0) || !strings.Contains(got, c.want) {
				t.Errorf("faults %q, want %q", got, c.want)
			}
		})
	}
}

// TestAffinityRingHasNoOrder places pods that each need the other kind first.
func TestAffinityRingHasNoOrder(t *testing.T) {
	w := peers(t, near(corev1.LabelTopologyZone, "c"))
	w.Deployments[2].Constrain = near(corev1.LabelTopologyZone, "b")
	c := onType("m5.24xlarge", "default/b-00000", "default/c-00000")
	if v := judge.New(w).Judge(&judge.Plan{Claims: []judge.Claim{c}}); v.Count != 2 {
		t.Errorf("faults %q, want one for each pod", v.Faults)
	}
	w.Machines[0].Bind(w.Deployments[2].Pod(9))
	if v := judge.New(w).Judge(&judge.Plan{Claims: []judge.Claim{c}}); v.Count != 0 {
		t.Errorf("with a pod of c running: faults %q", v.Faults)
	}
}

func TestCarryMovesThePodsOfRemovedNodes(t *testing.T) {
	w := peers(t, nil)
	w.Deployments = nil
	s := judge.Step{Removed: []string{"n"}, Plan: judge.Plan{Claims: []judge.Claim{onType("m5.large", "default/a-00009")}}}
	s.Plan.Claims[0].Types = []string{"m5.xlarge", "m5.large"}
	before := judge.Cost(w)
	v, change := judge.Carry(w, &s, "new")
	if v.Count != 0 || len(change.Gone) != 1 || len(change.Added) != 1 || len(w.Machines) != 1 {
		t.Fatalf("got %+v, %d gone, %d added", v, len(change.Gone), len(change.Added))
	}
	m := w.Machines[0]
	if m.Node.Labels[corev1.LabelInstanceTypeStable] != "m5.large" || m.Bound[len(m.Bound)-1].Spec.NodeName != "new-0" {
		t.Errorf("the pod runs on %s of type %s", m.Bound[len(m.Bound)-1].Spec.NodeName, m.Node.Labels[corev1.LabelInstanceTypeStable])
	}
	if after := judge.Cost(w); after >= before || after != 0.096 {
		t.Errorf("the nodes cost %v, before %v", after, before)
	}
}

func TestCarryRefusesToLosePods(t *testing.T) {
	w := peers(t, nil)
	w.Deployments = nil
	v, _ := judge.Carry(w, &judge.Step{Removed: []string{"n"}}, "new")
	if v.Count != 1 || !strings.Contains(v.Faults[0], "1 of 1 evicted pods have no place") || len(w.Machines) != 1 {
		t.Errorf("got %+v", v)
	}
}
