// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
)

// situation is a machine as the cases write it; what is not said is usual.
type situation struct {
	UserData       string                     `json:"userData"`
	Labels         map[string]string          `json:"labels"`
	Taints         []string                   `json:"taints"` // key=value:Effect
	Kubelet        awsv1.KubeletConfiguration `json:"kubelet"`
	MaxPods        int64                      `json:"maxPods"`
	KubeReserved   corev1.ResourceList        `json:"kubeReserved"`
	SystemReserved corev1.ResourceList        `json:"systemReserved"`
	RAID0          bool                       `json:"raid0"`
	Version        string                     `json:"version"`
	Cluster        string                     `json:"cluster"`
	CIDR           *string                    `json:"cidr"`
	CA             *string                    `json:"ca"`
	DNS            *string                    `json:"dns"`
}

func (s *situation) machine(family string) *Machine {
	m := &Machine{
		Family: awsv1.AMIFamily(family), Custom: s.UserData, CapacityType: "spot",
		Cluster: &Cluster{Name: "prod", Endpoint: "https://api.example.com", CABundle: "Y2E=", CIDR: "10.100.0.0/16", DNS: "10.100.0.10"},
		Labels:  s.Labels, Kubelet: s.Kubelet, MaxPods: s.MaxPods,
		KubeReserved: s.KubeReserved, SystemReserved: s.SystemReserved, RAID0: s.RAID0, Version: s.Version,
	}
	for _, t := range s.Taints {
		mark, effect, _ := strings.Cut(t, ":")
		key, value, _ := strings.Cut(mark, "=")
		m.Taints = append(m.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	if s.Cluster != "" {
		m.Cluster.Name = s.Cluster
	}
	for _, said := range []struct {
		text *string
		into *string
	}{{s.CIDR, &m.Cluster.CIDR}, {s.CA, &m.Cluster.CABundle}, {s.DNS, &m.Cluster.DNS}} {
		if said.text != nil {
			*said.into = *said.text
		}
	}
	return m
}

// TestRender: `render FAMILY` of a situation gives the user data, whose text
// must not depend on the order of maps.
func TestRender(t *testing.T) {
	datadriven.Walk(t, "testdata/render", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var s situation
			if err := yaml.UnmarshalStrict([]byte(d.Input), &s); err != nil {
				d.Fatalf(t, "%v", err)
			}
			var out strings.Builder
			for _, arg := range d.CmdArgs {
				data, err := Render(s.machine(arg.Key))
				if err != nil {
					fmt.Fprintf(&out, "error: %v\n", err)
					continue
				}
				for range 8 {
					if again, _ := Render(s.machine(arg.Key)); again.Text != data.Text || !slices.Equal(again.Dropped, data.Dropped) {
						d.Fatalf(t, "differs when written again:\n%s", again.Text)
					}
				}
				if text, err := base64.StdEncoding.DecodeString(data.Encoded()); err != nil || string(text) != data.Text {
					d.Fatalf(t, "encoded as %q: %v", data.Encoded(), err)
				}
				fmt.Fprintln(&out, strings.TrimSuffix(data.Text, "\n"))
				for _, dropped := range data.Dropped {
					fmt.Fprintf(&out, "dropped: %s\n", dropped)
				}
			}
			return out.String()
		})
	})
}

// TestCustom: the bytes are the user's, without labels, taints or anything, and
// nothing of the user's is nothing (spec 65/111, spec 65/116).
func TestCustom(t *testing.T) {
	for _, text := range []string{"", "#!/bin/sh\r\necho hi\n\n", "MIME-Version: 1.0\n", "\x00\xff"} {
		s := situation{UserData: text, Labels: map[string]string{"a": "b"}, Taints: []string{"c=d:NoSchedule"}, RAID0: true}
		data, err := Render(s.machine("Custom"))
		if err != nil || data.Text != text || data.Encoded() != base64.StdEncoding.EncodeToString([]byte(text)) {
			t.Errorf("%q became %q, %q: %v", text, data.Text, data.Encoded(), err)
		}
	}
}

// TestBottlerocketVersion: where the release is read, and what it means for
// local disks (spec 65/114).
func TestBottlerocketVersion(t *testing.T) {
	term := func(set func(*awsv1.AMISelectorTerm)) awsv1.AMISelectorTerm {
		var out awsv1.AMISelectorTerm
		set(&out)
		return out
	}
	alias := term(func(t *awsv1.AMISelectorTerm) { t.Alias = "bottlerocket@1.46.1" })
	name := term(func(t *awsv1.AMISelectorTerm) { t.Name = "bottlerocket-aws-k8s-1.33-x86_64-v1.45.0-431fe75a" })
	id := term(func(t *awsv1.AMISelectorTerm) { t.ID = "ami-2" })
	other := term(func(t *awsv1.AMISelectorTerm) { t.Tags = map[string]string{"a": "b"} })
	amis := []awsv1.AMI{
		{ID: "ami-0", Name: "own-v3.1.4"},
		{ID: "ami-1", Name: "bottlerocket-aws-k8s-1.33-aarch64-v1.50.0-431fe75a"},
		{ID: "ami-2", Name: "own-v1.47.0"},
	}
	for _, c := range []struct {
		terms []awsv1.AMISelectorTerm
		amis  []awsv1.AMI
		want  string
	}{
		{[]awsv1.AMISelectorTerm{alias}, amis, "1.46.1"},
		{[]awsv1.AMISelectorTerm{id, name}, amis, "v1.45.0"},
		{[]awsv1.AMISelectorTerm{other, id}, amis, "v1.47.0"},
		{[]awsv1.AMISelectorTerm{other}, amis, "v1.50.0"},
		{[]awsv1.AMISelectorTerm{other}, amis[:1], ""},
	} {
		class := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{AMISelectorTerms: c.terms}, Status: awsv1.EC2NodeClassStatus{AMIs: c.amis}}
		if got := BottlerocketVersion(class); got != c.want {
			t.Errorf("%+v: %q, want %q", c.terms, got, c.want)
		}
	}
	for version, want := range map[string]bool{
		"v1.45.0": false, "v1.46.0": true, "1.46.0": true, "v1.100.0": true, "v2.0.0": true, "latest": true,
		"1.46": false, "v1.46": false, "": false, "v1.46.*": false, "v1.46.0.1": false, "v1.46.0-rc1": false,
	} {
		if bindsByItself(version) != want {
			t.Errorf("%q binds by itself: %v", version, !want)
		}
	}
}
