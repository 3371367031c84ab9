// SPDX-License-Identifier: Apache-2.0

package devices_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
	"karpenter/kube/devices"
	"karpenter/model"
)

// read decodes YAML as the API server does.
func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return out
}

func newStore() *devices.Store { return devices.New(v1.DefaultLabels()) }

const gpuClass = `{metadata: {name: gpu}, spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}}`

// slice is one of a pool of so many, with devices.
func slice(t *testing.T, name, where string, generation, count int, names ...string) *resourcev1.ResourceSlice {
	t.Helper()
	s := read[resourcev1.ResourceSlice](t, fmt.Sprintf(
		`{metadata: {name: %s}, spec: {driver: gpu.example.com, pool: {name: gpus, generation: %d, resourceSliceCount: %d}, %s}}`, name, generation, count, where))
	for _, n := range names {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: n})
	}
	return s
}

// pod is one that claims by name or by template.
func pod(name string, claims ...corev1.PodResourceClaim) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{ResourceClaims: claims}}
}

func named(claim string) corev1.PodResourceClaim {
	return corev1.PodResourceClaim{Name: "gpu", ResourceClaimName: &claim}
}

func claim(t *testing.T, name string) *resourcev1.ResourceClaim {
	t.Helper()
	return read[resourcev1.ResourceClaim](t, fmt.Sprintf(
		`{metadata: {namespace: default, name: %s}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}`, name))
}

// TestPodsWaitForDeviceClaims: pods are not planned before their claims are
// there and theirs. spec 20/157, 45/39, 46/5, 46/6, 46/7, 46/8, 46/53.
func TestPodsWaitForDeviceClaims(t *testing.T) {
	s := newStore()
	s.SetClass(read[resourcev1.DeviceClass](t, gpuClass))
	waits := func(p *corev1.Pod, want bool, claims int) {
		t.Helper()
		if a := s.Of(p); a.Waits != want || len(a.Claims) != claims || len(a.Refused) > 0 {
			t.Errorf("%s: %+v, want waits=%v and %d claims", p.Name, a, want, claims)
		}
	}
	direct := pod("direct", named("mine"))
	s.SetPod(direct)
	waits(direct, true, 0)
	if c := s.SetClaim(claim(t, "mine")); len(c.Pods) != 1 || c.Pods[0] != direct {
		t.Errorf("a claim appears: %v are told", c.Pods)
	}
	waits(direct, false, 1)

	template := pod("made", corev1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")})
	waits(template, true, 0)
	template.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu"}}
	waits(template, false, 0) // none is needed
	template.Status.ResourceClaimStatuses[0].ResourceClaimName = ptr.To("made-gpu")
	generated := claim(t, "made-gpu")
	generated.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "made", UID: "another", Controller: ptr.To(true)}}
	s.SetClaim(generated)
	waits(template, true, 0)
	generated = generated.DeepCopy()
	generated.OwnerReferences[0].UID = "made"
	s.SetClaim(generated)
	waits(template, false, 1)

	second := pod("second", named("mine"))
	s.SetPod(second)
	waits(second, false, 1)
	if got := s.Of(second).Claims[0].Shared; got != "default/mine" {
		t.Errorf("a claim of two pods is shared as %q", got)
	}
	first := direct.DeepCopy()
	first.Status.NominatedNodeName = "n1"
	if c := s.SetPod(first); len(c.Pods) != 1 || c.Pods[0] != second {
		t.Errorf("the first pod is nominated: %v are told", c.Pods)
	}
	waits(second, true, 1)
}

// TestUnsupportedDeviceClaims: what the scheduler would not understand, or wait
// for. spec 45/44, 46/9, 46/29, 46/48.
func TestUnsupportedDeviceClaims(t *testing.T) {
	for spec, want := range map[string]string{
		`{requests: [{name: r, exactly: {deviceClassName: odd}}]}`:                                                    "whose request r is for DeviceClass odd, which does not exist",
		`{requests: [{name: r}]}`:                                                                                     "whose request r is of an unknown kind",
		`{requests: [{name: r, exactly: {deviceClassName: gpu, allocationMode: Most}}]}`:                              "whose request r has the unknown allocationMode Most",
		`{requests: [{name: r, exactly: {deviceClassName: gpu, selectors: [{}]}}]}`:                                   "whose request r has a selector of an unknown kind",
		`{requests: [{name: r, exactly: {deviceClassName: gpu}}], constraints: [{}]}`:                                 "which has a constraint of an unknown kind",
		`{requests: [{name: r, exactly: {deviceClassName: gpu, capacity: {requests: {memory: "-1"}}}}]}`:              "whose request r asks for -1 of memory, which no device has",
		`{requests: [{name: r, exactly: {deviceClassName: gpu, capacity: {requests: {memory: 9E}}}}]}`:                "whose request r asks for 9E of memory, which no device has",
		`{requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu}, {name: b, deviceClassName: odd}]}]}`: "whose request r is for DeviceClass odd, which does not exist",
		`{requests: [{name: r, exactly: {deviceClassName: gpu, derivedAttributes: [{}]}}]}`:                           "whose request r has derivedAttributes (not supported yet)",
	} {
		s := newStore()
		s.SetClass(read[resourcev1.DeviceClass](t, gpuClass))
		s.SetClaim(read[resourcev1.ResourceClaim](t, fmt.Sprintf(`{metadata: {namespace: default, name: c}, spec: {devices: %s}}`, spec)))
		s.SetClaim(claim(t, "good"))
		if a := s.Of(pod("p", named("c"), named("good"))); len(a.Refused) != 1 || a.Refused[0] != "ResourceClaim default/c, "+want || len(a.Claims) != 1 {
			t.Errorf("%s: %+v, want %q", spec, a, want)
		}
	}
}

// TestAllocated: a claim with devices is used where they are, and belongs to the pod
// that moves only if no one else has it. spec 45/48, 45/54, 46/51, 46/54, 46/79, 46/80, 46/81.
func TestAllocated(t *testing.T) {
	allocated := func(reserved ...string) *resourcev1.ResourceClaim {
		c := claim(t, "c")
		c.Status.Allocation = read[resourcev1.AllocationResult](t, `{
			devices: {results: [{request: r, driver: gpu.example.com, pool: gpus, device: gpu-0}]},
			nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}`)
		for _, r := range reserved {
			kind, name, _ := strings.Cut(r, "/")
			ref := resourcev1.ResourceClaimConsumerReference{Resource: kind, Name: name, UID: types.UID(name)}
			if kind == "podgroups" {
				ref.APIGroup = "scheduling.k8s.io"
			}
			c.Status.ReservedFor = append(c.Status.ReservedFor, ref)
		}
		return c
	}
	on := func(name, node string) *corev1.Pod {
		p := pod(name, named("c"))
		p.Spec.NodeName = node
		return p
	}
	for name, tc := range map[string]struct {
		claim *resourcev1.ResourceClaim
		pods  []*corev1.Pod // the first is asked about
		anew  bool
	}{
		"a pod that waits":             {allocated(), []*corev1.Pod{on("a", "")}, false},
		"the only one that has it":     {allocated("pods/a"), []*corev1.Pod{on("a", "n1")}, true},
		"another one on the node":      {allocated("pods/a", "pods/b"), []*corev1.Pod{on("a", "n1"), on("b", "n1")}, true},
		"another one elsewhere":        {allocated("pods/a", "pods/b"), []*corev1.Pod{on("a", "n1"), on("b", "n2")}, false},
		"another one that nobody sees": {allocated("pods/a", "pods/b"), []*corev1.Pod{on("a", "n1")}, false},
		"a PodGroup":                   {allocated("podgroups/g"), []*corev1.Pod{on("a", "n1")}, false},
	} {
		s := newStore()
		s.SetClass(read[resourcev1.DeviceClass](t, gpuClass))
		s.SetSlice(slice(t, "s", "nodeName: n1", 1, 1, "gpu-0"))
		s.SetClaim(tc.claim)
		for _, p := range tc.pods {
			s.SetPod(p)
		}
		a := s.Of(tc.pods[0])
		here := []model.Requirements{{model.NewRequirement(model.FieldName, model.In, "n1")}}
		if tc.anew != (len(a.Claims) == 1) || !tc.anew && !cmp.Equal(a.Terms, here) {
			t.Errorf("%s: %+v, anew %v", name, a, tc.anew)
		}
	}
	s := newStore()
	full := allocated()
	for i := range 256 {
		full.Status.ReservedFor = append(full.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))})
	}
	s.SetClaim(full)
	if a := s.Of(on("late", "")); len(a.Refused) != 1 || !strings.Contains(a.Refused[0], "256 pods use") {
		t.Errorf("the 257th pod: %+v", a)
	}
	if a := s.Of(on("255", "")); len(a.Refused) != 0 {
		t.Errorf("one of the 256: %+v", a)
	}
}

// TestAlternativesOfMovedPods: a pod that moves is not planned with an alternative that it
// wants less than the one it has. spec 46/83.
func TestAlternativesOfMovedPods(t *testing.T) {
	for has, want := range map[string]int{"": 3, "r/large": 1, "r/middle": 2, "r/small": 3} {
		s := newStore()
		s.SetClass(read[resourcev1.DeviceClass](t, gpuClass))
		s.SetSlice(slice(t, "s", "nodeName: n1", 1, 1, "gpu-0"))
		c := read[resourcev1.ResourceClaim](t, `{metadata: {namespace: default, name: c}, spec: {devices: {requests: [{name: r, firstAvailable: [
			{name: large, deviceClassName: gpu}, {name: middle, deviceClassName: gpu}, {name: small, deviceClassName: gpu}]}]}}}`)
		p := pod("p", named("c"))
		if has != "" {
			p.Spec.NodeName = "n1"
			c.Status.Allocation = read[resourcev1.AllocationResult](t, `{devices: {results: [{request: `+has+`, driver: gpu.example.com, pool: gpus, device: gpu-0}]}}`)
			c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "p"}}
		}
		s.SetClaim(c)
		s.SetPod(p)
		if a := s.Of(p); len(a.Claims) != 1 || len(a.Claims[0].Requests[0].Ways) != want {
			t.Errorf("with %q: %+v, want %d alternatives", has, a.Claims, want)
		}
		p = p.DeepCopy()
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: ptr.To(true)}}
		if a := s.Of(p); len(a.Claims) != 1 || len(a.Claims[0].Requests[0].Ways) != 3 {
			t.Errorf("a pod of a DaemonSet with %q: %+v, want all alternatives for the next one", has, a.Claims)
		}
	}
}

// TestClaimOfAGroup: the claim that was made for a PodGroup is that of all its pods, and one
// reservation. spec 46/55.
func TestClaimOfAGroup(t *testing.T) {
	s := newStore()
	s.SetClass(read[resourcev1.DeviceClass](t, gpuClass))
	c := claim(t, "group-gpu")
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "PodGroup", Name: "g", UID: "g", Controller: ptr.To(true)}}
	s.SetClaim(c)
	member := func(i int, group string) *corev1.Pod {
		p := pod(fmt.Sprint("m-", i), corev1.PodResourceClaim{Name: "gpu", ResourceClaimTemplateName: ptr.To("t")})
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: ptr.To("group-gpu")}}
		return p
	}
	if a := s.Of(member(1, "other")); !a.Waits {
		t.Errorf("a pod of another group uses the claim: %+v", a)
	}
	for i := range 300 {
		s.SetPod(member(i, "g"))
	}
	if a := s.Of(member(299, "g")); a.Waits || len(a.Refused) > 0 || len(a.Claims) != 1 || a.Claims[0].Shared != "default/group-gpu" {
		t.Errorf("before the claim has devices: %+v", a)
	}
	c = c.DeepCopy()
	c.Status.Allocation = read[resourcev1.AllocationResult](t, `{
		devices: {results: [{request: r, driver: gpu.example.com, pool: fabric, device: gpu-0}]},
		nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [a]}]}]}}`)
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g", UID: "g"}}
	s.SetClaim(c)
	if a := s.Of(member(299, "g")); a.Waits || len(a.Refused) > 0 || len(a.Claims) > 0 || len(a.Terms) != 1 {
		t.Errorf("with the group's reservation: %+v", a)
	}
}

// TestPublishedAnew: while a pool is not published, or not all of it, pods that have devices
// of it stay where they are. spec 46/19.
func TestPublishedAnew(t *testing.T) {
	s := newStore()
	s.SetClass(read[resourcev1.DeviceClass](t, gpuClass))
	runs := pod("runs", named("c"))
	runs.Spec.NodeName = "n1"
	s.SetPod(runs)
	c := claim(t, "c")
	c.Status.Allocation = read[resourcev1.AllocationResult](t, `{devices: {results: [{request: r, driver: gpu.example.com, pool: gpus, device: gpu-0}]},
		nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}`)
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "runs", UID: "runs"}}
	s.SetClaim(c)
	expect := func(name string, change devices.Change, told, moves bool) {
		t.Helper()
		a := s.Of(runs)
		if (len(change.Pods) == 1) != told || (len(a.Claims) == 1) != moves || (len(a.Terms) == 0) != moves {
			t.Errorf("%s: %v are told, %+v", name, change.Pods, a)
		}
	}
	expect("one of two slices", s.SetSlice(slice(t, "a", "nodeName: n1", 1, 2, "gpu-0")), false, false)
	expect("both", s.SetSlice(slice(t, "b", "nodeName: n1", 1, 2, "gpu-1")), true, true)
	expect("the same again", s.SetSlice(slice(t, "b", "nodeName: n1", 1, 2, "gpu-1")), false, true)
	expect("one is gone", s.DeleteSlice(slice(t, "b", "nodeName: n1", 1, 2)), true, false)
	s.DeleteSlice(slice(t, "a", "nodeName: n1", 1, 2))
	expect("the driver has started again", s.SetSlice(slice(t, "a", "nodeName: n1", 2, 1, "gpu-0")), true, true)
}

// TestCommonDevices: a pod that moves is thought to get devices that are of no single node
// again. A device of one node leaves less of its pool's counters to devices of others, and
// a share that is given back leaves the other shares. spec 45/48, 46/42, 46/50, 46/79.
func TestCommonDevices(t *testing.T) {
	s := newStore()
	s.SetClass(read[resourcev1.DeviceClass](t, gpuClass))
	s.SetSlice(slice(t, "a", "nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [r1]}]}]}", 1, 1, "gpu-0"))
	runs := pod("runs", named("c"))
	runs.Spec.NodeName = "n1"
	s.SetPod(runs)
	c := claim(t, "c")
	c.Status.Allocation = read[resourcev1.AllocationResult](t, `{devices: {results: [{request: r, driver: gpu.example.com, pool: gpus, device: gpu-0}]},
		nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [r1]}]}]}}`)
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "runs", UID: "runs"}}
	s.SetClaim(c)
	rack := []model.Requirements{{model.NewRequirement("rack", model.In, "r1")}}
	if a := s.Of(runs); len(a.Claims) != 0 || !cmp.Equal(a.Terms, rack) {
		t.Errorf("the pod that runs: %+v", a)
	}

	s = newStore()
	over := func(name, where, device string) {
		s.SetSlice(read[resourcev1.ResourceSlice](t, fmt.Sprintf(`{metadata: {name: %s}, spec: {driver: gpu.example.com, pool: {name: gpus, generation: 1, resourceSliceCount: 3}, %s,
			devices: [{name: %s, allowMultipleAllocations: true, capacity: {memory: {value: 8}}, consumesCounters: [{counterSet: chip, counters: {slots: {value: 1}}}]}]}}`, name, where, device)))
	}
	over("a", "nodeName: n1", "gpu-1")
	over("b", "nodeName: n2", "gpu-2")
	s.SetSlice(read[resourcev1.ResourceSlice](t, `{metadata: {name: c}, spec: {driver: gpu.example.com, pool: {name: gpus, generation: 1, resourceSliceCount: 3}, allNodes: true,
		sharedCounters: [{name: chip, counters: {slots: {value: 1}}}]}}`))
	uses := func(name, share string, takes int) *resourcev1.ResourceClaim {
		c := claim(t, name)
		c.Status.Allocation = read[resourcev1.AllocationResult](t, fmt.Sprintf(
			`{devices: {results: [{request: r, driver: gpu.example.com, pool: gpus, device: gpu-1, shareID: %s, consumedCapacity: {memory: %d}}]}}`, share, takes))
		s.SetClaim(c)
		return c
	}
	uses("one", "7cbb49bc-4b66-4ac5-9d5a-8a3c4e0b3b39", 2)
	other := uses("two", "8cbb49bc-4b66-4ac5-9d5a-8a3c4e0b3b39", 3)
	pool := func() model.DevicePool {
		if pools := s.Pools(""); len(pools) == 1 && pools[0].Broken == "" && len(pools[0].Devices) == 2 && len(pools[0].Counters) == 1 {
			return pools[0]
		}
		t.Fatalf("%+v", s.Pools(""))
		return model.DevicePool{}
	}
	if p := pool(); len(p.InUse) != 2 || len(p.Devices[0].Uses) != 1 || len(p.Devices[0].On) != 1 || len(p.Devices[1].On) != 1 {
		t.Errorf("with two shares: %+v", p)
	}
	s.DeleteClaim(other)
	if p := pool(); len(p.InUse) != 1 || !p.InUse[0].Share || p.InUse[0].Takes[0].Value != 2000 {
		t.Errorf("with the share of one: %+v", p.InUse)
	}
}

// TestPools: which devices there are, and where. spec 45/53, 45/54, 46/14, 46/15, 46/16, 46/17, 46/18, 46/34, 46/37, 46/38, 46/56.
func TestPools(t *testing.T) {
	show := func(s *devices.Store, node string) string {
		var out []string
		for _, p := range s.Pools(node) {
			text := p.Driver + "/" + p.Name + ":"
			for _, d := range p.Devices {
				text += " " + d.Name
				for _, on := range d.On {
					text += "@" + on.String()
				}
				for _, taint := range d.Taints {
					text += "!" + taint.Key
				}
			}
			for _, u := range p.InUse {
				text += " (" + u.Claim + " has " + u.Device + ")"
			}
			if p.Broken != "" {
				text += " broken: " + p.Broken
			}
			out = append(out, text)
		}
		return strings.Join(out, "; ")
	}
	s := newStore()
	expect := func(c devices.Change, node, want string) {
		t.Helper()
		if !slices.Contains(c.Nodes, node) {
			t.Errorf("node %q is not told: %v", node, c.Nodes)
		}
		if got := show(s, node); got != want {
			t.Errorf("node %q: %s\nwant %s", node, got, want)
		}
	}
	expect(s.SetSlice(slice(t, "b", "nodeName: n1", 1, 2, "gpu-1", "gpu-2")), "n1", "gpu.example.com/gpus: gpu-1 gpu-2 broken: 1 of 2 slices are published")
	expect(s.SetSlice(slice(t, "a", "nodeName: n1", 1, 2, "gpu-0")), "n1", "gpu.example.com/gpus: gpu-0 gpu-1 gpu-2")
	expect(s.SetSlice(slice(t, "c", "nodeName: n1", 2, 2, "gpu-0")), "n1", "gpu.example.com/gpus: gpu-0 broken: 1 of 2 slices are published")
	expect(s.SetSlice(slice(t, "c", "nodeName: n1", 2, 1, "gpu-0", "gpu-0")), "n1", "gpu.example.com/gpus: gpu-0 gpu-0 broken: the device gpu-0 is there twice")
	expect(s.SetSlice(slice(t, "c", "nodeName: n2", 2, 1, "gpu-0")), "n1", "")
	expect(s.DeleteSlice(slice(t, "c", "nodeName: n2", 2, 1)), "n1", "gpu.example.com/gpus: gpu-0 gpu-1 gpu-2")

	c := claim(t, "c")
	c.Status.Allocation = read[resourcev1.AllocationResult](t, `{devices: {results: [
		{request: r, driver: gpu.example.com, pool: gpus, device: gpu-1}, {request: r, driver: gpu.example.com, pool: gpus, device: gpu-2, adminAccess: true}]}}`)
	expect(s.SetClaim(c), "n1", "gpu.example.com/gpus: gpu-0 gpu-1 gpu-2 (default/c has gpu-1)")
	expect(s.SetRule(read[resourcev1.DeviceTaintRule](t, `{metadata: {name: r}, spec: {deviceSelector: {device: gpu-0}, taint: {key: sick, effect: NoExecute}}}`)),
		"n1", "gpu.example.com/gpus: gpu-0!sick gpu-1 gpu-2 (default/c has gpu-1)")
	s.SetRule(read[resourcev1.DeviceTaintRule](t, `{metadata: {name: r}, spec: {deviceSelector: {driver: other}, taint: {key: sick, effect: NoExecute}}}`))
	expect(s.DeleteClaim(c), "n1", "gpu.example.com/gpus: gpu-0 gpu-1 gpu-2")

	other := slice(t, "z", "allNodes: true", 1, 1, "any")
	other.Spec.Pool.Name = "fabric"
	expect(s.SetSlice(other), "", "gpu.example.com/fabric: any")
	other = read[resourcev1.ResourceSlice](t, `{metadata: {name: z}, spec: {driver: gpu.example.com, pool: {name: fabric, generation: 1, resourceSliceCount: 1}, perDeviceNodeSelection: true, devices: [
		{name: a, nodeName: n1}, {name: b, allNodes: true}, {name: c, nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [z]}]}]}}, {name: d}]}}`)
	nowhere := model.Requirements{model.Requirement{Key: model.LabelHostname, Present: true}}
	expect(s.SetSlice(other), "", fmt.Sprintf("gpu.example.com/fabric: a@%v b c@%v d@%v", model.Requirements{model.NewRequirement(model.FieldName, model.In, "n1")},
		model.Requirements{model.NewRequirement(model.LabelZone, model.In, "z")}, nowhere))
}

// TestPublished: a driver has published when a pool of the node is complete, by the
// slices' node or by their owner. spec 30/36, 30/37, 30/38, 46/73, 46/74.
func TestPublished(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1"}}
	s := newStore()
	expect := func(want ...string) {
		t.Helper()
		if got := s.Published(node); !got.Equal(sets.New(want...)) {
			t.Errorf("published %v, want %v", got.UnsortedList(), want)
		}
	}
	s.SetSlice(slice(t, "a", "nodeName: n1", 1, 2, "gpu-0"))
	s.SetSlice(slice(t, "z", "allNodes: true", 1, 1, "gpu-0"))
	expect()
	s.DeleteSlice(slice(t, "z", "allNodes: true", 1, 1))
	s.SetSlice(slice(t, "b", "nodeName: n1", 1, 2, "gpu-1"))
	expect("gpu.example.com")
	s.SetSlice(slice(t, "c", "nodeName: n1", 2, 2, "gpu-1"))
	expect()
	for _, name := range []string{"a", "b", "c"} {
		s.DeleteSlice(slice(t, name, "nodeName: n1", 1, 1))
	}
	owned := slice(t, "o", "allNodes: true", 1, 1, "gpu-0")
	s.SetSlice(owned)
	expect()
	owned = owned.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: "n1", UID: "u1"}}
	s.SetSlice(owned)
	expect("gpu.example.com")
}

// TestExtendedResourcesServedByDeviceClasses: which class serves an extended resource, and whether a node's devices do.
// spec 46/58, 46/61, 46/62.
func TestExtendedResourcesServedByDeviceClasses(t *testing.T) {
	s := newStore()
	class := func(name string, age time.Duration, resource string) {
		c := read[resourcev1.DeviceClass](t, gpuClass)
		c.Name, c.CreationTimestamp = name, metav1.NewTime(time.Unix(0, 0).Add(-age))
		if resource != "" {
			c.Spec.ExtendedResourceName = &resource
		}
		s.SetClass(c)
	}
	class("old", time.Hour, "example.com/gpu")
	class("new-b", time.Minute, "example.com/gpu")
	class("new-a", time.Minute, "example.com/gpu")
	class("plain", time.Minute, "")
	want := map[string]string{"example.com/gpu": "new-a", "example.com/other": "", "kubernetes.io/gpu": "", "cpu": ""}
	for _, name := range []string{"old", "new-a", "new-b", "plain"} {
		want["deviceclass.resource.kubernetes.io/"+name] = name
	}
	for resource, class := range want {
		p := read[corev1.Pod](t, `{spec: {containers: [{name: main, resources: {requests: {`+resource+`: 1}}}]}}`)
		got := ""
		for _, c := range s.Of(p).Claims {
			got = c.Requests[0].Ways[0].Class
		}
		if got != class {
			t.Errorf("%s is served by %q, want %q", resource, got, class)
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	for _, step := range []struct {
		slice *resourcev1.ResourceSlice
		want  bool
	}{{slice(t, "a", "nodeName: n1", 1, 2, "gpu-0"), false}, {slice(t, "a", "nodeName: n1", 1, 1, "gpu-0"), true}} {
		s.SetSlice(step.slice)
		if s.Serves(node, "example.com/gpu") != step.want || s.Serves(node, "example.com/other") {
			t.Errorf("%d of %d slices: served %v", 1, step.slice.Spec.Pool.ResourceSliceCount, !step.want)
		}
	}
}

// TestServedRequests: what a pod without a claim requests of devices.
// spec 46/63, 46/64.
func TestServedRequests(t *testing.T) {
	s := newStore()
	s.SetClass(read[resourcev1.DeviceClass](t, `{metadata: {name: gpu}, spec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: 'true'}}]}}`))
	s.SetClass(read[resourcev1.DeviceClass](t, `{metadata: {name: nic}, spec: {extendedResourceName: example.com/nic}}`))
	container := func(gpus, nics int, more string) string {
		return fmt.Sprintf("{name: c%s, resources: {requests: {cpu: 1, example.com/gpu: %d, example.com/nic: %d}}}", more, gpus, nics)
	}
	sidecar := ", restartPolicy: Always"
	for _, c := range []struct{ init, main, want string }{
		{"", container(2, 0, ""), "container-0-request-1 gpu 2"},
		{container(2, 0, ""), container(1, 0, ""), "container-0-request-1 gpu 1, container-1-request-1 gpu 1"},
		{container(1, 0, ""), container(1, 0, ""), "container-1-request-1 gpu 1"},
		{container(1, 0, sidecar), container(1, 0, ""), "container-0-request-1 gpu 1, container-1-request-1 gpu 1"},
		{container(4, 0, "") + "," + container(4, 1, ""), container(1, 0, ""), "container-0-request-1 gpu 3, container-1-request-2 nic 1, container-2-request-1 gpu 1"},
		{container(2, 0, "") + "," + container(1, 0, sidecar), container(1, 2, ""), "container-1-request-1 gpu 1, container-2-request-1 gpu 1, container-2-request-2 nic 2"},
		{"", container(0, 0, ""), ""},
	} {
		p := read[corev1.Pod](t, "{metadata: {namespace: default, name: p, uid: u}, spec: {initContainers: ["+c.init+"], containers: ["+c.main+"]}}")
		var got []string
		for _, claim := range s.Of(p).Claims {
			for _, r := range claim.Requests {
				got = append(got, fmt.Sprint(r.Name, " ", strings.TrimPrefix(r.Resource, "example.com/"), " ", r.Ways[0].Count))
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("init %s main %s: %s, want %s", c.init, c.main, text, c.want)
		}
	}

	p := read[corev1.Pod](t, "{metadata: {namespace: default, name: p, uid: u}, spec: {containers: ["+container(1, 0, "")+"]}}")
	s.SetPod(p)
	made := read[resourcev1.ResourceClaim](t, `{metadata: {namespace: default, name: p-extended-resources-x, annotations: {resource.kubernetes.io/extended-resource-claim: "true"},
		ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u, controller: true}]}}`)
	if c := s.SetClaim(made); len(c.Pods) != 1 || !s.Of(p).Waits {
		t.Errorf("the scheduler has made the claim: waits %v, %d pods are told", s.Of(p).Waits, len(c.Pods))
	}
	if c := s.DeleteClaim(made); len(c.Pods) != 1 || s.Of(p).Waits || len(s.Of(p).Claims) != 1 {
		t.Errorf("the scheduler has deleted the claim: waits %v, %d pods are told", s.Of(p).Waits, len(c.Pods))
	}
	if c := s.DeleteClass(read[resourcev1.DeviceClass](t, `{metadata: {name: gpu}}`)); len(c.Pods) != 1 || len(s.Of(p).Claims) > 0 {
		t.Error("no class serves the resource any more")
	}
}

// TestRulesOfNewNodes: a DeviceTaintRule that names a driver taints devices that its
// nodes will have; one that names a pool or a device does not. spec 46/40.
func TestRulesOfNewNodes(t *testing.T) {
	s := newStore()
	pools := []model.DevicePool{{Driver: "gpu.example.com", Name: "gpus", Devices: []model.Device{{Name: "gpu-0", Kind: &model.DeviceKind{Key: "k", Driver: "gpu.example.com"}}}}}
	kinds := &model.InstanceType{Name: "t", Devices: pools}
	of := &model.Snapshot{Pools: []model.Pool{{Name: "p", Types: []*model.InstanceType{kinds}}}, Nodes: []model.Node{{Name: "a", Devices: pools}, {Name: "b", Devices: pools, Initialized: true}}}
	check := func(what string, want int) {
		t.Helper()
		got, again := s.Answered(of), s.Answered(of)
		if n := len(got.Pools[0].Types[0].Devices[0].Devices[0].Taints); n != want {
			t.Errorf("%s: devices of new nodes have %d taints, want %d", what, n, want)
		}
		if n := len(got.Nodes[0].Devices[0].Devices[0].Taints); n != want {
			t.Errorf("%s: devices of a node that starts have %d taints, want %d", what, n, want)
		}
		if n := len(got.Nodes[1].Devices[0].Devices[0].Taints) + len(pools[0].Devices[0].Taints); n != 0 {
			t.Errorf("%s: devices that are published have %d taints more", what, n)
		}
		if &got.Pools[0].Types[0] != &again.Pools[0].Types[0] || &got.Nodes[0].Devices[0] != &again.Nodes[0].Devices[0] {
			t.Errorf("%s: the same Snapshot again has other lists", what)
		}
	}
	rule := func(selector, effect string) *resourcev1.DeviceTaintRule {
		return read[resourcev1.DeviceTaintRule](t, "{metadata: {name: r}, spec: {deviceSelector: "+selector+", taint: {key: sick, effect: "+effect+"}}}")
	}
	check("no rule", 0)
	for _, c := range []struct {
		selector, effect string
		want             int
	}{
		{"{driver: gpu.example.com}", "NoSchedule", 1}, {"{driver: other.example.com}", "NoSchedule", 0}, {"{driver: gpu.example.com, pool: n1}", "NoSchedule", 0},
		{"{driver: gpu.example.com, device: gpu-0}", "NoSchedule", 0}, {"{}", "NoExecute", 1}, {"{driver: gpu.example.com}", "None", 0},
	} {
		s.SetRule(rule(c.selector, c.effect))
		check(c.selector+" "+c.effect, c.want)
	}
	s.SetRule(rule("{}", "NoSchedule"))
	s.DeleteRule(rule("{}", "NoSchedule"))
	check("the rule is gone", 0)
}
