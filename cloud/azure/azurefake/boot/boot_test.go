// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"log/slog"
	"testing"
	"time"

	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azurevm"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLife: a machine becomes a node once it runs; when its virtual machine is
// taken away, its kubelet is dead, and the node goes when the cluster has noticed.
func TestLife(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	cloud := azurefake.New(azurefake.Config{
		Clock: clock, Subscription: "sub", ResourceGroup: "Shop", Cluster: "prod", NodeGroup: "MC_Shop", Region: "eastus", Pools: map[string]string{"machines": "Machines"},
		SKUs: []azurevm.SKU{{Name: "Standard_D4s_v3", Family: "f", VCPUs: 4, MemoryGiB: 16, Arch: "amd64", Zones: []string{"1"}, LowPriority: true}},
	})
	machines, err := aks.NewMachinesClient("sub", cloud.Credential(), cloud.Options())
	must(t, err)
	_, err = machines.BeginCreateOrUpdate(t.Context(), "Shop", "prod", "machines", "a", aks.Machine{
		Zones: []*string{new("1")},
		Properties: &aks.MachineProperties{
			Hardware: &aks.MachineHardwareProfile{VMSize: new("Standard_D4s_v3")}, Priority: new(aks.ScaleSetPrioritySpot), NodeImageVersion: new("image"),
			OperatingSystem: &aks.MachineOSProfile{OSDiskSizeGB: new(int32(128))},
			Kubernetes: &aks.MachineKubernetesProfile{
				NodeLabels: map[string]*string{"karpenter.sh/nodepool": new("default")}, MaxPods: new(int32(30)),
				NodeInitializationTaints: []*string{new("karpenter.sh/unregistered:NoExecute"), new("team=web:NoSchedule")},
			},
		},
	}, nil)
	must(t, err)
	kube := fake.NewClientset()
	l := &loop{Config: Config{Azure: cloud, Kube: kube, Region: "eastus", Clock: clock, Log: slog.New(slog.DiscardHandler)}, booted: map[string]bool{}, joining: map[string]joining{}}
	nodes := func() []corev1.Node {
		t.Helper()
		must(t, l.look(t.Context()))
		list, err := kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		return list.Items
	}
	if got := nodes(); len(got) != 0 {
		t.Fatalf("a machine that is being created has nodes %v", got)
	}
	clock.Step(azurefake.CreationTime)
	got := nodes()
	if len(got) != 1 {
		t.Fatalf("a machine that runs has nodes %v", got)
	}
	n := &got[0]
	labels := map[string]string{
		"karpenter.sh/nodepool": "default", "topology.kubernetes.io/zone": "eastus-1", "node.kubernetes.io/instance-type": "Standard_D4s_v3",
		"kubernetes.azure.com/scalesetpriority": "spot", "kubernetes.azure.com/mode": "user",
	}
	for key, want := range labels {
		if n.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, n.Labels[key], want)
		}
	}
	if len(n.Spec.Taints) != 2 || n.Spec.Taints[1] != (corev1.Taint{Key: "team", Value: "web", Effect: "NoSchedule"}) {
		t.Errorf("taints are %v", n.Spec.Taints)
	}
	// Spec 71 §3.4: 140m and 2662Mi are reserved, and 750Mi kept free.
	cpu, memory := n.Status.Allocatable[corev1.ResourceCPU], n.Status.Allocatable[corev1.ResourceMemory]
	if cpu.MilliValue() != 3860 || memory.Value() != (16*1024-2662-750)*mebi || n.Status.Capacity.Pods().Value() != 30 {
		t.Errorf("allocatable is %v", n.Status.Allocatable)
	}

	cloud.Evict("machines", "a")
	if got := nodes(); len(got) != 1 || got[0].Annotations[heartbeatKey] != dead {
		t.Fatalf("the kubelet of an evicted machine is not dead: %v", got)
	}
	n.Annotations[heartbeatKey] = dead
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	_, err = kube.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
	must(t, err)
	if nodes(); len(nodes()) != 0 {
		t.Error("the node of an evicted machine stays")
	}
}
