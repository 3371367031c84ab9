// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/azure/v1beta1"
	karpenterv1 "karpenter/api/v1"
)

// goldenSpec is the spec that the golden hashes start from.
func goldenSpec() v1beta1.AKSNodeClassSpec {
	return v1beta1.AKSNodeClassSpec{
		VNETSubnetID: new("subnet-id"),
		OSDiskSizeGB: new(int32(30)),
		ImageFamily:  new("Ubuntu2204"),
		Tags:         map[string]string{"a": "1", "b": "2"},
		Kubelet: &v1beta1.KubeletConfiguration{
			CPUManagerPolicy:            new("static"),
			CPUCFSQuota:                 new(true),
			CPUCFSQuotaPeriod:           metav1.Duration{Duration: 100 * time.Millisecond},
			ImageGCHighThresholdPercent: new(int32(85)),
			ImageGCLowThresholdPercent:  new(int32(80)),
			TopologyManagerPolicy:       new("none"),
			AllowedUnsafeSysctls:        []string{"net.core.somaxconn"},
			ContainerLogMaxSize:         new("10Mi"),
			ContainerLogMaxFiles:        new(int32(10)),
		},
		MaxPods: new(int32(100)),
	}
}

func hashOf(change func(*v1beta1.AKSNodeClassSpec)) string {
	class := v1beta1.AKSNodeClass{Spec: goldenSpec()}
	change(&class.Spec)
	return class.Hash()
}

func vnetOverride(o v1beta1.LocalDNSZoneOverride) func(*v1beta1.AKSNodeClassSpec) {
	return func(s *v1beta1.AKSNodeClassSpec) {
		s.LocalDNS = &v1beta1.LocalDNS{VnetDNSOverrides: []v1beta1.LocalDNSZoneOverride{o}}
	}
}

// TestHashGolden covers spec 71/9: these numbers are what running clusters carry
// in their annotations.
func TestHashGolden(t *testing.T) {
	for name, c := range map[string]struct {
		want   string
		change func(*v1beta1.AKSNodeClassSpec)
	}{
		"none":             {"4108492229247269128", func(*v1beta1.AKSNodeClassSpec) {}},
		"vnetSubnetID":     {"13971920214979852468", func(s *v1beta1.AKSNodeClassSpec) { s.VNETSubnetID = new("subnet-id-2") }},
		"osDiskSizeGB":     {"7816855636861645563", func(s *v1beta1.AKSNodeClassSpec) { s.OSDiskSizeGB = new(int32(40)) }},
		"imageFamily":      {"15616969746300892810", func(s *v1beta1.AKSNodeClassSpec) { s.ImageFamily = new("AzureLinux") }},
		"cpuManagerPolicy": {"33638514539106194", func(s *v1beta1.AKSNodeClassSpec) { s.Kubelet.CPUManagerPolicy = new("none") }},
		"maxPods":          {"15508761509963240710", func(s *v1beta1.AKSNodeClassSpec) { s.MaxPods = new(int32(200)) }},
		"localDNS.mode": {"17805442572569734619", func(s *v1beta1.AKSNodeClassSpec) {
			s.LocalDNS = &v1beta1.LocalDNS{Mode: v1beta1.LocalDNSModeRequired}
		}},
		"localDNS.vnetDNSOverrides": {"14608914734386108436", vnetOverride(v1beta1.LocalDNSZoneOverride{Zone: "example.com", QueryLogging: "Log"})},
		"localDNS.kubeDNSOverrides": {"4529827108104295737", func(s *v1beta1.AKSNodeClassSpec) {
			s.LocalDNS = &v1beta1.LocalDNS{KubeDNSOverrides: []v1beta1.LocalDNSZoneOverride{{Zone: "example.com", Protocol: "ForceTCP"}}}
		}},
		"cacheDuration": {"11008649797056761238", vnetOverride(v1beta1.LocalDNSZoneOverride{
			Zone: "example.com", CacheDuration: karpenterv1.MustParseNillableDuration("1h"),
		})},
		"serveStaleDuration": {"4895720480850206885", vnetOverride(v1beta1.LocalDNSZoneOverride{
			Zone: "example.com", ServeStaleDuration: karpenterv1.MustParseNillableDuration("30m"),
		})},
		"artifactStreaming": {"15355387647114481444", func(s *v1beta1.AKSNodeClassSpec) {
			s.ArtifactStreaming = &v1beta1.ArtifactStreaming{Enabled: new(true)}
		}},
	} {
		if got := hashOf(c.change); got != c.want {
			t.Errorf("%s: hash %s, want %s", name, got, c.want)
		}
	}
}

// TestHashEquality covers the rest of spec 71/9: what does not change the hash,
// and that an explicit false does.
func TestHashEquality(t *testing.T) {
	lists := func(sysctls []string, zones ...string) string {
		return hashOf(func(s *v1beta1.AKSNodeClassSpec) {
			s.Kubelet.AllowedUnsafeSysctls = sysctls
			s.LocalDNS = &v1beta1.LocalDNS{Mode: v1beta1.LocalDNSModeRequired}
			for _, zone := range zones {
				s.LocalDNS.VnetDNSOverrides = append(s.LocalDNS.VnetDNSOverrides, v1beta1.LocalDNSZoneOverride{Zone: zone})
				s.LocalDNS.KubeDNSOverrides = append(s.LocalDNS.KubeDNSOverrides, v1beta1.LocalDNSZoneOverride{Zone: zone, Protocol: "ForceTCP"})
			}
		})
	}
	if a, b := lists([]string{"x", "y"}, ".", "cluster.local"), lists([]string{"y", "x"}, "cluster.local", "."); a != b {
		t.Errorf("the order of lists changes the hash from %s to %s", a, b)
	}
	if a, b := lists([]string{"x"}, "."), lists([]string{"y"}, "."); a == b {
		t.Error("the content of a list does not change the hash")
	}
	class := v1beta1.AKSNodeClass{Spec: goldenSpec()}
	want := class.Hash()
	class.Spec.Tags = map[string]string{"c": "3"}
	class.Name, class.Status.KubernetesVersion = "other", new("1.34.1")
	if got := class.Hash(); got != want {
		t.Errorf("tags, metadata or status change the hash from %s to %s", want, got)
	}
	absent := hashOf(func(s *v1beta1.AKSNodeClassSpec) { s.Security = &v1beta1.Security{} })
	for name, change := range map[string]func(*v1beta1.Security){
		"encryptionAtHost": func(s *v1beta1.Security) { s.EncryptionAtHost = new(false) },
		"vtpm":             func(s *v1beta1.Security) { s.TrustedLaunch = &v1beta1.TrustedLaunch{VTPM: new(false)} },
	} {
		security := &v1beta1.Security{}
		change(security)
		if got := hashOf(func(s *v1beta1.AKSNodeClassSpec) { s.Security = security }); got == absent {
			t.Errorf("an explicit false in %s does not change the hash", name)
		}
	}
}

// TestDrifted: only hashes of the same version are compared.
func TestDrifted(t *testing.T) {
	stamp := func(hash, version string) map[string]string {
		return map[string]string{v1beta1.HashAnnotationKey: hash, v1beta1.HashVersionAnnotationKey: version}
	}
	for _, c := range []struct {
		class, claim map[string]string
		want         bool
	}{
		{stamp("1", "v3"), stamp("2", "v3"), true},
		{stamp("1", "v3"), stamp("1", "v3"), false},
		{stamp("1", "v3"), stamp("2", "v2"), false},
		{stamp("", "v3"), stamp("2", "v3"), false},
		{stamp("1", ""), stamp("2", ""), false},
		{stamp("1", "v3"), nil, false},
		{nil, stamp("2", "v3"), false},
	} {
		class := v1beta1.AKSNodeClass{}
		class.Annotations = c.class
		if got := class.Drifted(c.claim); got != c.want {
			t.Errorf("class %v, claim %v: drifted %t", c.class, c.claim, got)
		}
	}
}
