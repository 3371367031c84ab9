// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/cloud/azure/azurefake"
)

// The annotation by which the sandbox's kubelets know a machine that they are
// to simulate, and the one that tells them that it is dead.
const (
	simulatedKey   = "kwok.x-k8s.io/node"
	simulatedValue = "fake"
	heartbeatKey   = "sandbox/heartbeat"
	dead           = "false"
)

const (
	mebi = int64(1) << 20
	gibi = int64(1) << 30
	// overlayPods is how many pods a node has with Azure CNI and overlay.
	overlayPods = 250
	evictionMiB = 750 // what AKS keeps free of memory
)

// providerID is the name by which the cluster knows the virtual machine: AKS writes
// its resource group in lower case.
func providerID(vm *azurefake.VM) string {
	parts := strings.Split(vm.ID, "/")
	const group = 4 // "", subscriptions, ID, resourceGroups, name
	parts[group] = strings.ToLower(parts[group])
	return "azure://" + strings.Join(parts, "/")
}

// Node returns the Node as the kubelet registers it and AKS completes it. The
// overhead is the share of memory that the node does not see.
func Node(vm *azurefake.VM, region string, overhead float64) (*corev1.Node, error) {
	capacity := capacity(vm, overhead)
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: vm.Name, Labels: labels(vm, region), Annotations: map[string]string{simulatedKey: simulatedValue}},
		Spec:       corev1.NodeSpec{ProviderID: providerID(vm)},
		Status: corev1.NodeStatus{
			Phase: corev1.NodePending, Capacity: capacity, Allocatable: allocatable(vm, capacity),
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: vm.Name}},
		},
	}
	for _, text := range vm.Taints {
		taint, err := parseTaint(text)
		if err != nil {
			return nil, err
		}
		out.Spec.Taints = append(out.Spec.Taints, taint)
	}
	return out, nil
}

func parseTaint(text string) (corev1.Taint, error) {
	rest, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(rest, "=")
	if !ok || key == "" {
		return corev1.Taint{}, fmt.Errorf("invalid taint %q", text)
	}
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, nil
}

func labels(vm *azurefake.VM, region string) map[string]string {
	zone, priority := "0", "regular"
	if vm.Zone != "" {
		zone = region + "-" + vm.Zone
	}
	if vm.Spot {
		priority = "spot"
	}
	out := map[string]string{
		corev1.LabelHostname: vm.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: vm.SKU.Arch,
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": vm.SKU.Arch,
		corev1.LabelInstanceTypeStable: vm.SKU.Name, corev1.LabelInstanceType: vm.SKU.Name,
		corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: region, "topology.disk.csi.azure.com/zone": strings.TrimPrefix(zone, "0"),
		"kubernetes.azure.com/scalesetpriority": priority, "kubernetes.azure.com/priority": priority,
		"kubernetes.azure.com/node-image-version": vm.Image,
	}
	maps.Copy(out, vm.Labels)
	return out
}

func capacity(vm *azurefake.VM, overhead float64) corev1.ResourceList {
	seen := vm.SKU.MemoryGiB * (1 - overhead) * float64(gibi)
	out := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(vm.SKU.VCPUs, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(int64(seen)/mebi*mebi, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(vm.DiskGB*1_000_000_000, resource.DecimalSI),
		corev1.ResourcePods:             *resource.NewQuantity(cmp.Or(vm.MaxPods, overlayPods), resource.DecimalSI),
	}
	if vm.SKU.GPUs > 0 {
		out["nvidia.com/gpu"] = *resource.NewQuantity(vm.SKU.GPUs, resource.DecimalSI)
	}
	return out
}

// step is a share of what lies above the step before, up to a bound.
type step struct{ upTo, share float64 }

// reserved is what AKS reserves of an amount.
func reserved(amount float64, steps ...step) float64 {
	var sum, from float64
	for _, s := range steps {
		sum += s.share * max(0, min(amount, s.upTo)-from)
		from = s.upTo
	}
	return sum
}

// allocatable is the capacity less what AKS reserves for the kubelet and keeps free.
func allocatable(vm *azurefake.VM, capacity corev1.ResourceList) corev1.ResourceList {
	out := capacity.DeepCopy()
	all := math.Inf(1)
	milli := 1000 * reserved(float64(vm.SKU.VCPUs), step{1, 0.06}, step{2, 0.04}, step{4, 0.02}, step{all, 0.01})
	mib := 1024 * reserved(vm.SKU.MemoryGiB, step{4, 0.25}, step{8, 0.2}, step{16, 0.1}, step{128, 0.06}, step{all, 0.02})
	cpu, memory := out[corev1.ResourceCPU], out[corev1.ResourceMemory]
	cpu.Sub(*resource.NewMilliQuantity(int64(milli), resource.DecimalSI))
	memory.Sub(*resource.NewQuantity((int64(mib)+evictionMiB)*mebi, resource.BinarySI))
	out[corev1.ResourceCPU], out[corev1.ResourceMemory] = cpu, memory
	return out
}
