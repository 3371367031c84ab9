// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"math/big"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/api/quantity"
)

const (
	podMiB      = 11  // of memory that is reserved per pod
	nodeMiB     = 255 // and per node
	evictionMiB = 100 // of free memory below which the kubelet evicts
	reservedGiB = 1   // of disk
)

// Signals of evictionHard that leave pods less.
const (
	memoryAvailable = "memory.available"
	diskAvailable   = "nodefs.available"
)

// kubeReserved is what the kubelet keeps for itself and the container runtime.
func (s *sizing) kubeReserved(pods int64) corev1.ResourceList {
	if s.traits.reservesForENIs {
		pods = s.eniPods(0)
	}
	out := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(reservedCPU(s.facts.VCpuInfo.DefaultVCpus), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity((podMiB*pods+nodeMiB)*mebibyte, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(reservedGiB*gibibyte, resource.BinarySI),
	}
	for name, q := range s.class.Kubelet.KubeReserved {
		out[name] = q.DeepCopy()
	}
	return out
}

// reservedCPU is, in millicores, 6 % of the first processor, 1 % of the second,
// 0.5 % of the next two and 0.25 % of the rest, each cut to whole millicores.
func reservedCPU(cpus int64) int64 {
	var reserved int64
	for _, bracket := range []struct{ from, to, perTenThousand int64 }{
		{0, 1, 600}, {1, 2, 100}, {2, 4, 50}, {4, cpus, 25},
	} {
		if n := min(cpus, bracket.to) - bracket.from; n > 0 {
			reserved += n * 1000 * bracket.perTenThousand / 10_000
		}
	}
	return reserved
}

// evictionThreshold returns the resources that must stay free, or else the
// kubelet evicts pods. Percentages refer to the estimated memory even if the
// real memory is known, so that an observation does not change the threshold.
func (s *sizing) evictionThreshold(disk resource.Quantity) corev1.ResourceList {
	tenth, _ := percentage("10%", disk.Value())
	out := corev1.ResourceList{
		corev1.ResourceMemory:           *resource.NewQuantity(evictionMiB*mebibyte, resource.BinarySI),
		corev1.ResourceEphemeralStorage: tenth,
	}
	if q, ok := threshold(s.class.Kubelet.EvictionHard[memoryAvailable], s.estimatedMemory()); ok {
		out[corev1.ResourceMemory] = q
	}
	if q, ok := threshold(s.class.Kubelet.EvictionHard[diskAvailable], disk.Value()); ok {
		out[corev1.ResourceEphemeralStorage] = q
	}
	return out
}

// threshold reads a quantity, or a percentage of the capacity. It is not ok when
// the text is neither.
func threshold(text string, capacity int64) (q resource.Quantity, ok bool) {
	if strings.HasSuffix(text, "%") {
		return percentage(text, capacity)
	}
	q, err := quantity.Parse(text)
	return q, err == nil && q.Sign() >= 0
}

// percentage returns the share of the capacity, rounded up to whole bytes. All
// of it means none, as for the kubelet: the threshold is switched off.
func percentage(text string, capacity int64) (q resource.Quantity, ok bool) {
	if quantity.Check(text) != nil {
		return resource.Quantity{}, false
	}
	hundred := big.NewRat(100, 1)
	share, ok := new(big.Rat).SetString(strings.TrimSuffix(text, "%"))
	if !ok || share.Sign() < 0 || share.Cmp(hundred) > 0 {
		return resource.Quantity{}, false
	}
	if share.Cmp(hundred) == 0 {
		return *resource.NewQuantity(0, resource.BinarySI), true
	}
	share.Mul(share, big.NewRat(capacity, 100))
	bytes, rest := new(big.Int).QuoRem(share.Num(), share.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		bytes.Add(bytes, big.NewInt(1))
	}
	return *resource.NewQuantity(bytes.Int64(), resource.BinarySI), true
}
