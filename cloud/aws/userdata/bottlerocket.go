// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// bottlerocket is settings in TOML, the user's with Karpenter's on top.
func bottlerocket(m *Machine, s *settings) (Data, error) {
	document := map[string]any{}
	if err := toml.Unmarshal([]byte(m.Custom), &document); err != nil {
		return Data{}, fmt.Errorf("spec.userData is not TOML: %w", err)
	}
	all, err := table(document, "settings")
	if err != nil {
		return Data{}, err
	}
	kubernetes, err := table(all, "kubernetes")
	if err != nil {
		return Data{}, err
	}
	dropped := dropUnknown(kubernetes)
	if err := checkTypes(kubernetes); err != nil {
		return Data{}, err
	}
	labels, err := table(kubernetes, "node-labels")
	if err != nil {
		return Data{}, err
	}
	for name, value := range s.labels {
		labels[name] = value
	}
	kubernetes["cluster-name"] = m.Cluster.Name
	kubernetes["api-server"] = m.Cluster.Endpoint
	kubernetes["cluster-certificate"] = m.Cluster.CABundle
	kubernetes["max-pods"] = s.maxPods
	kubernetes["node-taints"] = taintTable(s)
	if err := overwrite(kubernetes, s); err != nil {
		return Data{}, err
	}
	if m.RAID0 {
		commands, err := table(all, "bootstrap-commands")
		if err != nil {
			return Data{}, err
		}
		commands["000-mount-instance-storage"] = mountStorage(m.Version)
	}
	text, err := toml.Marshal(document)
	if err != nil {
		return Data{}, fmt.Errorf("spec.userData: %w", err)
	}
	return Data{Text: string(text), Dropped: dropped}, nil
}

// table returns the table of the name, which is made if there is none.
func table(in map[string]any, name string) (map[string]any, error) {
	value, there := in[name]
	if !there {
		value = map[string]any{}
		in[name] = value
	}
	out, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("spec.userData: %s is not a table", name)
	}
	return out, nil
}

// taintTable returns values and effects of the taints by key.
func taintTable(s *settings) map[string]any {
	byKey := map[string][]string{}
	for _, t := range s.taints {
		byKey[t.Key] = append(byKey[t.Key], t.Value+":"+string(t.Effect))
	}
	out := map[string]any{}
	for key, values := range byKey {
		out[key] = values
	}
	return out
}

// overwrite puts in what the configuration of the kubelet says.
func overwrite(kubernetes map[string]any, s *settings) error {
	if dns := s.dns(); dns != "" {
		kubernetes["cluster-dns-ip"] = dns
	}
	grace := map[string]string{}
	for signal, text := range s.EvictionSoftGracePeriod {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("spec.kubelet.evictionSoftGracePeriod[%s]: %w", signal, err)
		}
		grace[signal] = d.String()
	}
	for name, values := range map[string]map[string]string{
		"system-reserved": s.systemReserved, "kube-reserved": s.kubeReserved,
		"eviction-hard": s.EvictionHard, "eviction-soft": s.EvictionSoft, "eviction-soft-grace-period": grace,
	} {
		if len(values) > 0 {
			kubernetes[name] = values
		}
	}
	if n := s.EvictionMaxPodGracePeriod; n != nil {
		kubernetes["eviction-max-pod-grace-period"] = *n
	}
	for name, percent := range map[string]*int32{
		"image-gc-high-threshold-percent": s.ImageGCHighThresholdPercent,
		"image-gc-low-threshold-percent":  s.ImageGCLowThresholdPercent,
	} {
		if percent != nil {
			kubernetes[name] = strconv.Itoa(int(*percent))
		}
	}
	if quota := s.CPUCFSQuota; quota != nil {
		kubernetes["cpu-cfs-quota-enforced"] = *quota
	}
	return nil
}

// mountStorage makes one disk of the local ones and puts there what needs space.
// Releases before firstBind do not know by themselves what that is.
func mountStorage(version string) map[string]any {
	bind := []string{"apiclient", "ephemeral-storage", "bind"}
	if !bindsByItself(version) {
		bind = append(bind, "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
	}
	return map[string]any{
		"commands":  [][]string{{"apiclient", "ephemeral-storage", "init"}, bind},
		"essential": true,
		"mode":      "always",
	}
}
