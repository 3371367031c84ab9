// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// rootGiB is the size of a root volume of which nothing is known.
	rootGiB = 20
)

// Machine is an instance and what it makes a Node of.
type Machine struct {
	Instance types.Instance
	Type     types.InstanceTypeInfo
	Settings *Settings
	Region   string
	ZoneID   string           // "" if unknown
	Volumes  map[string]int64 // GiB by device
	// Overhead is the share of the type's memory that the machine does not see,
	// as the hypervisor, firmware and kernel take it.
	Overhead float64
}

// providerID is the name by which the cluster knows the instance.
func providerID(i *types.Instance) string {
	return "aws:///" + aws.ToString(i.Placement.AvailabilityZone) + "/" + aws.ToString(i.InstanceId)
}

// instanceID is the reverse, "" for machines of others.
func instanceID(providerID string) string {
	if !strings.HasPrefix(providerID, "aws:///") {
		return ""
	}
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// Node returns the Node as the kubelet registers it and the cloud's controllers
// complete it.
func (m *Machine) Node() (*corev1.Node, error) {
	capacity := m.capacity()
	allocatable, err := m.allocatable(capacity)
	if err != nil {
		return nil, fmt.Errorf("the kubelet does not start: %w", err)
	}
	name := m.name()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: m.labels(name), Annotations: map[string]string{simulatedKey: simulatedValue}},
		Spec:       corev1.NodeSpec{ProviderID: providerID(&m.Instance), Taints: m.Settings.Taints},
		Status: corev1.NodeStatus{
			Phase: corev1.NodePending, Capacity: capacity, Allocatable: allocatable, Addresses: m.addresses(name),
		},
	}, nil
}

// name is the private DNS name, as EKS has it.
func (m *Machine) name() string {
	return cmp.Or(aws.ToString(m.Instance.PrivateDnsName), aws.ToString(m.Instance.InstanceId))
}

func (m *Machine) addresses(name string) []corev1.NodeAddress {
	all := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalDNS, Address: name}}
	if ip := aws.ToString(m.Instance.PrivateIpAddress); ip != "" {
		all = append([]corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}, all...)
	}
	return all
}

func (m *Machine) labels(name string) map[string]string {
	arch := "amd64"
	if m.Instance.Architecture == types.ArchitectureValuesArm64 {
		arch = "arm64"
	}
	zone, kind := aws.ToString(m.Instance.Placement.AvailabilityZone), string(m.Instance.InstanceType)
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: m.Settings.OS, corev1.LabelArchStable: arch,
		"beta.kubernetes.io/os": m.Settings.OS, "beta.kubernetes.io/arch": arch,
		corev1.LabelInstanceTypeStable: kind, corev1.LabelInstanceType: kind,
		corev1.LabelTopologyZone: zone, corev1.LabelFailureDomainBetaZone: zone,
		corev1.LabelTopologyRegion: m.Region, corev1.LabelFailureDomainBetaRegion: m.Region,
	}
	if m.ZoneID != "" {
		labels["topology.k8s.aws/zone-id"] = m.ZoneID
	}
	maps.Copy(labels, m.Settings.Labels)
	return labels
}

func (m *Machine) cpus() int64 {
	if o := m.Instance.CpuOptions; o != nil && o.CoreCount != nil && o.ThreadsPerCore != nil {
		return int64(*o.CoreCount) * int64(*o.ThreadsPerCore)
	}
	if m.Type.VCpuInfo == nil {
		return 0
	}
	return int64(aws.ToInt32(m.Type.VCpuInfo.DefaultVCpus))
}

// interfacePods is how many pods get addresses of the type's network interfaces.
func (m *Machine) interfacePods() int64 {
	n := m.Type.NetworkInfo
	if n == nil {
		return 0
	}
	interfaces := aws.ToInt32(n.MaximumNetworkInterfaces)
	if card := int(aws.ToInt32(n.DefaultNetworkCardIndex)); card < len(n.NetworkCards) {
		interfaces = aws.ToInt32(n.NetworkCards[card].MaximumNetworkInterfaces)
	}
	return int64(interfaces)*(int64(aws.ToInt32(n.Ipv4AddressesPerInterface))-1) + 2
}

func (m *Machine) pods() int64 {
	pods := cmp.Or(m.Settings.MaxPods, m.interfacePods())
	if per := m.Settings.PodsPerCore; per > 0 {
		pods = min(pods, per*m.cpus())
	}
	return pods
}

// disk is the bytes of the file system that holds pods.
func (m *Machine) disk() int64 {
	if s := m.Type.InstanceStorageInfo; m.Settings.RAID0 && s != nil {
		return aws.ToInt64(s.TotalSizeInGB) * 1_000_000_000
	}
	device := cmp.Or(m.Settings.DataDevice, aws.ToString(m.Instance.RootDeviceName))
	return cmp.Or(m.Volumes[device], rootGiB) * gibi
}

func (m *Machine) memory() int64 {
	if m.Type.MemoryInfo == nil {
		return 0
	}
	size := float64(aws.ToInt64(m.Type.MemoryInfo.SizeInMiB))
	return (int64(size) - int64(math.Ceil(size*m.Overhead))) * mebi
}

func (m *Machine) capacity() corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(m.cpus(), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(m.memory(), resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(m.disk(), resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(m.pods(), resource.DecimalSI),
	}
	for name, count := range m.devices() {
		if count > 0 {
			list[name] = *resource.NewQuantity(count, resource.DecimalSI)
		}
	}
	return list
}

// devices are what device plugins add.
func (m *Machine) devices() map[corev1.ResourceName]int64 {
	counts := map[corev1.ResourceName]int64{}
	if g := m.Type.GpuInfo; g != nil {
		for _, gpu := range g.Gpus {
			name := map[string]corev1.ResourceName{"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "habana": "habana.ai/gaudi"}[strings.ToLower(aws.ToString(gpu.Manufacturer))]
			if name != "" {
				counts[name] += int64(aws.ToInt32(gpu.Count))
			}
		}
	}
	if n := m.Type.NeuronInfo; n != nil {
		for _, device := range n.NeuronDevices {
			counts["aws.amazon.com/neuron"] += int64(aws.ToInt32(device.Count))
			if device.CoreInfo != nil {
				counts["aws.amazon.com/neuroncore"] += int64(aws.ToInt32(device.Count)) * int64(aws.ToInt32(device.CoreInfo.Count))
			}
		}
	}
	for _, i := range m.Instance.NetworkInterfaces {
		if kind := aws.ToString(i.InterfaceType); kind == "efa" || kind == "efa-only" {
			counts["vpc.amazonaws.com/efa"]++
		}
	}
	return counts
}

// allocatable is the capacity less what the kubelet reserves and keeps free.
func (m *Machine) allocatable(capacity corev1.ResourceList) (corev1.ResourceList, error) {
	left := capacity.DeepCopy()
	less := func(name corev1.ResourceName, q resource.Quantity) {
		have, ok := left[name]
		if !ok {
			return
		}
		have.Sub(q)
		if have.Sign() < 0 {
			have = resource.Quantity{Format: have.Format}
		}
		left[name] = have
	}
	kube := m.kubeReserved()
	maps.Copy(kube, m.Settings.KubeReserved)
	for _, reserved := range []map[string]string{kube, m.Settings.SystemReserved} {
		for name, text := range reserved {
			q, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, fmt.Errorf("reserved %s: %q: %w", name, text, err)
			}
			less(corev1.ResourceName(name), q)
		}
	}
	for _, t := range []struct {
		signal, preset string
		name           corev1.ResourceName
	}{{"memory.available", "100Mi", corev1.ResourceMemory}, {"nodefs.available", "10%", corev1.ResourceEphemeralStorage}} {
		q, err := threshold(cmp.Or(m.Settings.EvictionHard[t.signal], t.preset), capacity[t.name])
		if err != nil {
			return nil, fmt.Errorf("eviction threshold %s: %w", t.signal, err)
		}
		less(t.name, q)
	}
	return left, nil
}

// threshold is a quantity, or a percentage of the capacity. 100% is none.
func threshold(text string, capacity resource.Quantity) (resource.Quantity, error) {
	percent, ok := strings.CutSuffix(text, "%")
	if !ok {
		return resource.ParseQuantity(text)
	}
	share, err := strconv.ParseFloat(percent, 64)
	if err != nil || share < 0 || share > 100 {
		return resource.Quantity{}, fmt.Errorf("invalid percentage %q", text)
	}
	if share == 100 {
		share = 0
	}
	return *resource.NewQuantity(int64(math.Ceil(float64(capacity.Value())*share/100)), resource.BinarySI), nil
}

// kubeReserved is what EKS's images reserve for the kubelet by themselves.
func (m *Machine) kubeReserved() map[string]string {
	milli, cpus := int64(0), m.cpus()
	for _, step := range []struct{ cores, perTenThousand int64 }{{1, 600}, {1, 100}, {2, 50}, {cpus, 25}} {
		n := max(0, min(step.cores, cpus))
		milli += n * step.perTenThousand / 10
		cpus -= n
	}
	return map[string]string{
		"cpu":               fmt.Sprintf("%dm", milli),
		"memory":            fmt.Sprintf("%dMi", 11*m.interfacePods()+255),
		"ephemeral-storage": "1Gi",
	}
}
