// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestContent: `templates show=(…)` of a situation lists the templates that a
// launch needs, each with the types that are started from it and with the
// fields that are shown.
func TestContent(t *testing.T) {
	known := descriptions(t)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var fields []string
			for _, arg := range d.CmdArgs {
				if arg.Key == "show" {
					fields = arg.Vals
				}
			}
			s := parse(t, d.Input)
			made, err := New(s.config(nil, &controlPlane{cidr: "10.100.0.0/16"})).drafts(t.Context(), s.want(t, known))
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			var out strings.Builder
			for _, draft := range made {
				fmt.Fprintf(&out, "%s of", draft.ImageID)
				for _, c := range draft.Candidates {
					fmt.Fprintf(&out, " %s×%d", c.Type.Name, len(c.Offerings))
				}
				if draft.ReservationID != "" {
					fmt.Fprintf(&out, " in %s", draft.ReservationID)
				}
				out.WriteString("\n")
				for line := range strings.Lines(show(t, draft, fields)) {
					out.WriteString("  " + line)
				}
			}
			return out.String()
		})
	})
}

// TestNames: equal content has one name, and whatever changes the content
// changes the name (spec 65/96).
func TestNames(t *testing.T) {
	known := descriptions(t)
	name := func(text string) string {
		s := parse(t, text)
		made, err := New(s.config(nil, &controlPlane{cidr: "10.100.0.0/16"})).drafts(t.Context(), s.want(t, known))
		if err != nil || len(made) != 1 {
			t.Fatalf("%d templates for %s: %v", len(made), text, err)
		}
		return made[0].Name
	}
	const base = "class: {spec: {amiFamily: AL2023}}"
	first := name(base)
	if !strings.HasPrefix(first, "karpenter.k8s.aws/") || strings.Trim(strings.TrimPrefix(first, "karpenter.k8s.aws/"), "0123456789") != "" {
		t.Errorf("name %q", first)
	}
	for _, same := range []string{
		base,
		base + "\nclaim: {metadata: {name: pool-2}}",
		base + "\nclaim: {metadata: {labels: {topology.kubernetes.io/zone: us-east-1a}}}",
		base + "\ntypes: [m5a.large]",
		base + "\ntypes: [m5.large, m5a.large]",
		"class: {spec: {amiFamily: AL2023, kubelet: {}, tags: {}}}",
		"class: {spec: {amiFamily: AL2023, detailedMonitoring: false}}",
	} {
		if name(same) != first {
			t.Errorf("another name for %s", same)
		}
	}
	seen := map[string]string{first: base}
	for _, other := range []string{
		"class: {metadata: {name: other}, spec: {amiFamily: AL2023}}",
		"class: {spec: {amiFamily: AL2023, kubelet: {maxPods: 12}}}",
		"class: {spec: {amiFamily: AL2023, kubelet: {topologyManagerPolicy: restricted}}}",
		"class: {spec: {amiFamily: AL2023, kubelet: {kubeReserved: {cpu: 200m}}}}",
		"class: {spec: {amiFamily: AL2023, kubelet: {systemReserved: {cpu: 200m}}}}",
		"class: {spec: {amiFamily: AL2023, userData: 'echo hi'}}",
		"class: {spec: {amiFamily: AL2023, tags: {a: b}}}",
		"class: {spec: {amiFamily: AL2023, associatePublicIPAddress: true}}",
		"class: {spec: {amiFamily: AL2023, associatePublicIPAddress: false}}",
		"class: {spec: {amiFamily: AL2023, ipPrefixCount: 1}}",
		"class: {spec: {amiFamily: AL2023, instanceStorePolicy: RAID0}}",
		"class: {spec: {amiFamily: AL2023, detailedMonitoring: true}}",
		"class: {spec: {amiFamily: AL2023, metadataOptions: {httpTokens: optional}}}",
		"class: {spec: {amiFamily: AL2023, cpuOptions: {nestedVirtualization: enabled}}}",
		"class: {spec: {amiFamily: AL2023, connectionTracking: {udpTimeout: 60}}}",
		"class: {spec: {amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 30Gi}}]}}",
		"class: {spec: {amiFamily: AL2023, networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}]}}",
		"class: {spec: {amiFamily: AL2023}, status: {securityGroups: [{id: sg-3}]}}",
		"class: {spec: {amiFamily: AL2023}, status: {instanceProfile: profile-2}}",
		"class: {spec: {amiFamily: AL2023}, status: {amis: [{id: ami-2, requirements: []}]}}",
		"class: {spec: {amiFamily: AL2}}",
		base + "\ncapacityType: spot",
		base + "\ndns: 10.100.0.11",
		base + "\ngroupID: pg-1",
		base + "\ngateOff: true",
		base + "\nclaim: {metadata: {labels: {example.com/a: b}}}",
		base + "\nclaim: {metadata: {labels: {karpenter.sh/nodepool: other}}}",
		base + "\nclaim: {spec: {taints: [{key: a, effect: NoSchedule}]}}",
		base + "\nclaim: {spec: {startupTaints: [{key: b, effect: NoSchedule}]}}",
		base + "\nclaim: {spec: {requirements: [{key: karpenter.k8s.aws/instance-tenancy, operator: In, values: [dedicated]}]}}",
	} {
		got := name(other)
		if was, ok := seen[got]; ok {
			t.Errorf("one name for\n%s\nand\n%s", was, other)
		}
		seen[got] = other
	}
}
