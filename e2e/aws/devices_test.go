// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/cloud/ec2"
	"karpenter/e2e/harness"
)

// sharesOfGPU is how many claims can have a part of one GPU on nodes of the NodePool
// for inference.
const sharesOfGPU = 4

// survives is how long an instance of a group that cannot start may be there.
const survives = 5 * time.Minute

// TestDevices is what make demo-gpu shows: GPUs by ResourceClaims and a training group,
// on AWS in memory with real prices, real control plane and scheduler. Only kubelets
// and the driver are simulated: it publishes the GPUs of every node that has some.
//
// Inference gets parts of GPUs, and one GPU for two pods; other pods request a GPU as an
// extended resource that the DeviceClass serves. A group of four trains; a
// spot interruption takes a node of it, and the group gets another. Another group finds
// capacity for three of its four pods: none of it starts, and what was launched for
// it is gone within five minutes.
// spec 46/10, 46/45, 46/52, 46/58, 46/61, 46/69, 46/73, 46/88, 46/103, 46/119.
func TestDevices(t *testing.T) {
	t.Parallel()
	if other := os.Getenv("SANDBOX_BIN"); other != "" {
		text, err := exec.CommandContext(t.Context(), other, "version").Output()
		must(t, err)
		v, err := version.ParseGeneric(strings.TrimSpace(string(text)))
		must(t, err)
		if v.LessThan(version.MajorMinor(1, 37)) {
			t.Skipf("Kubernetes %s has no PodGroups of scheduling.k8s.io/v1beta1", v)
		}
	}
	args := []string{"--pod-stop-delay=1s", "--job-duration=1h"}
	for _, of := range []string{"kube-apiserver", "kube-scheduler", "kube-controller-manager"} {
		args = append(args, "--extra-arg="+of+"=--feature-gates=GenericWorkload=true")
	}
	args = append(args, "--extra-arg=kube-apiserver=--runtime-config=scheduling.k8s.io/v1beta1=true")
	c, err := harness.Start(t.Context(), harness.Options{Kubelets: true, Args: args})
	must(t, err)
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	server := c.StartAWS(t, "--cluster-name", cluster)
	s := &gpuScene{scene: &scene{t, c, server, "gpus", time.Now()}}
	s.readPrices()
	s.Apply(t, fmt.Sprintf(gpuManifest, sharesOfGPU))
	v := c.Watch(t)
	go s.drive(t.Context())
	c.StartController(t, append(server.Environment(), "CLOUD_PROVIDER=aws", "CLUSTER_NAME="+cluster, "INTERRUPTION_QUEUE="+cluster)...)

	s.Apply(t, inference(8))
	v.Until("inference runs", patience, s.run(v, "inference", 8))
	s.stage(v, "8 pods of inference share GPUs, a quarter each", "inference", 8)
	if n := s.gpusOf(v, "inference"); n != 8/sharesOfGPU {
		t.Errorf("8 pods with a quarter of a GPU each run on %d GPUs", n)
	}

	s.Apply(t, pair)
	v.Until("two pods share a claim", patience, s.run(v, "pair", 2))
	s.stage(v, "2 pods share one ResourceClaim", "pair", 2)

	known := len(v.Claims())
	s.Apply(t, extended)
	v.Until("pods get devices for an extended resource", patience, s.run(v, "extended", 2))
	s.stage(v, "2 pods request the extended resource "+extendedName+", without a claim", "extended", 2)
	for _, claim := range v.Claims() {
		_, asks := claim.Spec.Resources.Requests[extendedName]
		if drivers := claim.RequestedDRADrivers(); asks || !slices.Equal(drivers, []string{"gpu.nvidia.com"}) {
			t.Errorf("NodeClaim %s requests %s: %v; it waits for the drivers %v", claim.Name, extendedName, asks, drivers)
		}
	}
	if n := len(v.Claims()) - known; n > 2 {
		t.Errorf("%d nodes for 2 pods", n)
	}

	s.Apply(t, group("train", 4))
	v.Until("the group trains", patience, s.run(v, "train", 4))
	s.stage(v, "a group of 4 trains", "train", 4)

	gone := s.nodeOf(v, "train")
	s.post("interrupt", "instance="+gone.Spec.ProviderID[strings.LastIndex(gone.Spec.ProviderID, "/")+1:])
	v.Until("the group has another node", patience, func() string {
		if slices.ContainsFunc(v.Nodes(), func(n corev1.Node) bool { return n.Name == gone.Name }) {
			return "node " + gone.Name + " is still there"
		}
		return s.run(v, "train", 4)()
	})
	s.stage(v, "spot took "+gone.Name+" away, and the group trains again", "train", 4)

	before := len(v.Nodes())
	s.post("stock", "type=&zone=&capacity-type=&left=0")
	s.post("stock", fmt.Sprintf("type=g4dn.xlarge&zone=%s&capacity-type=on-demand&left=3", s.zones[0]))
	s.Apply(t, group("second", 4))
	asked, most := time.Now(), before
	v.Until("three nodes are launched for the second group", patience, func() string {
		if most = max(most, len(v.Claims())); most < before+3 {
			return fmt.Sprintf("%d NodeClaims", most)
		}
		return ""
	})
	s.stage(v, "a second group finds capacity for 3 of its 4 pods", "second", 0)
	v.Until("what was launched for the second group is returned", survives-time.Since(asked), func() string {
		if n := len(v.Claims()); n > before {
			return fmt.Sprintf("%d NodeClaims, %d before", n, before)
		}
		return ""
	})
	s.stage(v, "it cannot start, and its nodes are returned", "second", 0)
	if why := s.run(v, "second", 0)(); why != "" {
		t.Errorf("of a group that cannot start: %s", why)
	}
}

// gpuScene is a scene with prices.
type gpuScene struct {
	*scene
	prices map[string]float64 // the least of each type
	zones  []string
}

// readPrices asks the account what an instance costs at least.
func (s *gpuScene) readPrices() {
	s.Helper()
	s.prices = map[string]float64{}
	zones := map[string]bool{}
	s.lines("prices", func(words []string) {
		dollars, err := strconv.ParseFloat(words[3], 64)
		must(s.T, err)
		if known, ok := s.prices[words[0]]; !ok || dollars < known {
			s.prices[words[0]] = dollars
		}
		zones[words[1]] = true
	})
	s.zones = slices.Sorted(maps.Keys(zones))
}

// lines calls f with the words of each line of an answer of awssim.
func (s *gpuScene) lines(what string, f func(words []string)) {
	s.Helper()
	answer, err := http.Get(s.server.URL + "/_awssim/" + what)
	must(s.T, err)
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		f(strings.Fields(lines.Text()))
	}
}

func (s *gpuScene) post(what, query string) {
	s.Helper()
	answer, err := http.Post(s.server.URL+"/_awssim/"+what+"?"+query, "", nil)
	must(s.T, err)
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		s.Fatalf("%s: %s", what, answer.Status)
	}
}

// run reports what is missing until so many pods of an app run, and no others exist.
func (s *gpuScene) run(v *harness.View, app string, want int) func() string {
	return func() string {
		n := 0
		for _, p := range v.Pods(s.name) {
			if p.Labels["app"] == app && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
				n++
			}
		}
		if n == want {
			return ""
		}
		return fmt.Sprintf("%d pods of %s run; want %d", n, app, want)
	}
}

// nodeOf returns a node that a pod of the app runs on.
func (s *gpuScene) nodeOf(v *harness.View, app string) corev1.Node {
	s.Helper()
	for _, p := range v.Pods(s.name) {
		for _, n := range v.Nodes() {
			if p.Labels["app"] == app && n.Name == p.Spec.NodeName {
				return n
			}
		}
	}
	s.Fatalf("no pod of %s runs", app)
	return corev1.Node{}
}

// gpusOf returns how many GPUs the claims of the app's pods have together.
func (s *gpuScene) gpusOf(v *harness.View, app string) int {
	s.Helper()
	mine, devices := map[string]bool{}, map[string]bool{}
	for _, p := range v.Pods(s.name) {
		for _, r := range p.Status.ResourceClaimStatuses {
			if p.Labels["app"] == app && r.ResourceClaimName != nil {
				mine[*r.ResourceClaimName] = true
			}
		}
	}
	var list resourcev1.ResourceClaimList
	must(s.T, s.Client.List(s.Context(), &list, client.InNamespace(s.name)))
	for _, c := range list.Items {
		if mine[c.Name] && c.Status.Allocation != nil {
			for _, r := range c.Status.Allocation.Devices.Results {
				devices[r.Pool+"/"+r.Device] = true
			}
		}
	}
	return len(devices)
}

// stage tells what has come about, the nodes that there are, and what they cost beside
// a node for each pod that has run so far, the cheapest with a GPU.
func (s *gpuScene) stage(v *harness.View, what, app string, pods int) {
	s.Helper()
	dollars := 0.0
	s.lines("bill", func(words []string) {
		price, err := strconv.ParseFloat(words[1], 64)
		must(s.T, err)
		dollars += price
	})
	whole := 0
	for _, p := range v.Pods(s.name) {
		if p.Status.Phase == corev1.PodRunning {
			whole++
		}
	}
	s.Logf("%4.0f s  %s: $%.3f/h for all; with a whole GPU for each pod, one pod after the other: $%.3f/h", time.Since(s.began).Seconds(), what, dollars, float64(whole)*s.cheapest())
	on := map[string]int{}
	for _, p := range v.Pods(s.name) {
		on[p.Spec.NodeName]++
	}
	for _, n := range v.Nodes() {
		s.Logf("        node %s  %s  %s  %s  %d pods", n.Name, n.Labels[corev1.LabelInstanceTypeStable], n.Labels["karpenter.sh/capacity-type"], n.Labels[corev1.LabelTopologyZone], on[n.Name])
	}
}

// cheapest returns the least price of a node with a GPU.
func (s *gpuScene) cheapest() float64 {
	s.Helper()
	least := 0.0
	for name, of := range s.tables() {
		if price, sold := s.prices[name]; of.GPUs != nil && sold && inPool(name) && (least == 0 || price < least) {
			least = price
		}
	}
	return least
}

// inPool reports whether the NodePools allow the type.
func inPool(name string) bool {
	family, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{"g4dn", "g5", "g6"}, family)
}

func (s *gpuScene) tables() map[string]ec2.Devices {
	s.Helper()
	tables, err := ec2.DevicesOfTypes()
	must(s.T, err)
	return tables.Types
}

// drive is NVIDIA's driver on all nodes: it publishes their GPUs, in parts on those of
// the NodePool for inference.
func (s *gpuScene) drive(ctx context.Context) {
	tables, err := ec2.DevicesOfTypes()
	if err != nil {
		s.Error(err)
		return
	}
	for ctx.Err() == nil {
		var nodes corev1.NodeList
		if err := s.Client.List(ctx, &nodes); err == nil {
			for i := range nodes.Items {
				n := &nodes.Items[i]
				if of := tables.Types[n.Labels[corev1.LabelInstanceTypeStable]].GPUs; of != nil {
					if err := s.Client.Create(ctx, published(n, of)); err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
						s.Errorf("publish the devices of %s: %v", n.Name, err)
						return
					}
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// published is what the driver publishes of the node.
func published(n *corev1.Node, of *ec2.GPUs) *resourcev1.ResourceSlice {
	out := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: n.Name + "-gpus", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID, Controller: ptr.To(true)},
	}}}
	out.Spec = resourcev1.ResourceSliceSpec{
		Driver: "gpu.nvidia.com", NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, Generation: 1, ResourceSliceCount: 1},
	}
	text := func(v string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &v} }
	for i := range of.PCIeRoots {
		d := resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": text("gpu"), "productName": text(of.ProductName), "architecture": text(of.Architecture), "uuid": text(fmt.Sprintf("GPU-%s-%d", n.UID, i)),
			"driverVersion": {VersionValue: ptr.To("580.65.6")},
		}, Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(of.Memory)}}}
		if n.Labels["karpenter.sh/nodepool"] == "inference" {
			whole := resource.MustParse(of.Memory)
			q := func(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }
			d.AllowMultipleAllocations = ptr.To(true)
			d.Capacity["memory"] = resourcev1.DeviceCapacity{Value: whole, RequestPolicy: &resourcev1.CapacityRequestPolicy{
				Default: q("0"), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: q("0"), Max: &whole, Step: q("1Mi")}}}
			all := resource.NewQuantity(sharesOfGPU, resource.DecimalSI)
			d.Capacity["shares"] = resourcev1.DeviceCapacity{Value: *all, RequestPolicy: &resourcev1.CapacityRequestPolicy{
				Default: q("1"), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: q("1"), Max: all, Step: q("1")}}}
		}
		out.Spec.Devices = append(out.Spec.Devices, d)
	}
	return out
}

// gpuManifest is two NodePools, one with parts of GPUs, and what claims name.
const gpuManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: gpus}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: gpus}
spec:
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: pair, namespace: gpus}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: parts, annotations: {karpenter.k8s.aws/nvidia-consumable-capacity: "%d"}}
spec:
  role: KarpenterNodeRole-prod
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: whole}
spec:
  role: KarpenterNodeRole-prod
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: inference}
spec:
  template:
    metadata: {labels: {for: inference}}
    spec:
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g4dn, g5, g6]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: parts}
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%%}, {nodes: "0", reasons: [Drifted, Underutilized]}]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: whole}
spec:
  template:
    metadata: {labels: {for: training}}
    spec:
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g4dn, g5, g6]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: whole}
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%%}, {nodes: "0", reasons: [Drifted, Underutilized]}]}
`

// inference is pods that each have a part of a GPU.
func inference(n int) string {
	return deployment("inference", n, "inference", "resourceClaimTemplateName: gpu")
}

// extendedName is the extended resource that the DeviceClass always serves.
const extendedName = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"

// extended is two pods without claims.
const extended = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: extended, namespace: gpus}
spec:
  replicas: 2
  selector: {matchLabels: {app: extended}}
  template:
    metadata: {labels: {app: extended}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {for: training}
      containers: [{name: main, image: main, resources: {requests: {cpu: 300m, memory: 1Gi}, limits: {deviceclass.resource.kubernetes.io/gpu.nvidia.com: 1}}}]
`

// pair is two pods that have one claim together.
var pair = deployment("pair", 2, "training", "resourceClaimName: pair")

func deployment(name string, n int, pool, claim string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: gpus}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {for: %[3]s}
      resourceClaims: [{name: gpu, %[4]s}]
      containers: [{name: main, image: main, resources: {requests: {cpu: 300m, memory: 1Gi}, claims: [{name: gpu}]}}]
`, name, n, pool, claim)
}

// group is a Job whose pods, on a node each, start together or not at all.
func group(name string, n int) string {
	return fmt.Sprintf(`
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: %[1]s, namespace: gpus}
spec: {schedulingPolicy: {gang: {minCount: %[2]d}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, namespace: gpus}
spec:
  parallelism: %[2]d
  completions: %[2]d
  backoffLimit: 100
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      nodeSelector: {for: training}
      schedulingGroup: {podGroupName: %[1]s}
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %[1]s}}}]}}
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
      containers: [{name: main, image: main, resources: {requests: {cpu: "2", memory: 4Gi}, claims: [{name: gpu}]}}]
`, name, n)
}
