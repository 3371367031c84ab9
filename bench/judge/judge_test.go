// SPDX-License-Identifier: Apache-2.0

package judge_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/bench/judge"
	"karpenter/bench/ours"
	"karpenter/bench/workload"
)

// decided returns a workload and a valid plan for it.
func decided(t *testing.T, name string) (*workload.Workload, *judge.Plan) {
	t.Helper()
	w, err := workload.New(name)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ours.New(w)
	if err != nil {
		t.Fatal(err)
	}
	e.News(w)
	e.Decide()
	return w, e.Plan()
}

func TestValidPlanHasNoFaults(t *testing.T) {
	w, plan := decided(t, "mixed-1000-spot")
	v := judge.New(w).Judge(plan)
	if v.Count != 0 || v.Scheduled != w.Pods || v.Nodes != len(plan.Claims) || v.Price <= 0 {
		t.Errorf("got %+v", v)
	}
}

// onType returns a claim of general, on demand, in one zone.
func onType(name string, pods ...string) judge.Claim {
	return judge.Claim{Pool: "general", Types: []string{name}, Pods: pods, Requirements: []corev1.NodeSelectorRequirement{
		in("karpenter.sh/capacity-type", "on-demand"), in(corev1.LabelTopologyZone, workload.Region+"a"),
	}}
}

func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func TestPriceIsOfCheapestInstance(t *testing.T) {
	w, _ := workload.New("one-more-buys")
	one := key(w, 0)
	c := onType("m5.large", one)
	c.Types = append(c.Types, "m5.xlarge")
	if v := judge.New(w).Judge(&judge.Plan{Claims: []judge.Claim{c}}); v.Count != 0 || v.Price != 0.096 {
		t.Errorf("on demand: got %+v", v)
	}
	c.Requirements = nil
	if v := judge.New(w).Judge(&judge.Plan{Claims: []judge.Claim{c}}); v.Count != 0 || v.Price >= 0.096*0.45 || v.Price < 0.096*0.25 {
		t.Errorf("with spot: got %+v", v)
	}
}

func key(w *workload.Workload, n int) string {
	for p := range w.Pending() {
		if n--; n < 0 {
			return judge.Key(p)
		}
	}
	return ""
}

// TestFaults breaks valid plans one way at a time.
func TestFaults(t *testing.T) {
	plans := map[string]string{}
	fresh := func(name string) (*workload.Workload, *judge.Plan) {
		if plans[name] == "" {
			_, plan := decided(t, name)
			text, err := json.Marshal(plan)
			if err != nil {
				t.Fatal(err)
			}
			plans[name] = string(text)
		}
		w, err := workload.New(name)
		if err != nil {
			t.Fatal(err)
		}
		plan := &judge.Plan{}
		if err := json.Unmarshal([]byte(plans[name]), plan); err != nil {
			t.Fatal(err)
		}
		return w, plan
	}
	for _, c := range []struct {
		name, workload, want string
		break_               func(w *workload.Workload, p *judge.Plan)
	}{
		{"pod twice", "mixed-1000-od", "several places", func(_ *workload.Workload, p *judge.Plan) {
			p.Claims = append(p.Claims, onType("m5.24xlarge", p.Claims[0].Pods[0]))
		}},
		{"pod nobody asked for", "mixed-1000-od", "is not pending", func(_ *workload.Workload, p *judge.Plan) {
			p.Claims[0].Pods = append(p.Claims[0].Pods, "default/ghost")
		}},
		{"too many pods", "mixed-1000-od", "too little", func(_ *workload.Workload, p *judge.Plan) {
			for _, c := range p.Claims[1:] {
				p.Claims[0].Pods = append(p.Claims[0].Pods, c.Pods...)
			}
			p.Claims = p.Claims[:1]
		}},
		{"a smaller type", "mixed-1000-od", "too little", func(_ *workload.Workload, p *judge.Plan) {
			for i := range p.Claims {
				if p.Claims[i].Pool == "general" {
					p.Claims[i].Types = append(p.Claims[i].Types, "c7g.medium", "c7i.large")
				}
			}
		}},
		{"a type the pool excludes", "mixed-1000-od", "its pool or itself allows", func(_ *workload.Workload, p *judge.Plan) {
			p.Claims[0].Types = append(p.Claims[0].Types, "g5.48xlarge")
		}},
		{"a type nobody sells", "mixed-1000-od", "nobody sells", func(_ *workload.Workload, p *judge.Plan) {
			p.Claims[0].Types = append(p.Claims[0].Types, "z99.nano")
		}},
		{"taint not tolerated", "one-more-buys", "does not accept", func(w *workload.Workload, p *judge.Plan) {
			c := onType("m5.large", key(w, 0))
			c.Pool = "batch"
			p.Claims = []judge.Claim{c}
		}},
		{"wrong architecture", "mixed-1000-od", "does not accept", func(w *workload.Workload, p *judge.Plan) {
			for pod := range w.Pending() {
				if pod.Spec.NodeSelector[corev1.LabelArchStable] == "arm64" {
					*p = judge.Plan{Claims: []judge.Claim{onType("m5.8xlarge", judge.Key(pod))}}
					return
				}
			}
		}},
		{"node that is not there", "one-more-fits", "does not exist", func(w *workload.Workload, p *judge.Plan) {
			p.Placed = map[string][]string{"ghost": {key(w, 0)}}
		}},
		{"full node", "one-more-buys", "has too little", func(w *workload.Workload, p *judge.Plan) {
			*p = judge.Plan{Placed: map[string][]string{w.Machines[0].Node.Name: {key(w, 0)}}}
		}},
		{"over the limit", "mixed-1000-od", "its limit is", func(w *workload.Workload, _ *judge.Plan) {
			for _, p := range w.Pools {
				p.Spec.Limits = map[corev1.ResourceName]resource.Quantity{corev1.ResourceCPU: resource.MustParse("10")}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, plan := fresh(c.workload)
			c.break_(w, plan)
			v := judge.New(w).Judge(plan)
			if v.Count == 0 || !strings.Contains(strings.Join(v.Faults, "\n"), c.want) {
				t.Errorf("faults %q, want one with %q", v.Faults, c.want)
			}
		})
	}
}

// TestTopology puts the pods of topology workloads together in wrong ways. Pods
// come by deployment: the first four have one constraint each.
func TestTopology(t *testing.T) {
	w, err := workload.New("topology-1000-spot")
	if err != nil {
		t.Fatal(err)
	}
	const each = 25 // pods of a deployment
	pods := func(deployment, from, n int) []string {
		var out []string
		for i := range n {
			out = append(out, key(w, deployment*each+from+i))
		}
		return out
	}
	at := func(zone string, pods []string) judge.Claim {
		c := onType("m5.24xlarge", pods...)
		c.Requirements[1] = in(corev1.LabelTopologyZone, zone)
		return c
	}
	a, b, z := workload.Region+"a", workload.Region+"b", workload.Region+"c"
	for _, c := range []struct {
		name, want string
		claims     []judge.Claim
	}{
		{"zones even", "", []judge.Claim{at(a, pods(0, 0, 2)), at(b, pods(0, 2, 1)), at(z, pods(0, 3, 1))}},
		{"zones skewed", "skew of 2", []judge.Claim{at(a, pods(0, 0, 3)), at(b, pods(0, 3, 1)), at(z, pods(0, 4, 1))}},
		{"nodes even", "", []judge.Claim{at(a, pods(1, 0, 1)), at(a, pods(1, 1, 1))}},
		{"nodes skewed", "skew of 2", []judge.Claim{at(a, pods(1, 0, 2)), at(a, pods(2, 0, 1))}},
		{"one zone", "", []judge.Claim{at(a, pods(2, 0, 2)), at(a, pods(2, 2, 1))}},
		{"two zones", "has no pod it needs beside it", []judge.Claim{at(a, pods(2, 0, 2)), at(b, pods(2, 2, 1))}},
		{"apart", "", []judge.Claim{at(a, pods(3, 0, 1)), at(a, pods(3, 1, 1))}},
		{"together", "2 pods like", []judge.Claim{at(a, pods(3, 0, 2))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge.New(w).Judge(&judge.Plan{Claims: c.claims})
			if got := strings.Join(v.Faults, "\n"); (c.want == "") != (v.Count == 0) || !strings.Contains(got, c.want) {
				t.Errorf("faults %q, want %q", got, c.want)
			}
		})
	}
	loose := at(a, pods(0, 0, 1))
	loose.Requirements = loose.Requirements[:1]
	if v := judge.New(w).Judge(&judge.Plan{Claims: []judge.Claim{loose}}); v.Count == 0 {
		t.Error("a claim that may come up in any zone passes for one that is spread")
	}
}

// TestSpreadBySeveralLabels has the scheduler's own reading of several spread constraints:
// a node without one of the labels counts for none of them.
func TestSpreadBySeveralLabels(t *testing.T) {
	const bandwidth = "karpenter.k8s.aws/instance-network-bandwidth"
	w, err := workload.Empty("labels")
	if err != nil {
		t.Fatal(err)
	}
	w.SetPools(workload.Terms{})
	w.Deployments = []workload.Deployment{
		{Name: "web", Replicas: 2, CPU: 500, Memory: 512, Constrain: func(name string, spec *corev1.PodSpec) {
			for _, label := range []string{corev1.LabelTopologyZone, bandwidth} {
				spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
					MaxSkew: 1, TopologyKey: label, WhenUnsatisfiable: corev1.DoNotSchedule,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{workload.Label: name}},
				})
			}
		}},
		{Name: "other", Replicas: 1, CPU: 500, Memory: 512, Constrain: func(_ string, spec *corev1.PodSpec) {
			spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}},
	}
	w.Count()
	for kind, fault := range map[string]string{"m4.large": "", "m5.2xlarge": "skew of 2"} { // m4 does not tell its bandwidth
		elsewhere := onType(kind, key(w, 2))
		elsewhere.Pool = "batch"
		elsewhere.Requirements[1] = in(corev1.LabelTopologyZone, workload.Region+"b")
		v := judge.New(w).Judge(&judge.Plan{Claims: []judge.Claim{onType("m5.large", key(w, 0)), onType("m5.xlarge", key(w, 1)), elsewhere}})
		if got := strings.Join(v.Faults, "\n"); (fault == "") != (v.Count == 0) || !strings.Contains(got, fault) {
			t.Errorf("beside a node of %s: faults %q, want %q", kind, got, fault)
		}
	}
}
