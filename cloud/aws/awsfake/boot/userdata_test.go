// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/userdata"
)

// TestInstancesReadUserData: for each family what a machine makes of
// rendered user data is what it was rendered of.
func TestInstancesReadUserData(t *testing.T) {
	m := userdata.Machine{
		Cluster:      &userdata.Cluster{Name: "prod", Endpoint: "https://api.example.com", CABundle: "Y2E=", CIDR: "10.100.0.0/16", DNS: "10.100.0.10"},
		CapacityType: "spot", Labels: map[string]string{"example.com/team": "a", "topology.kubernetes.io/zone": "z"},
		Taints:  []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: "bare", Effect: corev1.TaintEffectNoExecute}},
		Kubelet: awsv1.KubeletConfiguration{"evictionHard": {Raw: []byte(`{"nodefs.available":"5%"}`)}},
		MaxPods: 42, KubeReserved: corev1.ResourceList{"cpu": resource.MustParse("80m"), "memory": resource.MustParse("574Mi")},
		SystemReserved: corev1.ResourceList{"memory": resource.MustParse("100Mi")}, RAID0: true,
	}
	for _, family := range []awsv1.AMIFamily{awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket, awsv1.AMIFamilyWindows2022} {
		t.Run(string(family), func(t *testing.T) {
			m := m
			m.Family = family
			want := &Settings{
				OS: "linux", Cluster: "prod", Endpoint: "https://api.example.com", CA: "Y2E=",
				Labels:  map[string]string{"example.com/team": "a", "karpenter.sh/capacity-type": "spot", "karpenter.sh/do-not-sync-taints": "true"},
				Taints:  append(slices.Clone(m.Taints), corev1.Taint{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}),
				MaxPods: 42, KubeReserved: map[string]string{"cpu": "80m", "memory": "574Mi"}, SystemReserved: map[string]string{"memory": "100Mi"},
				EvictionHard: map[string]string{"nodefs.available": "5%"}, RAID0: true,
			}
			switch family {
			case awsv1.AMIFamilyWindows2022:
				want.OS, want.RAID0 = "windows", false // spec 65/115
			case awsv1.AMIFamilyBottlerocket:
				want.DataDevice = "/dev/xvdb"
			}
			data, err := userdata.Render(&m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(data.Text)
			if err != nil {
				t.Fatalf("%v, of\n%s", err, data.Text)
			}
			for _, s := range []*Settings{want, got} {
				slices.SortFunc(s.Taints, func(a, b corev1.Taint) int { return strings.Compare(a.Key, b.Key) })
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, of\n%s", diff, data.Text)
			}
		})
	}
}

const nodeConfigHead = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n"

const joins = "  cluster: {name: c, apiServerEndpoint: e, certificateAuthority: Y2E=}\n"

func TestNodeConfigsAreMerged(t *testing.T) {
	part := func(text string) string { return "--//\nContent-Type: application/node.eks.aws\n\n" + text + "\n" }
	s, err := Parse("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n" +
		part(nodeConfigHead+"  kubelet:\n    config: {maxPods: 5, kubeReserved: {cpu: 1, memory: 1Gi}}\n    flags: [--node-labels=a=1]") +
		"--//\nContent-Type: text/x-shellscript\n\n#!/bin/sh\necho hello\n" +
		part(nodeConfigHead+joins+"  kubelet:\n    config: {maxPods: 7, kubeReserved: {cpu: 2}}\n    flags: ['--node-labels=\"b=2,c=3\"', --v=4]") + "--//--\n")
	if err != nil {
		t.Fatal(err)
	}
	if s.MaxPods != 7 || !maps.Equal(s.KubeReserved, map[string]string{"cpu": "2", "memory": "1Gi"}) || !maps.Equal(s.Labels, map[string]string{"a": "1", "b": "2", "c": "3"}) {
		t.Errorf("%+v", s)
	}
}

func TestInstancesThatDoNotJoin(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "there is no user data",
		"#!/bin/sh\necho hello":               "does not say the cluster's name",
		"hello = [":                           "neither MIME nor a script",
		"[settings.kubernetes]\nmax-pods = 1": "does not say the cluster's name",
		"[settings.kubernetes.node-taints]\na = [\"b\"]":                                           "want VALUE:EFFECT",
		"#!/bin/sh\n/etc/eks/bootstrap.sh c --apiserver-endpoint 'e":                               "a quote is not closed",
		"#!/bin/sh\n/etc/eks/bootstrap.sh c --apiserver-endpoint":                                  "has no value",
		"#!/bin/sh\n/etc/eks/bootstrap.sh c --apiserver-endpoint e":                                "does not say the cluster's certificate authority",
		"#!/bin/sh\n/etc/eks/bootstrap.sh c --kubelet-extra-args '--max-pods=x'":                   "the kubelet's flag --max-pods=x",
		nodeConfigHead + joins + "  kubelet: {flags: [--node-labels=node-role.kubernetes.io/x=y]}": "unknown 'kubernetes.io' or 'k8s.io' label",
		strings.Replace(nodeConfigHead, "kind: NodeConfig", "kind: NodeClass", 1) + joins:          "nodeadm knows",
		"MIME-Version: 1.0\nhello":               "user data is no MIME document",
		"MIME-Version: 1.0\nContent-Type: ;\n\n": "content type",
	} {
		if s, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %s", text, s, err, want)
		}
	}
}

func TestLabelsAKubeletMaySet(t *testing.T) {
	text := nodeConfigHead + joins + "  kubelet: {flags: ['--node-labels=node.kubernetes.io/x=y,kubernetes.io/arch=arm64,example.com/a=b,plain=c']}"
	if s, err := Parse(text); err != nil || len(s.Labels) != 4 {
		t.Errorf("%+v, %v", s, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("#!/bin/sh\n/etc/eks/bootstrap.sh 'c' --apiserver-endpoint 'e' --b64-cluster-ca 'Y2E=' --kubelet-extra-args '--node-labels=\"a=b\"'")
	f.Add(nodeConfigHead + joins)
	f.Add("[settings.kubernetes]\ncluster-name = 'c'\n")
	f.Add("<powershell>\n& $EKSBootstrapScriptFile -EKSClusterName 'c'\n</powershell>")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := Parse(text); err == nil && (s.Cluster == "" || s.Endpoint == "" || s.CA == "") {
			t.Errorf("joins no cluster: %+v", s)
		}
	})
}
