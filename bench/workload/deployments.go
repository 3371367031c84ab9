// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
)

// Deployment is pods that differ only in their names.
type Deployment struct {
	Name      string
	Namespace string // "" = default
	Replicas  int
	CPU       int64             // millicores
	Memory    int64             // MiB
	Labels    map[string]string // of its pods, beside Label
	Constrain func(name string, spec *corev1.PodSpec)
}

// namespace is where all pods live.
const namespace = "default"

// Label distinguishes the pods of a Deployment from others: its value is the
// name of the Deployment.
const Label = "app"

// Pod returns the pending pod of that number. The object is the caller's.
func (d *Deployment) Pod(n int) *corev1.Pod {
	name := fmt.Sprintf("%s-%05d", d.Name, n)
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{Label: d.Name},
			CreationTimestamp: metav1.NewTime(Start()),
			OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name, UID: types.UID(d.Name), Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(d.CPU, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(d.Memory<<20, resource.BinarySI),
			}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
	if d.Namespace != "" {
		p.Namespace = d.Namespace
	}
	maps.Copy(p.Labels, d.Labels)
	if d.Constrain != nil {
		d.Constrain(d.Name, &p.Spec)
	}
	return p
}

// mixed adds deployments of mixed sizes that add up to that many pods. Half of
// them are content with any node; the others ask for an architecture, for
// zones, for the batch pool, or for on-demand capacity.
func (w *Workload) mixed(rng *rand.Rand, deployments, pods int) {
	w.add(rng, deployments, pods, func(i int) func(string, *corev1.PodSpec) {
		return [...]func(string, *corev1.PodSpec){nil, amd64, nil, arm64, nil, zones, nil, onBatch, nil, onDemand}[i%10]
	})
}

// add adds deployments of mixed sizes and unequal numbers of pods.
func (w *Workload) add(rng *rand.Rand, deployments, pods int, constrain func(int) func(string, *corev1.PodSpec)) {
	shares, sum := make([]float64, deployments), 0.0
	for i := range shares {
		shares[i] = 0.3 + rng.ExpFloat64()
		sum += shares[i]
	}
	upTo, share := 0, 0.0
	for i := range shares {
		share += shares[i]
		next := int(math.Round(float64(pods) * share / sum))
		cpu, memory := size(rng)
		w.Deployments = append(w.Deployments, Deployment{
			Name: fmt.Sprintf("app-%03d", i), Replicas: next - upTo, CPU: cpu, Memory: memory, Constrain: constrain(i),
		})
		upTo = next
	}
}

// size draws what a pod requests: mostly fractions of a processor, sometimes
// several, with 1 to 8 GiB of memory for each.
func size(rng *rand.Rand) (cpu, memory int64) {
	sizes := []int64{100, 200, 250, 250, 500, 500, 500, 1000, 1000, 1500, 2000, 4000}
	ratios := []float64{1, 1.5, 2, 2, 3, 4, 4, 6, 8}
	cpu = sizes[rng.IntN(len(sizes))]
	gib := float64(cpu) / 1000 * ratios[rng.IntN(len(ratios))] * (0.8 + 0.4*rng.Float64())
	return cpu, max(int64(math.Round(gib*1024/64)), 1) * 64
}

// distinct adds pods of which no two request the same.
func (w *Workload) distinct(rng *rand.Rand, pods int) {
	seen := map[[2]int64]bool{}
	for len(w.Deployments) < pods {
		cpu := int64(50 * math.Pow(80, rng.Float64()))
		memory := int64(float64(cpu) * 1.024 * (1 + 7*rng.Float64()))
		if seen[[2]int64{cpu, memory}] {
			continue
		}
		seen[[2]int64{cpu, memory}] = true
		i := len(w.Deployments)
		w.Deployments = append(w.Deployments, Deployment{Name: fmt.Sprintf("app-%05d", i), Replicas: 1, CPU: cpu, Memory: memory})
	}
}

// oneMore asks for a single pod.
func (w *Workload) oneMore() {
	w.Deployments = []Deployment{{Name: "app-000", Replicas: 1, CPU: 500, Memory: 1024}}
	w.One = true
}

func amd64(_ string, s *corev1.PodSpec) {
	s.NodeSelector = map[string]string{corev1.LabelArchStable: v1.ArchitectureAmd64}
}

func arm64(_ string, s *corev1.PodSpec) {
	s.NodeSelector = map[string]string{corev1.LabelArchStable: v1.ArchitectureArm64}
}

func zones(_ string, s *corev1.PodSpec) {
	s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{Region + "a", Region + "b"}},
		}}},
	}}}
}

func onBatch(_ string, s *corev1.PodSpec) {
	s.NodeSelector = map[string]string{BatchLabel: Batch}
	s.Tolerations = []corev1.Toleration{{Key: BatchTaint, Operator: corev1.TolerationOpEqual, Value: Batch, Effect: corev1.TaintEffectNoSchedule}}
}

func onDemand(_ string, s *corev1.PodSpec) {
	s.NodeSelector = map[string]string{v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand}
}
