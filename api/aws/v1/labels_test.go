// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
)

// TestWellKnownLabels compares the well-known labels with those that spec 65
// lists.
func TestWellKnownLabels(t *testing.T) {
	want := []string{
		"karpenter.k8s.aws/capacity-reservation-id",
		"karpenter.k8s.aws/capacity-reservation-interruptible",
		"karpenter.k8s.aws/capacity-reservation-type",
		"karpenter.k8s.aws/ec2nodeclass",
		"karpenter.k8s.aws/instance-accelerator-count",
		"karpenter.k8s.aws/instance-accelerator-manufacturer",
		"karpenter.k8s.aws/instance-accelerator-name",
		"karpenter.k8s.aws/instance-capability-flex",
		"karpenter.k8s.aws/instance-category",
		"karpenter.k8s.aws/instance-cpu",
		"karpenter.k8s.aws/instance-cpu-manufacturer",
		"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
		"karpenter.k8s.aws/instance-ebs-bandwidth",
		"karpenter.k8s.aws/instance-encryption-in-transit-supported",
		"karpenter.k8s.aws/instance-family",
		"karpenter.k8s.aws/instance-generation",
		"karpenter.k8s.aws/instance-gpu-count",
		"karpenter.k8s.aws/instance-gpu-manufacturer",
		"karpenter.k8s.aws/instance-gpu-memory",
		"karpenter.k8s.aws/instance-gpu-name",
		"karpenter.k8s.aws/instance-hypervisor",
		"karpenter.k8s.aws/instance-local-nvme",
		"karpenter.k8s.aws/instance-memory",
		"karpenter.k8s.aws/instance-network-bandwidth",
		"karpenter.k8s.aws/instance-size",
		"karpenter.k8s.aws/instance-tenancy",
		"karpenter.k8s.aws/placement-group-id",
		"karpenter.k8s.aws/placement-group-partition",
		"topology.k8s.aws/zone-id",
	}
	if got := slices.Sorted(maps.Keys(awsv1.Labels().WellKnown)); !slices.Equal(got, want) {
		t.Errorf("well-known labels are\n%q, want\n%q", got, want)
	}
	if got := v1.NodeClassLabelKey(awsv1.GroupVersion().WithKind(awsv1.Kind).GroupKind()); got != awsv1.NodeClassLabelKey {
		t.Errorf("nodes carry their class under %s, not %s", got, awsv1.NodeClassLabelKey)
	}
}

// TestLabels: what users may ask for, under which names.
func TestLabels(t *testing.T) {
	labels := v1.DefaultLabels().With(awsv1.Labels())
	for key, ok := range map[string]bool{
		awsv1.InstanceCPULabelKey:               true,
		awsv1.ZoneIDLabelKey:                    true,
		"karpenter.k8s.aws/instance-colour":     false,
		"sub.karpenter.k8s.aws/instance-cpu":    false,
		"example.com/karpenter.k8s.aws":         true,
		"topology.k8s.aws/network-node-layer-1": true,
	} {
		if err := labels.CheckRestricted(key); (err == nil) != ok {
			t.Errorf("%s: %v", key, err)
		}
	}
	if got := labels.CanonicalKey("topology.ebs.csi.aws.com/zone"); got != corev1.LabelTopologyZone {
		t.Errorf("EBS' zone is %s", got)
	}
	for value, ok := range map[string]bool{"default": true, "dedicated": true, "host": false} {
		requirement := v1.NodeSelectorRequirementWithMinValues{
			Key: awsv1.InstanceTenancyLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
		}
		if err := v1.ValidateRequirement(requirement, labels); (err == nil) != ok {
			t.Errorf("tenancy %s: %v", value, err)
		}
	}
}
