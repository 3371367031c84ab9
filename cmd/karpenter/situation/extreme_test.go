// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/kube/feed"
	"karpenter/model"
	"karpenter/solve"
)

// many repeats what an API server accepts any number of.
func many[T any](n int, one func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = one(i)
	}
	return out
}

func requirement(i int) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{
		Key: fmt.Sprint("example.com/key-", i%7), Operator: corev1.NodeSelectorOpNotIn, Values: many(100, func(j int) string { return fmt.Sprint("v", i, "-", j) }),
	}
}

func podTerm(i int) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{
		TopologyKey:   fmt.Sprint("example.com/topology-", i),
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}},
	}
}

// extremes are pods that an API server accepts, each with very much of something.
var extremes = map[string]func(*corev1.Pod){
	"containers": func(p *corev1.Pod) {
		p.Spec.Containers = many(1000, func(i int) corev1.Container {
			return corev1.Container{Name: fmt.Sprint("c", i), Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1m")}}}
		})
	},
	"kinds of resources": func(p *corev1.Pod) {
		for i := range 2000 {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
		}
	},
	"quantities": func(p *corev1.Pod) {
		p.Spec.Containers = many(100, func(int) corev1.Container {
			return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				"cpu": resource.MustParse("9223372036854775807"), "memory": resource.MustParse("8Ei"), "example.com/x": resource.MustParse("9223372036854775807"),
			}}}
		})
	},
	"ports": func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = many(5000, func(i int) corev1.ContainerPort {
			return corev1.ContainerPort{ContainerPort: int32(i + 1), HostPort: int32(i + 1), Protocol: corev1.ProtocolTCP}
		})
	},
	"tolerations": func(p *corev1.Pod) {
		p.Spec.Tolerations = many(2000, func(i int) corev1.Toleration {
			return corev1.Toleration{Key: fmt.Sprint("example.com/t-", i), Operator: corev1.TolerationOpExists}
		})
	},
	"node affinity": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: many(500, func(i int) corev1.NodeSelectorTerm {
				return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{requirement(i), requirement(i + 1)}}
			}),
		}}}
	},
	"preferred node affinity": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: many(500, func(i int) corev1.PreferredSchedulingTerm {
			return corev1.PreferredSchedulingTerm{Weight: int32(i%100 + 1), Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{requirement(i)}}}
		})}}
	},
	"pod anti-affinity": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: many(500, podTerm)}}
	},
	"preferred pod affinity": func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: many(500, func(i int) corev1.WeightedPodAffinityTerm {
			return corev1.WeightedPodAffinityTerm{Weight: int32(i%100 + 1), PodAffinityTerm: podTerm(i)}
		})}}
	},
	"spread constraints": func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = many(500, func(i int) corev1.TopologySpreadConstraint {
			return corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: fmt.Sprint("example.com/topology-", i), WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{},
			}
		})
	},
	"volumes": func(p *corev1.Pod) {
		p.Spec.Volumes = many(1000, func(i int) corev1.Volume {
			return corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("missing-", i)}}}
		})
	},
	"owners in a circle": func(p *corev1.Pod) {
		p.OwnerReferences = many(1000, func(i int) metav1.OwnerReference {
			return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}
		})
	},
	"labels": func(p *corev1.Pod) {
		p.Labels = map[string]string{}
		for i := range 5000 {
			p.Labels[fmt.Sprint("example.com/l-", i)] = "x"
		}
	},
	"claims of devices": func(p *corev1.Pod) {
		p.Spec.ResourceClaims = many(1000, func(i int) corev1.PodResourceClaim { return corev1.PodResourceClaim{Name: fmt.Sprint("c", i)} })
	},
}

// yardsticks is how much CPU time a plan for extreme pods may take: 10 seconds where a
// yardstick takes 0.25.
const yardsticks = 40

// yardstick returns the CPU time of a piece of work that is always the same, and needs memory
// as plans do, so that the limit is as strict on slow machines as on fast ones.
func yardstick(t *testing.T) time.Duration {
	t.Helper()
	began := used(t)
	rng, seen := rand.New(rand.NewPCG(1, 2)), map[uint64]bool{}
	for range 1 << 20 {
		seen[rng.Uint64()] = true
	}
	slices.Sort(slices.Collect(maps.Keys(seen)))
	return used(t) - began
}

// TestExtremePods plans for 20 pods of one tenant with very much of something, no two
// alike, and a pod of another tenant: this pod gets its node, and the plan does not take
// long.
func TestExtremePods(t *testing.T) {
	most := yardsticks * yardstick(t)
	published, pods, pools := stored(t)
	for name, change := range extremes {
		t.Run(name, func(t *testing.T) {
			w, convert, sources := published.World()
			sink := feed.NewSink(w, convert, sources)
			for i := range pools {
				sink.Set(&pools[i])
			}
			for i := range published.Offerings.Snapshot.Pools {
				pool := &published.Offerings.Snapshot.Pools[i]
				w.SetTypes(pool.Name, pool.Types, pool.Extras...)
			}
			began := used(t)
			sink.Set(&pods[0])
			for i := range 20 {
				p := pods[0].DeepCopy()
				p.Namespace, p.Name, p.UID = "tenant", fmt.Sprint("p", i), pods[0].UID
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(100+i, "m"))}
				change(p)
				sink.Set(p)
				sink.Set(&policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: p.Name},
					Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchExpressions: many(200, func(i int) metav1.LabelSelectorRequirement {
						return metav1.LabelSelectorRequirement{Key: fmt.Sprint("example.com/l-", i), Operator: metav1.LabelSelectorOpExists}
					})}},
				})
			}
			s := w.Snapshot(time.Now())
			plan := solve.Decide(s, published.Offerings.Policy)
			if took := used(t) - began; took > most {
				t.Errorf("took %v, more than %v", took, most)
			} else {
				t.Logf("took %v of %v, exhausted %t", took, most, plan.Exhausted)
			}
			is := func(p model.Pod) bool { return p.Namespace == pods[0].Namespace && p.Name == pods[0].Name }
			if !slices.ContainsFunc(plan.Launches, func(l model.Launch) bool { return slices.ContainsFunc(l.Pods, is) }) {
				t.Errorf("no node for the pod of another tenant: %+v", plan.Verdicts)
			}
		})
	}
}

// used returns how much CPU time the test has used.
func used(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
