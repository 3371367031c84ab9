// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// registry is where AKS' images of containers are.
const registry = "mcr.microsoft.com"

// flags returns the flags of the kubelet, in order.
func (c *Cluster) flags(n *Node) string {
	flags := map[string]string{
		"--address": "0.0.0.0", "--anonymous-auth": "false", "--authentication-token-webhook": "true", "--authorization-mode": "Webhook",
		"--cgroups-per-qos": "true", "--enforce-node-allocatable": "pods", "--client-ca-file": "/etc/kubernetes/certs/ca.crt",
		"--cloud-provider": "external", "--cluster-dns": c.DNSServiceIP, "--cluster-domain": "cluster.local", "--event-qps": "0",
		"--eviction-hard":           "memory.available<" + n.FreeMemory + ",nodefs.available<10%,nodefs.inodesFree<5%",
		"--image-gc-high-threshold": "85", "--image-gc-low-threshold": "80",
		"--kube-reserved": pairs(n.Reserved), "--system-reserved": "cpu=0,memory=0",
		"--kubeconfig": "/var/lib/kubelet/kubeconfig", "--max-pods": strconv.FormatInt(n.MaxPods, 10), "--node-status-update-frequency": "10s",
		"--pod-manifest-path": "/etc/kubernetes/manifests", "--pod-max-pids": "-1", "--protect-kernel-defaults": "true", "--read-only-port": "0",
		"--rotate-certificates": "true", "--resolv-conf": "/run/systemd/resolve/resolv.conf", "--streaming-connection-idle-timeout": "4h",
		"--tls-cert-file": "/etc/kubernetes/certs/kubeletserver.crt", "--tls-private-key-file": "/etc/kubernetes/certs/kubeletserver.key",
		"--tls-cipher-suites": strings.Join([]string{
			"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
			"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
			"TLS_RSA_WITH_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_GCM_SHA256",
		}, ","),
		"--register-with-taints": strings.Join(n.Taints, ","),
	}
	if n.from("1.30") {
		flags["--image-credential-provider-config"] = "/var/lib/kubelet/credential-provider-config.yaml"
		flags["--image-credential-provider-bin-dir"] = "/var/lib/kubelet/credential-provider"
	} else {
		flags["--feature-gates"] = "DisableKubeletCloudCredentialProviders=false"
		flags["--azure-container-registry-config"] = "/etc/kubernetes/azure.json"
	}
	if !n.from("1.31") {
		flags["--keep-terminated-pod-volumes"] = "false"
	}
	if !n.from("1.34") {
		flags["--cloud-config"] = "/etc/kubernetes/azure.json"
	}
	if !n.from("1.35") {
		flags["--pod-infra-container-image"] = pauseImage
	}
	maps.Copy(flags, n.chosen())
	var out []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		out = append(out, name+"="+flags[name])
	}
	return strings.Join(out, " ")
}

// chosen are the flags that the class sets.
func (n *Node) chosen() map[string]string {
	out := map[string]string{}
	k := n.Kubelet
	if k == nil {
		return out
	}
	text := func(flag string, value *string) {
		if value != nil && *value != "" {
			out[flag] = *value
		}
	}
	integer := func(flag string, value *int32) {
		if value != nil {
			out[flag] = strconv.Itoa(int(*value))
		}
	}
	truth := func(flag string, value *bool) {
		if value != nil {
			out[flag] = strconv.FormatBool(*value)
		}
	}
	text("--cpu-manager-policy", k.CPUManagerPolicy)
	text("--topology-manager-policy", k.TopologyManagerPolicy)
	integer("--image-gc-high-threshold", k.ImageGCHighThresholdPercent)
	integer("--image-gc-low-threshold", k.ImageGCLowThresholdPercent)
	integer("--container-log-max-files", k.ContainerLogMaxFiles)
	truth("--cpu-cfs-quota", k.CPUCFSQuota)
	truth("--fail-swap-on", k.FailSwapOn)
	text("--container-log-max-size", k.ContainerLogMaxSize)
	if kilo, ok := strings.CutSuffix(out["--container-log-max-size"], "K"); ok {
		out["--container-log-max-size"] = kilo + "k" // as quantities spell it
	}
	if len(k.AllowedUnsafeSysctls) > 0 {
		out["--allowed-unsafe-sysctls"] = strings.Join(k.AllowedUnsafeSysctls, ",")
	}
	if k.PodPidsLimit != nil {
		out["--pod-max-pids"] = strconv.FormatInt(*k.PodPidsLimit, 10)
	}
	return out
}

// pairs writes KEY=VALUE, in order.
func pairs(values map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		out = append(out, key+"="+values[key])
	}
	return strings.Join(out, ",")
}
