// SPDX-License-Identifier: Apache-2.0

package bootstrap

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// mirror is where AKS' scripts download what an image lacks.
const mirror = "https://acs-mirror.azureedge.net"

// variables are what the provisioning scripts read.
func (c *Cluster) variables(n *Node) (map[string]string, error) {
	out := constants()
	subnet := strings.Split(n.Subnet, "/")
	if len(subnet) != 11 {
		return nil, fmt.Errorf("%q is not the ID of a subnet", n.Subnet)
	}
	cluster := regexp.MustCompile(`[0-9]{8}`).FindString(n.SecurityGroup)
	for name, value := range map[string]string{
		"API_SERVER_NAME": c.APIServer, "KUBE_CA_CRT": c.Authority, "TLS_BOOTSTRAP_TOKEN": n.Token, "KUBERNETES_VERSION": n.Kubernetes,
		"KUBELET_FLAGS": c.flags(n), "KUBELET_NODE_LABELS": pairs(n.Labels),
		"TENANT_ID": c.Tenant, "SUBSCRIPTION_ID": c.Subscription, "RESOURCE_GROUP": c.NodeResourceGroup, "LOCATION": c.Region,
		"USER_ASSIGNED_IDENTITY_ID": c.KubeletIdentity, "VIRTUAL_NETWORK_RESOURCE_GROUP": subnet[4], "VIRTUAL_NETWORK": subnet[8], "SUBNET": subnet[10],
		"NETWORK_SECURITY_GROUP": n.SecurityGroup, "ROUTE_TABLE": "aks-agentpool-" + cluster + "-routetable",
		"NETWORK_PLUGIN": c.plugin(), "NETWORK_POLICY": c.NetworkPolicy,
		"VNET_CNI_PLUGINS_URL": mirror + "/azure-cni/v1.4.32/binaries/azure-vnet-cni-linux-" + n.Arch + "-v1.4.32.tgz",
		"CNI_PLUGINS_URL":      mirror + "/cni-plugins/v1.1.1/binaries/cni-plugins-linux-" + n.Arch + "-v1.1.1.tgz",
		"KUBE_BINARY_URL":      "", "CREDENTIAL_PROVIDER_DOWNLOAD_URL": n.credentialProvider(),
		"CONTAINERD_CONFIG_CONTENT": encoded(containerd(n.Driver != "")),
		"GPU_NODE":                  strconv.FormatBool(n.Driver != ""), "CONFIG_GPU_DRIVER_IF_NEEDED": strconv.FormatBool(n.Driver != ""),
		"GPU_DRIVER_TYPE": n.Driver, "GPU_DRIVER_VERSION": drivers()[n.Driver].version, "GPU_IMAGE_SHA": drivers()[n.Driver].image,
		"TARGET_CLOUD": c.Cloud, "TARGET_ENVIRONMENT": c.Cloud, "ADMINUSER": c.AdminUser,
	} {
		out[name] = value
	}
	if !n.from("1.34") {
		out["KUBE_BINARY_URL"] = fmt.Sprintf("%s/kubernetes/v%s/binaries/kubernetes-node-linux-%s.tar.gz", mirror, n.Kubernetes, n.Arch)
	}
	return out, nil
}

// plugin is the network plugin that the scripts install.
func (c *Cluster) plugin() string {
	overlay := c.NetworkPluginMode == "overlay"
	if c.NetworkPlugin == "azure" && !overlay && c.NetworkDataplane != "cilium" {
		return "azure"
	}
	return "none" // the cluster's DaemonSets bring it
}

// credentialProvider is where the plugin for Azure's container registries is, ""
// before Kubernetes needs it.
func (n *Node) credentialProvider() string {
	release := ""
	for _, of := range []struct{ kubernetes, release string }{{"1.30", "1.30.12"}, {"1.31", "1.31.6"}, {"1.32", "1.32.5"}, {"1.33", "1.33.0"}} {
		if n.from(of.kubernetes) {
			release = of.release
		}
	}
	if release == "" {
		return ""
	}
	return fmt.Sprintf("%s/cloud-provider-azure/v%s/binaries/azure-acr-credential-provider-linux-%s-v%s.tar.gz", mirror, release, n.Arch, release)
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// constants are the variables that are the same on every node.
func constants() map[string]string {
	const scripts = "/opt/azure/containers/"
	out := map[string]string{
		"ENABLE_TLS_BOOTSTRAPPING": "true", "ENABLE_SECURE_TLS_BOOTSTRAPPING": "false", "ENABLE_KUBELET_SERVING_CERTIFICATE_ROTATION": "false",
		"KUBELET_CONFIG_FILE_ENABLED": "false", "KUBELET_CONFIG_FILE_CONTENT": "",
		"USE_MANAGED_IDENTITY_EXTENSION": "true", "USE_INSTANCE_METADATA": "true",
		"SERVICE_PRINCIPAL_CLIENT_ID": "msi", "SERVICE_PRINCIPAL_FILE_CONTENT": encoded("msi"), "VM_TYPE": "standard",
		"CONTAINER_RUNTIME": "containerd", "CLI_TOOL": "ctr", "NEEDS_CONTAINERD": "true", "IS_VHD": "true", "NEEDS_CGROUPV2": "true",
		"SYSCTL_CONTENT": encoded(`net.ipv4.tcp_retries2=8
net.core.message_burst=80
net.core.message_cost=40
net.core.somaxconn=16384
net.ipv4.tcp_max_syn_backlog=16384
net.ipv4.neigh.default.gc_thresh1=4096
net.ipv4.neigh.default.gc_thresh2=8192
net.ipv4.neigh.default.gc_thresh3=16384
`),
		"CLOUDPROVIDER_BACKOFF": "true", "CLOUDPROVIDER_BACKOFF_MODE": "v2", "CLOUDPROVIDER_BACKOFF_RETRIES": "6", "CLOUDPROVIDER_BACKOFF_EXPONENT": "0",
		"CLOUDPROVIDER_BACKOFF_DURATION": "5", "CLOUDPROVIDER_BACKOFF_JITTER": "0", "CLOUDPROVIDER_RATELIMIT": "true", "CLOUDPROVIDER_RATELIMIT_QPS": "10",
		"CLOUDPROVIDER_RATELIMIT_QPS_WRITE": "10", "CLOUDPROVIDER_RATELIMIT_BUCKET": "100", "CLOUDPROVIDER_RATELIMIT_BUCKET_WRITE": "100",
		"LOAD_BALANCER_SKU": "Standard", "LOAD_BALANCER_DISABLE_OUTBOUND_SNAT": "false", "EXCLUDE_MASTER_FROM_STANDARD_LB": "true", "MAXIMUM_LOADBALANCER_RULE_COUNT": "250",
		"IS_CUSTOM_CLOUD": "false", "MCR_REPOSITORY_BASE": registry, "CSE_TIMEOUT": "15m",
		"OUTBOUND_COMMAND":     "curl -v --insecure --proxy-insecure https://" + registry + "/v2/",
		"CSE_HELPERS_FILEPATH": scripts + "provision_source.sh", "CSE_DISTRO_HELPERS_FILEPATH": scripts + "provision_source_distro.sh",
		"CSE_INSTALL_FILEPATH": scripts + "provision_installs.sh", "CSE_DISTRO_INSTALL_FILEPATH": scripts + "provision_installs_distro.sh",
		"CSE_CONFIG_FILEPATH": scripts + "provision_configs.sh", "CUSTOM_SEARCH_DOMAIN_FILEPATH": scripts + "setup-custom-search-domains.sh",
		"CUSTOM_CA_TRUST_COUNT": "0", "SWAP_FILE_SIZE_MB": "0",
	}
	for name := range strings.FieldsSeq(`GPU_NEEDS_FABRIC_MANAGER MIG_NODE SGX_NODE ENABLE_IMDS_RESTRICTION INSERT_IMDS_RESTRICTION_RULE_TO_MANGLE_TABLE
		SHOULD_CONFIGURE_HTTP_PROXY SHOULD_CONFIGURE_HTTP_PROXY_CA SHOULD_CONFIGURE_CUSTOM_CA_TRUST SHOULD_CONFIG_SWAP_FILE SHOULD_CONFIG_TRANSPARENT_HUGE_PAGE
		HAS_CUSTOM_SEARCH_DOMAIN DISABLE_SSH IPV6_DUAL_STACK_ENABLED ENABLE_HOSTS_CONFIG_AGENT ENABLE_UNATTENDED_UPGRADES ENSURE_NO_DUPE_PROMISCUOUS_BRIDGE
		TELEPORT_ENABLED IS_KRUSTLET IS_KATA NEEDS_DOCKER_LOGIN HAS_KUBELET_DISK_TYPE`) {
		out[name] = "false"
	}
	for name := range strings.FieldsSeq(`MOBY_VERSION HYPERKUBE_URL CUSTOM_KUBE_BINARY_URL KUBEPROXY_URL APISERVER_PUBLIC_KEY PRIMARY_AVAILABILITY_SET PRIMARY_SCALE_SET
		CONTAINERD_DOWNLOAD_URL_BASE NETWORK_MODE TELEPORTD_PLUGIN_DOWNLOAD_URL CONTAINERD_VERSION CONTAINERD_PACKAGE_URL RUNC_VERSION RUNC_PACKAGE_URL
		HTTP_PROXY_TRUSTED_CA HTTP_PROXY_URLS HTTPS_PROXY_URLS NO_PROXY_URLS CUSTOM_ENV_JSON AZURE_PRIVATE_REGISTRY_SERVER DHCPV6_SERVICE_FILEPATH
		DHCPV6_CONFIG_FILEPATH THP_ENABLED THP_DEFRAG KUBELET_CLIENT_CONTENT KUBELET_CLIENT_CERT_CONTENT GPU_INSTANCE_PROFILE CUSTOM_SEARCH_DOMAIN_NAME
		CUSTOM_SEARCH_REALM_USER CUSTOM_SEARCH_REALM_PASSWORD MESSAGE_OF_THE_DAY AZURE_ENVIRONMENT_FILEPATH`) {
		out[name] = ""
	}
	return out
}
