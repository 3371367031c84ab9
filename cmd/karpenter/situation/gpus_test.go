// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/cloud"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/cloudtest"
	"karpenter/cloud/ec2"
	"karpenter/kube/feed"
	"karpenter/model"
	"karpenter/solve"
)

// gpuInstances are types of AWS, with the devices that the provider says they have.
func gpuInstances(t *testing.T, axis *model.Axis, names ...string) []*model.InstanceType {
	t.Helper()
	tables, err := ec2.DevicesOfTypes()
	if err != nil {
		t.Fatal(err)
	}
	var out []*cloud.InstanceType
	for i, name := range names {
		of := cloudtest.Type(name, "48", "192Gi", cloudtest.Offering("a", model.OnDemand, float64(1+i)))
		facts := instancetype.Facts{Description: ec2.Description{InstanceType: name}, Devices: tables.Types[name]}
		of.DevicePools = instancetype.New(&facts, &instancetype.Class{}, &instancetype.Cluster{GPUDevices: true}).DevicePools
		out = append(out, of)
	}
	return cloud.Types(axis, out)
}

// TestClaimsOnGPUInstances plans for pods with a ResourceClaim on a g5.12xlarge of AWS, whose four GPUs
// have 23028Mi each, all with the same driver version. spec 48/91.
func TestClaimsOnGPUInstances(t *testing.T) {
	const memory = `device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("%s")) >= 0`
	published, pods, pools := stored(t)
	published.Rules.Devices = true
	for _, tc := range []struct {
		name     string
		gpus     int64
		selector string
		alike    resourcev1.FullyQualifiedName
		launched bool
	}{
		{"four", 4, "", "", true},
		{"five", 5, "", "", false},
		{"two of one driver version", 2, "", "gpu.nvidia.com/driverVersion", true},
		{"four of one driver version", 4, "", "gpu.nvidia.com/driverVersion", true},
		{"two of one version of something else", 2, "", "gpu.nvidia.com/firmwareVersion", false},
		{"as much memory as there is", 4, fmt.Sprintf(memory, "23028Mi"), "", true},
		{"more memory than there is", 1, fmt.Sprintf(memory, "23029Mi"), "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, convert, sources := published.World()
			sink := feed.NewSink(w, convert, sources)
			for i := range pools {
				sink.Set(&pools[i])
			}
			w.SetTypes("general", gpuInstances(t, convert.Axis, "g5.12xlarge"))
			class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
			class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}}
			sink.Set(class)
			p := pods[0].DeepCopy()
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "gpus"}}
			exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: class.Name, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: tc.gpus}
			if tc.selector != "" {
				exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: tc.selector}}}
			}
			claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: exactly}}
			if tc.alike != "" {
				claim.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &tc.alike}}
			}
			sink.Set(claim)
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim.Name}}
			sink.Set(p)

			s := sources.Devices.Answered(w.Snapshot(time.Now()))
			plan := solve.Decide(s, published.Offerings.Policy)
			launched := slices.ContainsFunc(plan.Launches, func(l model.Launch) bool {
				return l.Type == "g5.12xlarge" && slices.ContainsFunc(l.Pods, func(of model.Pod) bool { return of.Name == p.Name })
			})
			if launched != tc.launched || len(plan.Launches)+len(plan.Verdicts) != 1 {
				t.Errorf("launched %t, want %t: %+v, %+v", launched, tc.launched, plan.Launches, plan.Verdicts)
			}
		})
	}
}
