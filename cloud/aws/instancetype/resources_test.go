// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/instancetype"
	"karpenter/model"
)

const (
	mi = int64(1 << 20)
	gi = int64(1 << 30)
)

// change alters the class or the cluster of a case.
type change func(*instancetype.Class, *instancetype.Cluster)

func none(*instancetype.Class, *instancetype.Cluster) {}

// kubelet is a change of the node class's kubelet configuration, by field.
func kubelet(fields map[string]string) change {
	config := awsv1.KubeletConfiguration{}
	for field, text := range fields {
		config[field] = apiextensionsv1.JSON{Raw: []byte(text)}
	}
	return func(c *instancetype.Class, _ *instancetype.Cluster) {
		class := awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{Kubelet: config}}
		c.Kubelet = instancetype.NewClass(&class, nil).Kubelet
	}
}

func maxPods(n string) change { return kubelet(map[string]string{"maxPods": n}) }

func reserveENIs(n int64) change {
	return func(_ *instancetype.Class, c *instancetype.Cluster) { c.ReservedENIs = n }
}

// interfaces is a class with a primary interface, and one for EFA on each card.
func interfaces(efaCards ...int32) change {
	return func(c *instancetype.Class, _ *instancetype.Cluster) {
		c.Interfaces = []*awsv1.NetworkInterface{{InterfaceType: awsv1.InterfaceTypeInterface}}
		for _, card := range efaCards {
			c.Interfaces = append(c.Interfaces, &awsv1.NetworkInterface{
				NetworkCardIndex: card, DeviceIndex: 1, InterfaceType: awsv1.InterfaceTypeEFAOnly,
			})
		}
	}
}

func raid0(c *instancetype.Class, _ *instancetype.Cluster) { c.RAID0 = true }

// disk is "size@device", with a leading "root:" for the root volume.
type disk struct {
	device, size string
	root         bool
}

func disks(list ...disk) change {
	return func(c *instancetype.Class, _ *instancetype.Cluster) {
		for _, d := range list {
			m := &awsv1.BlockDeviceMapping{RootVolume: d.root, EBS: &awsv1.BlockDevice{Encrypted: new(true)}}
			if d.device != "" {
				m.DeviceName = &d.device
			}
			if d.size != "" {
				m.EBS.VolumeSize = new(resource.MustParse(d.size))
			}
			c.Disks = append(c.Disks, m)
		}
	}
}

// Figures of a type that a case can name.
func pods(it *cloud.InstanceType) int64 { return value(it.Capacity, corev1.ResourcePods) }
func ephemeral(it *cloud.InstanceType) int64 {
	return value(it.Capacity, corev1.ResourceEphemeralStorage)
}
func memory(it *cloud.InstanceType) int64 { return value(it.Capacity, corev1.ResourceMemory) }
func kubeCPU(it *cloud.InstanceType) int64 {
	q := it.Overhead.KubeReserved["cpu"]
	return q.MilliValue()
}
func kubeMem(it *cloud.InstanceType) int64 { return value(it.Overhead.KubeReserved, "memory") }
func kubeDisk(it *cloud.InstanceType) int64 {
	return value(it.Overhead.KubeReserved, "ephemeral-storage")
}
func systemCPU(it *cloud.InstanceType) int64 {
	return value(it.Overhead.SystemReserved, "cpu")
}
func systemSize(it *cloud.InstanceType) int64 { return int64(len(it.Overhead.SystemReserved)) }
func evictMem(it *cloud.InstanceType) int64   { return value(it.Overhead.EvictionThreshold, "memory") }
func evictDisk(it *cloud.InstanceType) int64 {
	return value(it.Overhead.EvictionThreshold, "ephemeral-storage")
}
func lostMemory(it *cloud.InstanceType) int64 { return value(it.Overhead.Total(), "memory") }
func has(name corev1.ResourceName) func(*cloud.InstanceType) int64 {
	return func(it *cloud.InstanceType) int64 { return value(it.Capacity, name) }
}

func TestResources(t *testing.T) {
	const al2, al2023, bottlerocket, windows, custom = awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket,
		awsv1.AMIFamilyWindows2022, awsv1.AMIFamilyCustom
	w := newWorld(t)
	for _, c := range []struct {
		name, instanceType string
		family             awsv1.AMIFamily
		change             change
		figure             func(*cloud.InstanceType) int64
		want               int64
	}{
		{"spec 65/24 an expression leaves the default", "t3.large", al2023, maxPods(`"vcpus * 10"`), pods, 35},
		{"spec 65/31 default", "t3.large", al2023, none, pods, 35},
		{"spec 65/31 one reserved", "t3.large", al2023, reserveENIs(1), pods, 24},
		{"spec 65/31 all reserved", "t3.large", al2023, reserveENIs(1000000), pods, 0},
		{"spec 65/32 cpu", "m5.xlarge", al2023, none, kubeCPU, 80},
		{"spec 65/32 memory", "m5.xlarge", al2023, none, kubeMem, 893 * mi},
		{"spec 65/32 disk", "m5.xlarge", al2023, none, kubeDisk, gi},
		{"spec 65/32 eviction", "m5.xlarge", al2023, none, evictMem, 100 * mi},
		{"spec 65/32 total", "m5.xlarge", al2023, none, lostMemory, 993 * mi},
		{"spec 65/33 Bottlerocket", "m5.xlarge", bottlerocket, maxPods("110"), lostMemory, 1565 * mi},
		{"spec 65/33 AL2023", "m5.xlarge", al2023, maxPods("110"), lostMemory, 993 * mi},
		{"spec 65/34 AL2", "t3.large", al2, reserveENIs(1), kubeMem, 640 * mi},
		{"spec 65/34 AL2023", "t3.large", al2023, reserveENIs(1), kubeMem, 640 * mi},
		{"spec 65/34 Custom", "t3.large", custom, reserveENIs(1), kubeMem, 640 * mi},
		{"spec 65/34 Bottlerocket", "t3.large", bottlerocket, reserveENIs(1), kubeMem, 519 * mi},
		{"spec 65/34 Windows", "t3.large", windows, reserveENIs(1), kubeMem, 1465 * mi},
		{"spec 65/35 AL2", "t3.large", al2, maxPods("10"), kubeMem, 640 * mi},
		{"spec 65/35 AL2023", "t3.large", al2023, maxPods("10"), kubeMem, 640 * mi},
		{"spec 65/35 Custom", "t3.large", custom, maxPods("10"), kubeMem, 640 * mi},
		{"spec 65/35 Bottlerocket", "t3.large", bottlerocket, maxPods("10"), kubeMem, 365 * mi},
		{"spec 65/35 Windows", "t3.large", windows, maxPods("10"), kubeMem, 365 * mi},
		{"spec 65/36 per core", "t3.large", al2023, kubelet(map[string]string{"podsPerCore": "4"}), pods, 8},
		{"spec 65/36 both", "t3.large", al2023, kubelet(map[string]string{"podsPerCore": "4", "maxPods": "6"}), pods, 6},
		{"spec 65/36 zero", "t3.large", al2023, kubelet(map[string]string{"podsPerCore": "0"}), pods, 35},
		{"spec 65/36 Bottlerocket", "t3.large", bottlerocket, kubelet(map[string]string{"podsPerCore": "4"}), pods, 35},
		{"spec 65/37 default", "m6idn.32xlarge", al2023, none, pods, 394},
		{"spec 65/37 other card", "m6idn.32xlarge", al2023, interfaces(1), pods, 394},
		{"spec 65/37 first card", "m6idn.32xlarge", al2023, interfaces(0), pods, 345},
		{"spec 65/38 local disks", "m6idn.32xlarge", al2023, raid0, ephemeral, 7_600_000_000_000},
		{"spec 65/38 no local disks", "m5.large", al2023, raid0, ephemeral, 20 * gi},
		{"spec 65/39 half", "t3.large", al2023, kubelet(map[string]string{"evictionHard": `{"memory.available":"50%"}`}), evictMem, 7577 * mi / 2},
		{"spec 65/39 off", "t3.large", al2023, kubelet(map[string]string{"evictionHard": `{"memory.available":"100%"}`}), evictMem, 0},
		{"spec 65/39 quantity", "t3.large", al2023, kubelet(map[string]string{"evictionHard": `{"memory.available":"500Mi"}`}), evictMem, 500 * mi},
		{"spec 65/39 disk", "t3.large", al2023, kubelet(map[string]string{"evictionHard": `{"nodefs.available":"10%"}`}), evictDisk, 2 * gi},
		{"spec 65/39 disk by default", "t3.large", al2023, none, evictDisk, 2 * gi},
		{"percentages are exact, rounded up", "t3.large", al2023, kubelet(map[string]string{"evictionHard": `{"nodefs.available":"0.7%"}`}), evictDisk, 150323856},
		{"spec 65/40 soft only", "t3.large", al2023, kubelet(map[string]string{"evictionSoft": `{"memory.available":"500Mi"}`}), evictMem, 100 * mi},
		{"spec 65/40 soft off", "t3.large", al2023, kubelet(map[string]string{"evictionSoft": `{"memory.available":"100%"}`}), evictMem, 100 * mi},
		{"spec 65/41", "t3.large", al2023, kubelet(map[string]string{"evictionHard": `{"nodefs.available":"20%"}`}), evictMem, 100 * mi},
		{"spec 65/42 cpu", "m5.xlarge", al2023, kubelet(map[string]string{"kubeReserved": `{"cpu":"2"}`}), kubeCPU, 2000},
		{"spec 65/42 memory", "m5.xlarge", al2023, kubelet(map[string]string{"kubeReserved": `{"cpu":"2"}`}), kubeMem, 893 * mi},
		{"spec 65/42 disk", "m5.xlarge", al2023, kubelet(map[string]string{"kubeReserved": `{"cpu":"2"}`}), kubeDisk, gi},
		{"spec 65/42 an expression leaves the default", "m5.xlarge", al2023, kubelet(map[string]string{"kubeReserved": `{"cpu":"vcpus * 30"}`}), kubeCPU, 80},
		{"spec 65/42 system", "m5.xlarge", al2023, kubelet(map[string]string{"systemReserved": `{"cpu":"2"}`}), systemCPU, 2},
		{"spec 65/42 system only", "m5.xlarge", al2023, kubelet(map[string]string{"systemReserved": `{"cpu":"2"}`}), systemSize, 1},
		{"spec 65/42 system by default", "m5.xlarge", al2023, none, systemSize, 0},
		{"spec 65/43", "m5.large", al2023, disks(disk{device: "/dev/xvda"}), ephemeral, 20 * gi},
		{"size of the family's device", "m5.large", al2023, disks(disk{device: "/dev/xvdz", size: "70Gi"}, disk{device: "/dev/xvda", size: "30G"}), ephemeral, 30e9},
		{"spec 65/44 last", "m5.large", custom, disks(disk{"/dev/a", "100Gi", false}, disk{"/dev/b", "50Gi", false}), ephemeral, 50 * gi},
		{"spec 65/44 root", "m5.large", custom, disks(disk{"/dev/a", "100Gi", true}, disk{"/dev/b", "50Gi", false}), ephemeral, 100 * gi},
		{"last without a size", "m5.large", custom, disks(disk{"/dev/a", "100Gi", false}, disk{"/dev/b", "", false}), ephemeral, 20 * gi},
		{"spec 65/45", "m5.large", bottlerocket, none, ephemeral, 20 * gi},
		{"spec 65/45 the system's disk does not count", "m5.large", bottlerocket, disks(disk{device: "/dev/xvda", size: "4Gi"}, disk{device: "/dev/xvdb", size: "90Gi"}), ephemeral, 90 * gi},
		{"spec 65/46", "m6g.large", al2023, none, memory, 7518 * mi},
		{"spec 65/47 t3", "t3.large", al2023, none, has(instancetype.ResourcePodENI), 0},
		{"spec 65/47 m5", "m5.large", al2023, none, has(instancetype.ResourcePodENI), 9},
		{"spec 65/48 GPU", "g4dn.8xlarge", al2023, none, has(instancetype.ResourceNvidiaGPU), 1},
		{"spec 65/48 inf2", "inf2.xlarge", al2023, none, has(instancetype.ResourceNeuron), 1},
		{"spec 65/48 inf2 cores", "inf2.xlarge", al2023, none, has(instancetype.ResourceNeuronCore), 2},
		{"spec 65/48 trn1", "trn1.32xlarge", al2023, none, has(instancetype.ResourceNeuron), 16},
		{"spec 65/48 trn1 cores", "trn1.32xlarge", al2023, none, has(instancetype.ResourceNeuronCore), 32},
		{"spec 65/48 dl1", "dl1.24xlarge", al2023, none, has(instancetype.ResourceGaudi), 8},
		{"spec 65/48 p5", "p5.48xlarge", al2023, none, has(instancetype.ResourceEFA), 32},
		{"listed EFA interfaces", "p5.48xlarge", al2023, interfaces(1, 2), has(instancetype.ResourceEFA), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			class, cluster := plain(c.family), defaults()
			c.change(class, cluster)
			if got := c.figure(instancetype.New(w.facts(t, c.instanceType), class, cluster)); got != c.want {
				t.Errorf("%s: %d, want %d", c.instanceType, got, c.want)
			}
		})
	}
}

// spec 65/50: what nodes were seen to have replaces the estimate. The smallest
// counts, and other images are another matter.
func TestMemory(t *testing.T) {
	var m instancetype.Memory
	w, class, now := newWorld(t), plain(awsv1.AMIFamilyAL2023), time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	class.Kubelet.EvictionHard = map[string]string{"memory.available": "50%"}
	check := func(images string, now time.Time, want int64) {
		t.Helper()
		facts := w.facts(t, "m5.large")
		facts.MemoryBytes = m.Bytes("m5.large", images, now)
		it := instancetype.New(facts, class, defaults())
		if got := memory(it); got != want {
			t.Errorf("%d bytes of memory, want %d", got, want)
		}
		if got := evictMem(it); got != 7577*mi/2 {
			t.Errorf("the threshold is %d", got)
		}
	}
	check("ami-1", now, 7577*mi)
	m.Saw("m5.large", "ami-1", 7400*mi, now)
	check("ami-1", now, 7400*mi)
	m.Saw("m5.large", "ami-1", 7500*mi, now)
	check("ami-1", now, 7400*mi)
	m.Saw("m5.large", "ami-1", 7300*mi, now)
	check("ami-1", now, 7300*mi)
	m.Saw("c5.large", "ami-1", 1*mi, now)
	check("ami-1", now, 7300*mi)
	check("ami-2", now, 7577*mi)

	later := now.Add(59 * 24 * time.Hour)
	check("ami-1", later, 7300*mi)
	m.Saw("m5.large", "ami-1", 7300*mi, later) // lasts longer
	check("ami-1", later.Add(59*24*time.Hour), 7300*mi)
	check("ami-1", later.Add(61*24*time.Hour), 7577*mi)
	m.Saw("m5.large", "ami-1", 7450*mi, later.Add(61*24*time.Hour))
	check("ami-1", later.Add(61*24*time.Hour), 7450*mi)
}

func TestSupported(t *testing.T) {
	w := newWorld(t)
	group := func(strategy string) change {
		return func(c *instancetype.Class, _ *instancetype.Cluster) {
			c.PlacementGroup = &instancetype.PlacementGroup{ID: "pg-1", Strategy: strategy}
		}
	}
	nested := func(c *instancetype.Class, _ *instancetype.Cluster) { c.NestedVirtualization = true }
	enclaves := func(c *instancetype.Class, _ *instancetype.Cluster) { c.Enclaves = true }
	tracking := func(c *instancetype.Class, _ *instancetype.Cluster) { c.ConnectionTracking = true }
	card := func(card, device int32) change {
		return func(c *instancetype.Class, _ *instancetype.Cluster) {
			c.Interfaces = []*awsv1.NetworkInterface{{NetworkCardIndex: card, DeviceIndex: device, InterfaceType: awsv1.InterfaceTypeInterface}}
		}
	}
	for _, c := range []struct {
		instanceType string
		family       awsv1.AMIFamily
		change       change
		want         bool
	}{
		{"a1.large", awsv1.AMIFamilyAL2023, none, false},
		{"a1.large", awsv1.AMIFamilyBottlerocket, none, true},
		{"m5.large", awsv1.AMIFamilyAL2023, none, true},
		{"m5.large", awsv1.AMIFamilyAL2023, nested, false},
		{"m8i.large", awsv1.AMIFamilyAL2023, nested, true},
		{"m5.xlarge", awsv1.AMIFamilyAL2023, enclaves, true}, // spec 48/4
		{"t3.large", awsv1.AMIFamilyAL2023, enclaves, false}, // spec 48/4
		{"t3.large", awsv1.AMIFamilyAL2023, none, true},      // spec 48/4
		{"m5.large", awsv1.AMIFamilyAL2023, tracking, true},
		{"m4.large", awsv1.AMIFamilyAL2023, tracking, false},
		{"m5.metal", awsv1.AMIFamilyAL2023, tracking, false},
		{"m5.large", awsv1.AMIFamilyAL2023, group("cluster"), true},
		{"t3.large", awsv1.AMIFamilyAL2023, group("cluster"), false},
		{"t3.large", awsv1.AMIFamilyAL2023, group("spread"), true},
		{"m6idn.32xlarge", awsv1.AMIFamilyAL2023, interfaces(0, 1), true},
		{"m6idn.32xlarge", awsv1.AMIFamilyAL2023, interfaces(2), false},
		{"m5.large", awsv1.AMIFamilyAL2023, interfaces(0), false}, // no EFA
		{"m5.large", awsv1.AMIFamilyAL2023, card(0, 2), true},
		{"m5.large", awsv1.AMIFamilyAL2023, card(0, 3), false},
		{"m5.large", awsv1.AMIFamilyAL2023, card(1, 0), false},
		{"m3.large", awsv1.AMIFamilyAL2023, card(0, 0), false}, // no ENA
		{"m3.large", awsv1.AMIFamilyAL2023, none, true},
	} {
		class, cluster := plain(c.family), defaults()
		c.change(class, cluster)
		facts := w.facts(t, c.instanceType)
		if got := instancetype.Supported(facts, class); got != c.want {
			t.Errorf("%s: supported %v, want %v by %+v", c.instanceType, got, c.want, class)
		}
		for _, o := range instancetype.Offerings(facts, class, openMarket()) {
			if o.Available != (c.want && o.Zone() != "us-east-1c") {
				t.Errorf("%s: available %v: %s", c.instanceType, o.Available, o.Requirements)
			}
		}
	}
	if got, _ := instancetype.New(w.facts(t, "a1.large"), plain(awsv1.AMIFamilyAL2023), defaults()).Requirements.Value(model.LabelArch); got != "arm64" {
		t.Errorf("a type that is not supported has the architecture %q", got)
	}
}
