// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"karpenter/api/autoscaling/v1beta1"
)

func TestDesiredReplicas(t *testing.T) {
	resources := func(pairs ...string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return list
	}
	const none = -1
	for _, c := range []struct {
		name                           string
		replicas, percentage, workload int32 // none: absent
		limits, pod                    corev1.ResourceList
		want                           int32
	}{
		{name: "spec 45/30 fixed", replicas: 7, percentage: none, workload: none, want: 7},
		{name: "spec 45/30 at least one", replicas: none, percentage: 1, workload: 1, want: 1},
		{name: "spec 45/30 a tenth of three", replicas: none, percentage: 10, workload: 3, want: 1},
		{name: "spec 45/30 half of none", replicas: none, percentage: 50, workload: 0, want: 0},
		{name: "spec 45/30 twice", replicas: none, percentage: 200, workload: 5, want: 10},
		{name: "spec 45/30 limits wider than replicas", replicas: 3, percentage: none, workload: none, limits: resources("cpu", "10"), pod: resources("cpu", "1"), want: 3},
		{name: "spec 45/31 millicores, rounded down", replicas: none, percentage: none, workload: none, limits: resources("cpu", "1"), pod: resources("cpu", "300m"), want: 3},
		{name: "half of none within limits", replicas: none, percentage: 50, workload: 0, limits: resources("cpu", "5"), pod: resources("cpu", "1"), want: 0},
		{name: "spec 10/52 share", replicas: none, percentage: 20, workload: 10, want: 2},
		{name: "spec 10/52 rounded up", replicas: none, percentage: 25, workload: 3, want: 1},
		{name: "spec 10/52 zero percent", replicas: none, percentage: 0, workload: 10, want: 0},
		{name: "spec 10/52 zero replicas", replicas: none, percentage: 20, workload: 0, want: 0},
		{name: "spec 10/52 more than all", replicas: none, percentage: 150, workload: 10, want: 15},
		{name: "spec 10/53 the larger counts", replicas: 3, percentage: 50, workload: 10, want: 5},
		{name: "spec 10/53 capped", replicas: 3, percentage: 50, workload: 10, limits: resources("cpu", "2"), pod: resources("cpu", "1"), want: 2},
		{name: "spec 10/53 limits alone", replicas: none, percentage: none, workload: none, limits: resources("cpu", "4"), pod: resources("cpu", "1"), want: 4},
		{name: "spec 10/53 less than one pod", replicas: 3, percentage: none, workload: none, limits: resources("cpu", "500m"), pod: resources("cpu", "1"), want: 0},
		{name: "tightest limit", replicas: none, percentage: none, workload: none, limits: resources("cpu", "4", "memory", "3Gi"), pod: resources("cpu", "300m", "memory", "2Gi"), want: 1},
		{name: "limits share nothing with the pod", replicas: none, percentage: none, workload: none, limits: resources("nvidia.com/gpu", "4"), pod: resources("cpu", "1"), want: 0},
		{name: "limits share nothing, replicas decide", replicas: 2, percentage: none, workload: none, limits: resources("nvidia.com/gpu", "4"), pod: resources("cpu", "1"), want: 2},
		{name: "zero requests constrain nothing", replicas: 2, percentage: none, workload: none, limits: resources("cpu", "1"), pod: resources("cpu", "0"), want: 2},
		{name: "percentage without a workload is ignored", replicas: none, percentage: 50, workload: none, limits: resources("cpu", "4"), pod: resources("cpu", "1"), want: 4},
		{name: "zero percent caps limits", replicas: none, percentage: 0, workload: 10, limits: resources("cpu", "4"), pod: resources("cpu", "1"), want: 0},
		{name: "exact beyond 64 bits", replicas: none, percentage: none, workload: none, limits: resources("memory", "16E"), pod: resources("memory", "1n"), want: math.MaxInt32},
		{name: "huge share", replicas: none, percentage: math.MaxInt32, workload: math.MaxInt32, want: math.MaxInt32},
		{name: "nothing said", replicas: none, percentage: none, workload: 10, want: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			optional := func(n int32) *int32 {
				if n == none {
					return nil
				}
				return ptr.To(n)
			}
			spec := v1beta1.CapacityBufferSpec{Replicas: optional(c.replicas), Percentage: optional(c.percentage), Limits: c.limits}
			if got := spec.DesiredReplicas(optional(c.workload), c.pod); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
