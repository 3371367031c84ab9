// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
)

// TestTypedEC2NodeClass writes the Go type and reads it back unchanged, and its
// hash with it (spec 60 §7).
func TestTypedEC2NodeClass(t *testing.T) {
	c := shared.Cluster(t).Client
	class := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "typed"},
		Spec: awsv1.EC2NodeClassSpec{
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{ID: "subnet-1"}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Name: "a"}},
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}},
			Role:                       "role",
			DetailedMonitoring:         new(false),
			Kubelet: awsv1.KubeletConfiguration{
				"systemReserved": apiextensionsv1.JSON{Raw: []byte(`{"memory":"1Gi","cpu":"80m"}`)},
			},
			BlockDeviceMappings: []*awsv1.BlockDeviceMapping{
				{EBS: &awsv1.BlockDevice{VolumeSize: new(resource.MustParse("1Ti")), IOPS: new(int64(0))}},
			},
			MetadataOptions: &awsv1.MetadataOptions{
				HTTPEndpoint: new("enabled"), HTTPProtocolIPv6: new("disabled"),
				HTTPPutResponseHopLimit: new(int64(2)), HTTPTokens: new("required"),
			},
		},
	}
	hash := class.Hash("")
	create(t, c, class)

	// What the controllers will write there.
	now := metav1.NewTime(class.CreationTimestamp.UTC().Truncate(time.Second))
	class.Status = awsv1.EC2NodeClassStatus{
		Subnets:        []awsv1.Subnet{{ID: "subnet-1", Zone: "a", ZoneID: "a1"}},
		SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-1", Name: "a"}},
		AMIs: []awsv1.AMI{{ID: "ami-1", Requirements: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}},
		}}},
		CapacityReservations: []awsv1.CapacityReservation{{
			ID: "cr-1", AvailabilityZone: "a", InstanceMatchCriteria: "open", InstanceType: "m5.large",
			OwnerID: "012345678901", EndTime: &now,
		}},
		InstanceProfile: "profile",
	}
	class.StatusConditions(now.Time, true).SetTrue(awsv1.SubnetsReadyCondition)
	want := class.Status.DeepCopy()
	want.CapacityReservations[0].ReservationType = awsv1.CapacityReservationTypeDefault
	want.CapacityReservations[0].State = awsv1.CapacityReservationStateActive
	if err := c.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}

	var got awsv1.EC2NodeClass
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(class), &got); err != nil {
		t.Fatal(err)
	}
	if got.Hash("") != hash {
		t.Error("the hash changed on its way through the API server")
	}
	if diff := cmp.Diff(*want, got.Status); diff != "" {
		t.Errorf("the status changed (-want +got):\n%s", diff)
	}
	if text := got.Spec.BlockDeviceMappings[0].EBS.VolumeSize.String(); text != "1Ti" {
		t.Errorf("the volume size is %s", text)
	}
}
