// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud/azurevm"
)

// Cluster is what all nodes have in common.
type Cluster struct {
	APIServer         string // host
	Authority         string // certificate authority of the API server; PEM in base64
	Tenant            string // "" = unknown
	Subscription      string
	NodeResourceGroup string
	Region            string
	Cloud             string // such as AzurePublicCloud
	KubeletIdentity   string // client ID of the kubelets' managed identity
	AdminUser         string
	NetworkPlugin     string // azure, none
	NetworkPluginMode string // overlay, or ""
	NetworkDataplane  string // cilium, azure, or ""
	NetworkPolicy     string
	NetworkGUID       string // of the virtual network; only labels of an overlay need it
	DNSServiceIP      string
}

// Node is what differs between nodes.
type Node struct {
	Kubernetes    string // version, such as 1.33.4
	Arch          string // amd64, arm64
	Token         string
	Subnet        string // ARM ID
	SecurityGroup string // name of that which AKS manages
	Labels        map[string]string
	Taints        []string // KEY=VALUE:EFFECT
	MaxPods       int64
	Reserved      map[string]string // of the node's resources for the kubelet
	FreeMemory    string            // below which the kubelet evicts
	Kubelet       *v1beta1.KubeletConfiguration
	Driver        string // of its GPUs, that AKS' scripts install; "" = none
}

// Script returns the script for the first boot. It is an error if a value cannot be
// written into it safely.
func (c *Cluster) Script(n *Node) (string, error) {
	variables, err := c.variables(n)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(before)
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		value, err := quoted(variables[name])
		if err != nil {
			return "", fmt.Errorf("boot script: %s: %w", name, err)
		}
		fmt.Fprintf(&b, "%s=%s\n", name, value)
	}
	b.WriteString(after)
	return b.String(), nil
}

// before is the script up to the variables, after what follows them. The provisioning
// scripts wait for the mark in the manifest; the folder is one that the extension
// would have made.
const (
	before = `#!/bin/bash
set -o allexport
echo '#EOF' >> /opt/azure/manifest.json
mkdir -p /var/log/azure/Microsoft.Azure.Extensions.CustomScript/events
echo "$(date),$(hostname)" > /var/log/azure/cluster-provision-cse-output.log
for i in $(seq 1 1200); do
  grep -Fq EOF /opt/azure/containers/provision.sh && break
  if [ "$i" -eq 1200 ]; then exit 100; fi
  sleep 1
done
`
	after = `/usr/bin/nohup /bin/bash -c '/bin/bash /opt/azure/containers/provision_start.sh'
`
)

// quoted writes a value for the shell. What could end the quotes or the line is
// refused: no value of a cluster has it.
func quoted(value string) (string, error) {
	if i := strings.IndexFunc(value, func(r rune) bool { return r == '\'' || r == '"' || r < ' ' || r == 0x7f }); i >= 0 {
		return "", fmt.Errorf("%q: quotes, newlines and control characters are not allowed", value)
	}
	return "'" + value + "'", nil
}

// from reports whether the version of Kubernetes is this one or a later one.
func (n *Node) from(least string) bool {
	v, err := version.ParseGeneric(n.Kubernetes)
	return err == nil && v.AtLeast(version.MustParseGeneric(least))
}

// driver is what AKS' scripts install for GPUs.
type driver struct{ version, image string }

// drivers are the versions by kind. They age: a release of this project has those of
// its time.
func drivers() map[string]driver {
	return map[string]driver{
		"cuda":     {"470.82.01", "20260629214430"},
		"cuda-lts": {"580.159.04", "20260629214430"},
		"grid":     {"570.211.01", "20260522192315"},
		"grid-v20": {"595.58.03", "20260609172331"},
	}
}

// DriverOf returns what is to be installed for the GPUs of a size in a class, "" if
// nothing is.
func DriverOf(gpu *azurevm.GPU, class *v1beta1.AKSNodeClass) string {
	if gpu == nil || gpu.Manufacturer != v1beta1.ManufacturerNVIDIA || !class.InstallsGPUDriver() {
		return ""
	}
	return gpu.Driver
}
