package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
)

// deployment is pods that differ in nothing but their names.
type deployment struct {
	name      string
	replicas  int
	cpu       int64 // millicores
	memory    int64 // MiB
	constrain func(name string, spec *corev1.PodSpec)
}

// namespace is where all pods live.
const namespace = "default"

// label tells the pods of a deployment from others.
const label = "app"

func (d *deployment) pod(n int) *corev1.Pod {
	name := fmt.Sprintf("%s-%05d", d.name, n)
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{label: d.name},
			CreationTimestamp: metav1.NewTime(Start()),
			OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.name, UID: types.UID(d.name), Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Name: "main", Image: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(d.cpu, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(d.memory<<20, resource.BinarySI),
			}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		}}},
	}
	if d.constrain != nil {
		d.constrain(d.name, &p.Spec)
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
		w.deployments = append(w.deployments, deployment{
			name: fmt.Sprintf("app-%03d", i), replicas: next - upTo, cpu: cpu, memory: memory, constrain: constrain(i),
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
	for len(w.deployments) < pods {
		cpu := int64(50 * math.Pow(80, rng.Float64()))
		memory := int64(float64(cpu) * 1.024 * (1 + 7*rng.Float64()))
		if seen[[2]int64{cpu, memory}] {
			continue
		}
		seen[[2]int64{cpu, memory}] = true
		i := len(w.deployments)
		w.deployments = append(w.deployments, deployment{name: fmt.Sprintf("app-%05d", i), replicas: 1, cpu: cpu, memory: memory})
	}
}

// oneMore asks for a single pod.
func (w *Workload) oneMore() {
	w.deployments = []deployment{{name: "app-000", replicas: 1, cpu: 500, memory: 1024}}
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
	s.NodeSelector = map[string]string{batchLabel: batch}
	s.Tolerations = []corev1.Toleration{{Key: batchTaint, Operator: corev1.TolerationOpEqual, Value: batch, Effect: corev1.TaintEffectNoSchedule}}
}

func onDemand(_ string, s *corev1.PodSpec) {
	s.NodeSelector = map[string]string{v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand}
}
