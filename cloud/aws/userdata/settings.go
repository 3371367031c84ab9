// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "karpenter/api/aws/v1"
	karpenterv1 "karpenter/api/v1"
)

// settings are the settings of the kubelet, with the names of its
// configuration.
type settings struct {
	ClusterDNS                  []string          `json:"clusterDNS"`
	PodsPerCore                 *int32            `json:"podsPerCore"`
	EvictionHard                map[string]string `json:"evictionHard"`
	EvictionSoft                map[string]string `json:"evictionSoft"`
	EvictionSoftGracePeriod     map[string]string `json:"evictionSoftGracePeriod"`
	EvictionMaxPodGracePeriod   *int32            `json:"evictionMaxPodGracePeriod"`
	ImageGCHighThresholdPercent *int32            `json:"imageGCHighThresholdPercent"`
	ImageGCLowThresholdPercent  *int32            `json:"imageGCLowThresholdPercent"`
	CPUCFSQuota                 *bool             `json:"cpuCFSQuota"`

	labels         map[string]string
	taints         []corev1.Taint
	maxPods        int64
	kubeReserved   map[string]string
	systemReserved map[string]string
}

// resolved lists the fields of the configuration that are not read here: the
// machine has what became of them.
func resolved() []string { return []string{"maxPods", "kubeReserved", "systemReserved"} }

func newSettings(m *Machine) (*settings, error) {
	s := &settings{
		labels: labels(m), taints: taints(m), maxPods: m.MaxPods,
		kubeReserved: texts(m.KubeReserved), systemReserved: texts(m.SystemReserved),
	}
	config := maps.Clone(m.Kubelet)
	for _, field := range resolved() {
		delete(config, field)
	}
	text, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("spec.kubelet: %w", err)
	}
	if len(s.ClusterDNS) == 0 && m.Cluster.DNS != "" {
		s.ClusterDNS = []string{m.Cluster.DNS}
	}
	return s, nil
}

// dns returns the address of the first DNS server, or "".
func (s *settings) dns() string {
	if len(s.ClusterDNS) == 0 {
		return ""
	}
	return s.ClusterDNS[0]
}

// labels are those of the node: of the claim, less what the API server lets no
// kubelet set, and that of taints, which the image sets before the node is seen.
func labels(m *Machine) map[string]string {
	out := maps.Clone(m.Labels)
	if out == nil {
		out = map[string]string{}
	}
	if m.CapacityType != "" {
		out[karpenterv1.CapacityTypeLabelKey] = m.CapacityType
	}
	out[karpenterv1.NodeDoNotSyncTaintsLabelKey] = "true"
	maps.DeleteFunc(out, func(key, _ string) bool { return isKubernetes(key) })
	return out
}

// isKubernetes reports whether the key belongs to Kubernetes.
func isKubernetes(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}

// taints are those of the claim and, once, the one of nodes that Karpenter has
// not seen.
func taints(m *Machine) []corev1.Taint {
	unregistered := karpenterv1.UnregisteredNoExecuteTaint()
	out := slices.Clone(m.Taints)
	if !slices.ContainsFunc(out, func(t corev1.Taint) bool { return t.MatchTaint(&unregistered) }) {
		out = append(out, unregistered)
	}
	return out
}

func texts(quantities corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range quantities {
		out[string(name)] = q.String()
	}
	return out
}

// flags returns the kubelet's command line, for images that take one. None of
// them holds what could end quotes in a shell.
func (s *settings) flags() ([]string, error) {
	var out []string
	list := func(flag, relation string, values map[string]string) {
		if len(values) > 0 {
			out = append(out, fmt.Sprintf("--%s=%q", flag, strings.Join(pairs(values, relation), ",")))
		}
	}
	list("node-labels", "=", s.labels)
	var marks []string
	for _, t := range s.taints {
		marks = append(marks, t.ToString())
	}
	out = append(out, fmt.Sprintf("--register-with-taints=%q", strings.Join(marks, ",")), fmt.Sprintf("--max-pods=%d", s.maxPods))
	out = append(out, number("pods-per-core", s.PodsPerCore)...)
	list("system-reserved", "=", s.systemReserved)
	list("kube-reserved", "=", s.kubeReserved)
	list("eviction-hard", "<", s.EvictionHard)
	list("eviction-soft", "<", s.EvictionSoft)
	list("eviction-soft-grace-period", "=", s.EvictionSoftGracePeriod)
	out = append(out, number("eviction-max-pod-grace-period", s.EvictionMaxPodGracePeriod)...)
	out = append(out, number("image-gc-high-threshold", s.ImageGCHighThresholdPercent)...)
	out = append(out, number("image-gc-low-threshold", s.ImageGCLowThresholdPercent)...)
	out = append(out, number("cpu-cfs-quota", s.CPUCFSQuota)...)
	for _, flag := range out {
		name, value, _ := strings.Cut(flag, "=")
		if err := plain(name, strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func number[T any](flag string, value *T) []string {
	if value == nil {
		return nil
	}
	return []string{fmt.Sprintf("--%s=%v", flag, *value)}
}

// pairs returns keys and values with the relation between them, sorted.
func pairs(values map[string]string, relation string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		out = append(out, key+relation+values[key])
	}
	return out
}

// plain returns an error when the text means more to a shell than itself.
func plain(what, text string) error {
	special := strings.IndexFunc(text, func(r rune) bool {
		return r < ' ' || r == 0x7f || strings.ContainsRune("'\"`$\\", r)
	})
	if special < 0 {
		return nil
	}
	return fmt.Errorf("%s: %q holds a quote, $, backslash or control character, which cannot be passed to the node; remove it", what, text)
}

// plainCluster checks what of the cluster goes into a script.
func plainCluster(c *Cluster) error {
	for _, of := range []struct{ what, text string }{
		{"cluster name", c.Name}, {"cluster endpoint", c.Endpoint}, {"cluster CA bundle", c.CABundle},
	} {
		if err := plain(of.what, of.text); err != nil {
			return err
		}
	}
	return nil
}

// customPart is the user's part without the carriage returns of editors.
func (m *Machine) customPart() string { return strings.ReplaceAll(m.Custom, "\r", "") }

// config returns the configuration of the kubelet in its own format, without
// settings that the family does not support.
func (s *settings) config(raw awsv1.KubeletConfiguration) map[string]any {
	out := map[string]any{}
	for field, value := range raw {
		out[field] = json.RawMessage(value.Raw)
	}
	for _, field := range resolved() {
		delete(out, field)
	}
	out["maxPods"] = s.maxPods
	out["registerWithTaints"] = marks(s.taints)
	if len(s.ClusterDNS) > 0 {
		out["clusterDNS"] = s.ClusterDNS
	}
	if len(s.kubeReserved) > 0 {
		out["kubeReserved"] = s.kubeReserved
	}
	if len(s.systemReserved) > 0 {
		out["systemReserved"] = s.systemReserved
	}
	return out
}

func marks(taints []corev1.Taint) []map[string]string {
	var out []map[string]string
	for _, t := range taints {
		mark := map[string]string{"key": t.Key, "effect": string(t.Effect)}
		if t.Value != "" {
			mark["value"] = t.Value
		}
		out = append(out, mark)
	}
	return out
}
