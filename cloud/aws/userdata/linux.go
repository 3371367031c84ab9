// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"sigs.k8s.io/yaml"
)

// al2 is a script that calls the image's own, after the user's parts.
func al2(m *Machine, s *settings) (Data, error) {
	script, err := bootstrap(m, s)
	if err != nil {
		return Data{}, err
	}
	parts, err := customParts(m.customPart(), func(string) string { return shellType })
	if err != nil {
		return Data{}, err
	}
	return Data{Text: join(append(parts, newPart(shellType, script)))}, nil
}

func bootstrap(m *Machine, s *settings) (string, error) {
	flags, err := s.flags()
	if err = errors.Join(err, plainCluster(m.Cluster), plain("clusterDNS", s.dns())); err != nil {
		return "", err
	}
	command := []string{fmt.Sprintf("/etc/eks/bootstrap.sh '%s' --apiserver-endpoint '%s' --b64-cluster-ca '%s'",
		m.Cluster.Name, m.Cluster.Endpoint, m.Cluster.CABundle)}
	if dns := s.dns(); dns != "" {
		if address, err := netip.ParseAddr(dns); err == nil && address.Is6() {
			command = append(command, "--ip-family ipv6")
		}
		command = append(command, fmt.Sprintf("--dns-cluster-ip '%s'", dns))
	}
	command = append(command, "--use-max-pods false", fmt.Sprintf("--kubelet-extra-args '%s'", strings.Join(flags, " ")))
	if m.RAID0 {
		command = append(command, "--local-disks raid0")
	}
	return "#!/bin/bash -xe\n" +
		"exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n" +
		strings.Join(command, " \\\n"), nil
}

// al2023 is a NodeConfig for nodeadm, which merges those it gets in their order,
// so that the last one wins.
func al2023(m *Machine, s *settings) (Data, error) {
	parts, err := customParts(m.customPart(), func(text string) string {
		if isMapping(text) {
			return nodeConfigType
		}
		return shellType
	})
	if err != nil {
		return Data{}, err
	}
	config, err := nodeConfig(m, s)
	if err != nil {
		return Data{}, err
	}
	return Data{Text: join(append(parts, newPart(nodeConfigType, config)))}, nil
}

// customParts returns the user's parts; typeOf tells the type of text that does
// not say its own.
func customParts(text string, typeOf func(string) string) ([]part, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, nil
	case isMIME(text):
		return split(text)
	}
	return []part{newPart(typeOf(text), text)}, nil
}

// isMapping reports whether the text is a YAML document with keys, as a
// NodeConfig is. Lines of a script can look like one, but not the first.
func isMapping(text string) bool {
	var document any
	if strings.HasPrefix(text, "#!") || yaml.Unmarshal([]byte(text), &document) != nil {
		return false
	}
	_, ok := document.(map[string]any)
	return ok
}

func nodeConfig(m *Machine, s *settings) (string, error) {
	if m.Cluster.CIDR == "" {
		return "", fmt.Errorf("the cluster's service CIDR is unknown")
	}
	ca, err := base64.StdEncoding.DecodeString(m.Cluster.CABundle)
	if err != nil {
		return "", fmt.Errorf("cluster CA bundle is not base64: %w", err)
	}
	storage := map[string]any{}
	if m.RAID0 {
		storage["strategy"] = "RAID0"
	}
	kubelet := map[string]any{"config": s.config(m.Kubelet)}
	if labels := strings.Join(pairs(s.labels, "="), ","); labels != "" {
		if err := plain("--node-labels", labels); err != nil {
			return "", err
		}
		kubelet["flags"] = []string{`--node-labels="` + labels + `"`}
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "node.eks.aws/v1alpha1",
		"kind":       "NodeConfig",
		"spec": map[string]any{
			"cluster": map[string]any{
				"name":                 m.Cluster.Name,
				"apiServerEndpoint":    m.Cluster.Endpoint,
				"certificateAuthority": ca, // encoded again
				"cidr":                 m.Cluster.CIDR,
			},
			"containerd": map[string]any{},
			"instance":   map[string]any{"localStorage": storage},
			"kubelet":    kubelet,
		},
	})
	if err != nil {
		return "", fmt.Errorf("spec.kubelet: %w", err)
	}
	return "# Karpenter Generated NodeConfig\n" + string(text), nil
}
