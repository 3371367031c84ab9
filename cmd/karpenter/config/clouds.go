// SPDX-License-Identifier: Apache-2.0

package config

import "errors"

// The clouds there are providers for.
const (
	CloudAWS   = "aws"
	CloudAzure = "azure"
	CloudKWOK  = "kwok"
)

func clouds() []setting {
	return []setting{
		setting{flag: "cloud-provider", env: "CLOUD_PROVIDER", chart: "settings.cloudProvider", preset: CloudAWS,
			meaning: "the cloud that launches instances: EC2, AKS, or kwok for tests without instances",
		}.oneOf(func(c *Config) *string { return &c.CloudProvider }, CloudAWS, CloudAzure, CloudKWOK),
		setting{flag: "cluster-name", env: "CLUSTER_NAME", chart: "settings.clusterName",
			meaning: "name of the EKS or AKS cluster; required with AWS and Azure. Everything that Karpenter creates in the cloud is tagged with it",
		}.text(func(c *Config) *string { return &c.ClusterName }),
		setting{flag: "cluster-endpoint", env: "CLUSTER_ENDPOINT", chart: "settings.clusterEndpoint",
			meaning: "URL of the API server for nodes; without it, Karpenter asks EKS. AKS tells nodes itself, but with aksscriptless it is required",
		}.endpoint(func(c *Config) *string { return &c.ClusterEndpoint }),
		setting{flag: "vm-memory-overhead-percent", env: "VM_MEMORY_OVERHEAD_PERCENT", chart: "settings.vmMemoryOverheadPercent", preset: "0.075",
			values:  "a number, 0 or more: a share of 1",
			meaning: "share of an instance type's memory that nodes do not report; 0.075 is 7.5%. On AWS, after a node of the type and image has reported its memory, Karpenter uses that amount",
		}.share(func(c *Config) *float64 { return &c.VMMemoryOverheadPercent }),
		setting{flag: "instance-types-file-path", env: "INSTANCE_TYPES_FILE_PATH", values: "a file",
			meaning: "instance types of the provider kwok, as karpenter instance-types prints them; without it, those it generates",
		}.text(func(c *Config) *string { return &c.InstanceTypesFilePath }),
	}
}

// clouded returns an error for settings that the cloud requires, and for
// combinations that are invalid there.
func (c *Config) clouded() error {
	switch {
	case c.CloudProvider == CloudAWS && c.ClusterName == "":
		return errors.New("missing field, cluster-name: set --cluster-name or CLUSTER_NAME to the name of the EKS cluster")
	case c.CloudProvider == CloudAzure:
		return c.azurely()
	}
	return nil
}
