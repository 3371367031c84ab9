// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"strconv"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "karpenter/api/v1"
)

// TestKindsAreForgotten: nodes whose devices have serial numbers come and go, and what
// is known of devices that are gone does not pile up.
func TestKindsAreForgotten(t *testing.T) {
	s := New(v1.DefaultLabels(), nil)
	for i := range 10 * leastForget {
		s.SetSlice(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: ptr.To("n1"), Pool: resourcev1.ResourcePool{Name: "n1", ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: ptr.To(strconv.Itoa(i))}}}},
		}})
		if len(s.kinds) > leastForget {
			t.Fatalf("%d kinds are known of one device", len(s.kinds))
		}
	}
	kind := s.Pools("n1")[0].Devices[0].Kind
	s.SetSlice(s.slices["n1"])
	if s.Pools("n1")[0].Devices[0].Kind != kind {
		t.Error("a kind that is still there was made twice")
	}
}
