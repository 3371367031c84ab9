// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/aws/v1"
)

const caBundle = "test-ca-bundle"

// goldenSpec is the spec that the golden hashes start from.
func goldenSpec() v1.EC2NodeClassSpec {
	return v1.EC2NodeClassSpec{
		Role:                     "role-1",
		Tags:                     map[string]string{"keyTag-1": "valueTag-1", "keyTag-2": "valueTag-2"},
		Context:                  new("fake-context"),
		DetailedMonitoring:       new(false),
		AssociatePublicIPAddress: new(false),
		MetadataOptions: &v1.MetadataOptions{
			HTTPEndpoint:            new("disabled"),
			HTTPProtocolIPv6:        new("disabled"),
			HTTPPutResponseHopLimit: new(int64(1)),
			HTTPTokens:              new("optional"),
		},
		BlockDeviceMappings: []*v1.BlockDeviceMapping{
			{
				DeviceName: new("map-device-1"),
				EBS: &v1.BlockDevice{
					DeleteOnTermination: new(false),
					Encrypted:           new(false),
					IOPS:                new(int64(0)),
					KMSKeyID:            new("fakeKMSKeyID"),
					SnapshotID:          new("fakeSnapshot"),
					Throughput:          new(int64(0)),
					VolumeSize:          new(resource.MustParse("2G")),
					VolumeType:          new("standard"),
				},
			},
			{DeviceName: new("map-device-2")},
		},
		UserData: new("userdata-test-1"),
	}
}

// hashOf returns the hash of the golden spec after a change.
func hashOf(change func(*v1.EC2NodeClassSpec)) string {
	class := v1.EC2NodeClass{Spec: goldenSpec()}
	if change != nil {
		change(&class.Spec)
	}
	return class.Hash(caBundle)
}

// TestHashGolden covers spec 60 §7.1, spec 65/15 and spec 48/2: these numbers are what
// running clusters carry in their annotations.
func TestHashGolden(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*v1.EC2NodeClassSpec)
		want   string
	}{
		{"none", nil, "11148166120438674859"},
		{"userData", func(s *v1.EC2NodeClassSpec) { s.UserData = new("userdata-test-2") }, "11774429238106843388"},
		{"context", func(s *v1.EC2NodeClassSpec) { s.Context = new("context-2") }, "2279761750428738028"},
		{"detailedMonitoring", func(s *v1.EC2NodeClassSpec) { s.DetailedMonitoring = new(true) }, "1936848126751988570"},
		{"instanceStorePolicy", func(s *v1.EC2NodeClassSpec) { s.InstanceStorePolicy = new(v1.InstanceStorePolicyRAID0) }, "16697988646989909967"},
		{"associatePublicIPAddress", func(s *v1.EC2NodeClassSpec) { s.AssociatePublicIPAddress = new(true) }, "16141801171825097963"},
		{"httpEndpoint", func(s *v1.EC2NodeClassSpec) { s.MetadataOptions.HTTPEndpoint = new("enabled") }, "14969742554812447671"},
		{"httpTokens", func(s *v1.EC2NodeClassSpec) { s.MetadataOptions.HTTPTokens = new("required") }, "1346719102507290084"},
		{"httpPutResponseHopLimit", func(s *v1.EC2NodeClassSpec) { s.MetadataOptions.HTTPPutResponseHopLimit = new(int64(10)) }, "14046948658064232764"},
		{"nestedVirtualization", func(s *v1.EC2NodeClassSpec) { s.CPUOptions = &v1.CPUOptions{NestedVirtualization: new("enabled")} }, "6157846767212910604"},
		{"tcpEstablishedTimeout", func(s *v1.EC2NodeClassSpec) {
			s.ConnectionTracking = &v1.ConnectionTracking{TCPEstablishedTimeout: new(int32(300))}
		}, "1619669030802245540"},
		{"volumeSize", func(s *v1.EC2NodeClassSpec) {
			s.BlockDeviceMappings[0].EBS.VolumeSize = new(resource.MustParse("10G"))
		}, "10372902467896351912"},
		{"instanceProfile", func(s *v1.EC2NodeClassSpec) {
			s.Role, s.InstanceProfile = "", new("test-instance-profile")
		}, "10323991363677716244"},
		{"enclaves enabled", func(s *v1.EC2NodeClassSpec) { s.EnclaveOptions = &v1.EnclaveOptions{Enabled: true} }, "7236976372141148292"},
		{"enclaves not enabled", func(s *v1.EC2NodeClassSpec) { s.EnclaveOptions = &v1.EnclaveOptions{} }, "12655667132181172925"},
	} {
		if got := hashOf(c.change); got != c.want {
			t.Errorf("%s: hash %s, want %s", c.name, got, c.want)
		}
	}
}

// TestHashIgnoresMetadata: only the spec is hashed.
func TestHashIgnoresMetadata(t *testing.T) {
	class := v1.EC2NodeClass{Spec: goldenSpec()}
	want := class.Hash(caBundle)
	class.Name = "other"
	class.Annotations = map[string]string{"a": "b"}
	class.Status.InstanceProfile = "profile"
	if got := class.Hash(caBundle); got != want {
		t.Errorf("hash %s, want %s: something outside the spec is hashed", got, want)
	}
}

// TestDrifted covers spec 65/19.
func TestDrifted(t *testing.T) {
	stamp := func(hash, version string) map[string]string {
		return map[string]string{v1.HashAnnotationKey: hash, v1.HashVersionAnnotationKey: version}
	}
	for _, c := range []struct {
		class, claim map[string]string
		want         bool
	}{
		{stamp("1", "v6"), stamp("2", "v6"), true},
		{stamp("1", "v6"), stamp("1", "v6"), false},
		{stamp("1", "v6"), stamp("2", "v5"), false},
		{stamp("", "v6"), stamp("2", "v6"), false},
		{stamp("1", ""), stamp("2", ""), false},
		{stamp("1", "v6"), stamp("", "v6"), false},
		{stamp("1", "v6"), nil, false},
		{nil, stamp("2", "v6"), false},
	} {
		class := v1.EC2NodeClass{}
		class.Annotations = c.class
		if got := class.Drifted(c.claim); got != c.want {
			t.Errorf("class %v, claim %v: drifted %t", c.class, c.claim, got)
		}
	}
}
