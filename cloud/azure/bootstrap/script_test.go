// SPDX-License-Identifier: Apache-2.0

package bootstrap_test

import (
	"encoding/base64"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/bootstrap"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azurevm"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func cluster() *bootstrap.Cluster {
	return &bootstrap.Cluster{
		APIServer: "prod.hcp.eastus.azmk8s.io", Authority: "Q0E=", Tenant: "tenant", Subscription: "sub", NodeResourceGroup: "MC_shop", Region: "eastus",
		Cloud: "AzurePublicCloud", KubeletIdentity: "00000000-0000-0000-0000-0000000000bb", AdminUser: "azureuser",
		NetworkPlugin: "azure", NetworkPluginMode: "overlay", NetworkDataplane: "cilium", NetworkGUID: "guid", DNSServiceIP: "10.0.0.10",
	}
}

const subnet = "/subscriptions/sub/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/own/subnets/nodes"

func node(kubernetes string) *bootstrap.Node {
	return &bootstrap.Node{
		Kubernetes: kubernetes, Arch: "amd64", Token: "abcdef.0123456789abcdef", Subnet: subnet, SecurityGroup: "aks-agentpool-12345678-nsg",
		Labels: map[string]string{"karpenter.sh/nodepool": "default", "a": "b"}, Taints: []string{"karpenter.sh/unregistered:NoExecute", "team=web:NoSchedule"},
		MaxPods: 250, Reserved: map[string]string{"cpu": "140m", "memory": "2662Mi"}, FreeMemory: "750Mi",
	}
}

// variables runs the script with bash, in a folder in place of the root, and returns what
// it hands to the provisioning scripts.
func variables(t *testing.T, script string) map[string]string {
	t.Helper()
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "opt/azure/containers"), 0o700))
	must(t, os.MkdirAll(filepath.Join(root, "var/log/azure"), 0o700))
	must(t, os.WriteFile(filepath.Join(root, "opt/azure/containers/provision.sh"), []byte("# EOF\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(root, "opt/azure/containers/provision_start.sh"), []byte("env -0 > "+root+"/env\n"), 0o600))
	for _, path := range []string{"/opt/azure", "/var/log/azure"} {
		script = strings.ReplaceAll(script, " "+path, " "+root+path)
	}
	run := exec.Command("bash", "-c", script)
	run.Env = []string{"PATH=" + os.Getenv("PATH")}
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(root, "env"))
	must(t, err)
	out := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimRight(string(text), "\x00"), "\x00") {
		key, value, _ := strings.Cut(line, "=")
		out[key] = value
	}
	for _, made := range []string{"opt/azure/manifest.json", "var/log/azure/Microsoft.Azure.Extensions.CustomScript/events", "var/log/azure/cluster-provision-cse-output.log"} {
		if _, err := os.Stat(filepath.Join(root, made)); err != nil {
			t.Error(err)
		}
	}
	return out
}

// flags are those of the kubelet.
func flags(t *testing.T, n *bootstrap.Node) map[string]string {
	t.Helper()
	script, err := cluster().Script(n)
	must(t, err)
	out := map[string]string{}
	for flag := range strings.FieldsSeq(variables(t, script)["KUBELET_FLAGS"]) {
		key, value, _ := strings.Cut(flag, "=")
		out[key] = value
	}
	return out
}

// TestScript covers spec 71/76: bash runs the script, every variable comes through, and the
// same values give the same bytes.
func TestScript(t *testing.T) {
	script, err := cluster().Script(node("1.33.4"))
	must(t, err)
	for range 20 {
		again, err := cluster().Script(node("1.33.4"))
		must(t, err)
		if again != script {
			t.Fatal("the same values give other bytes")
		}
	}
	got := variables(t, script)
	for key, want := range map[string]string{
		"API_SERVER_NAME": "prod.hcp.eastus.azmk8s.io", "KUBE_CA_CRT": "Q0E=", "TLS_BOOTSTRAP_TOKEN": "abcdef.0123456789abcdef", "KUBERNETES_VERSION": "1.33.4",
		"KUBELET_NODE_LABELS": "a=b,karpenter.sh/nodepool=default", "TENANT_ID": "tenant", "SUBSCRIPTION_ID": "sub", "RESOURCE_GROUP": "MC_shop", "LOCATION": "eastus",
		"USER_ASSIGNED_IDENTITY_ID": "00000000-0000-0000-0000-0000000000bb", "SUBNET": "nodes", "VIRTUAL_NETWORK": "own", "VIRTUAL_NETWORK_RESOURCE_GROUP": "net",
		"NETWORK_SECURITY_GROUP": "aks-agentpool-12345678-nsg", "ROUTE_TABLE": "aks-agentpool-12345678-routetable", "ADMINUSER": "azureuser", "TARGET_CLOUD": "AzurePublicCloud",
		"SERVICE_PRINCIPAL_FILE_CONTENT": "bXNp", "CONTAINER_RUNTIME": "containerd", "GPU_NODE": "false", "ENABLE_TLS_BOOTSTRAPPING": "true", "NEEDS_CGROUPV2": "true",
		"CSE_HELPERS_FILEPATH": "/opt/azure/containers/provision_source.sh", "MCR_REPOSITORY_BASE": "mcr.microsoft.com", "KUBELET_CONFIG_FILE_ENABLED": "false",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	for _, empty := range []string{"MOBY_VERSION", "HYPERKUBE_URL", "NETWORK_MODE", "HTTP_PROXY_URLS", "MESSAGE_OF_THE_DAY", "GPU_INSTANCE_PROFILE", "KUBELET_CONFIG_FILE_CONTENT"} {
		if value, there := got[empty]; !there || value != "" {
			t.Errorf("%s is %q, there %v", empty, value, there)
		}
	}
	for key, part := range map[string]string{"SYSCTL_CONTENT": "net.core.somaxconn=16384\n", "CONTAINERD_CONFIG_CONTENT": `default_runtime_name = "runc"`} {
		text, err := base64.StdEncoding.DecodeString(got[key])
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%s: %v\n%s", key, err, text)
		}
	}
	f := flags(t, node("1.33.4"))
	for key, want := range map[string]string{
		"--cloud-provider": "external", "--cluster-dns": "10.0.0.10", "--max-pods": "250", "--kube-reserved": "cpu=140m,memory=2662Mi",
		"--eviction-hard": "memory.available<750Mi,nodefs.available<10%,nodefs.inodesFree<5%", "--register-with-taints": "karpenter.sh/unregistered:NoExecute,team=web:NoSchedule",
		"--image-gc-high-threshold": "85", "--pod-max-pids": "-1", "--rotate-certificates": "true",
	} {
		if f[key] != want {
			t.Errorf("%s is %q, want %q", key, f[key], want)
		}
	}
}

// TestVersions covers spec 71/77.
func TestVersions(t *testing.T) {
	const mirror = "https://acs-mirror.azureedge.net/"
	for kubernetes, want := range map[string]struct {
		provider                            string // release
		binary, volumes, cloudConfig, pause bool
	}{
		"1.29.9": {"", true, true, true, true},
		"1.30.5": {"1.30.12", true, true, true, true},
		"1.31.2": {"1.31.6", true, false, true, true},
		"1.33.4": {"1.33.0", true, false, true, true},
		"1.34.0": {"1.33.0", false, false, false, true},
		"1.35.1": {"1.33.0", false, false, false, false},
	} {
		n := node(kubernetes)
		n.Arch = "arm64"
		script, err := cluster().Script(n)
		must(t, err)
		v, f := variables(t, script), flags(t, n)
		provider, binary := "", ""
		if want.provider != "" {
			provider = mirror + "cloud-provider-azure/v" + want.provider + "/binaries/azure-acr-credential-provider-linux-arm64-v" + want.provider + ".tar.gz"
		}
		if want.binary {
			binary = mirror + "kubernetes/v" + kubernetes + "/binaries/kubernetes-node-linux-arm64.tar.gz"
		}
		if v["CREDENTIAL_PROVIDER_DOWNLOAD_URL"] != provider || v["KUBE_BINARY_URL"] != binary {
			t.Errorf("%s: %q, %q", kubernetes, v["CREDENTIAL_PROVIDER_DOWNLOAD_URL"], v["KUBE_BINARY_URL"])
		}
		for flag, there := range map[string]bool{
			"--image-credential-provider-config": want.provider != "", "--image-credential-provider-bin-dir": want.provider != "",
			"--azure-container-registry-config": want.provider == "", "--feature-gates": want.provider == "",
			"--keep-terminated-pod-volumes": want.volumes, "--cloud-config": want.cloudConfig, "--pod-infra-container-image": want.pause,
		} {
			if _, got := f[flag]; got != there {
				t.Errorf("%s: %s is there: %v", kubernetes, flag, got)
			}
		}
	}
}

// labels are those of a node of a class with a claim.
func labels(t *testing.T, c *bootstrap.Cluster, class *v1beta1.AKSNodeClass, claim *v1.NodeClaim, kubernetes string) map[string]string {
	t.Helper()
	sizes, err := azurevm.Sizes()
	must(t, err)
	i := slices.IndexFunc(sizes, func(s azurevm.Size) bool { return s.Name == "Standard_D4s_v3" })
	sku, _ := sizes[i].In("eastus")
	facts, err := instancetype.NewFacts(sku, nil)
	must(t, err)
	of := instancetype.NewClass(class, kubernetes)
	types := instancetype.New(facts, &of, &instancetype.Cluster{Region: "eastus", NodeResourceGroup: "MC_shop"}, &instancetype.Market{})
	for i := range types.Offerings {
		if o := &types.Offerings[i]; o.Zone() == "eastus-1" && o.CapacityType() == "spot" {
			return c.Labels(claim, class, cloud.Choice{Type: types, Offering: o}, kubernetes, subnet)
		}
	}
	t.Fatal("the size is not offered as spot")
	return nil
}

// TestLabels covers spec 71/78: AKS' labels, those of the claim, and nothing that a kubelet
// may not set.
func TestLabels(t *testing.T) {
	class := &v1beta1.AKSNodeClass{}
	class.Spec.ImageFamily = new("Ubuntu")
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		v1.NodePoolLabelKey: "default", "team": "web", "node-role.kubernetes.io/x": "", "example.kubernetes.io/x": "y", "node.kubernetes.io/x": "y", "kubernetes.azure.com/mode": "system",
	}}}
	got := labels(t, cluster(), class, claim, "1.34.1")
	for key, want := range map[string]string{
		"kubernetes.azure.com/role": "agent", "kubernetes.azure.com/cluster": "MC_shop", "kubernetes.azure.com/mode": "system",
		"kubernetes.azure.com/kubelet-identity-client-id": "00000000-0000-0000-0000-0000000000bb", "karpenter.sh/do-not-sync-taints": "true",
		"kubernetes.azure.com/scalesetpriority": "spot", "kubernetes.azure.com/priority": "spot", "karpenter.sh/capacity-type": "spot",
		"kubernetes.azure.com/os-sku": "Ubuntu", "kubernetes.azure.com/os-sku-requested": "Ubuntu", "kubernetes.azure.com/os-sku-effective": "Ubuntu2404",
		"kubernetes.azure.com/localdns-state": "disabled", "karpenter.sh/nodepool": "default", "team": "web", "node.kubernetes.io/x": "y",
		"topology.kubernetes.io/zone": "eastus-1", "node.kubernetes.io/instance-type": "Standard_D4s_v3", "karpenter.azure.com/placement-scope": "zonal",
		"karpenter.azure.com/sku-storage-ultra-ssd": "false", "kubernetes.azure.com/network-stateless-cni": "true",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	for _, key := range []string{"node-role.kubernetes.io/x", "example.kubernetes.io/x", "kubernetes.azure.com/fips_enabled"} {
		if _, there := got[key]; there {
			t.Errorf("label %s is there", key)
		}
	}
}

// TestNetworks covers spec 71/80.
func TestNetworks(t *testing.T) {
	overlay := []string{"azure-cni-overlay", "network-stateless-cni", "network-subnet", "nodenetwork-vnetguid", "podnetwork-type"}
	for _, c := range []struct {
		plugin, mode, dataplane, installed string
		labels                             bool
	}{
		{"azure", "overlay", "cilium", "none", true},
		{"azure", "overlay", "", "none", true},
		{"azure", "", "cilium", "none", false},
		{"azure", "", "azure", "azure", false},
		{"azure", "", "", "azure", false},
		{"none", "", "", "none", false},
	} {
		of := cluster()
		of.NetworkPlugin, of.NetworkPluginMode, of.NetworkDataplane = c.plugin, c.mode, c.dataplane
		script, err := of.Script(node("1.33.4"))
		must(t, err)
		if got := variables(t, script)["NETWORK_PLUGIN"]; got != c.installed {
			t.Errorf("%+v: plugin %s", c, got)
		}
		all := labels(t, of, &v1beta1.AKSNodeClass{}, &v1.NodeClaim{}, "1.33.4")
		var got []string
		for _, name := range overlay {
			if all["kubernetes.azure.com/"+name] != "" {
				got = append(got, name)
			}
		}
		if c.labels != slices.Equal(got, overlay) || !c.labels && got != nil {
			t.Errorf("%+v: labels %q", c, got)
		}
		if cilium := all["kubernetes.azure.com/ebpf-dataplane"]; (cilium == "cilium") != (c.dataplane == "cilium") {
			t.Errorf("%+v: data plane %q", c, cilium)
		}
	}
}

// TestGPUs covers spec 71/79.
func TestGPUs(t *testing.T) {
	sizes, err := azurevm.Sizes()
	must(t, err)
	gpus := azurevm.Registry(sizes)
	none := &v1beta1.AKSNodeClass{}
	none.Spec.GPU = &v1beta1.GPU{Mode: new(v1beta1.GPUModeNone)}
	for _, c := range []struct {
		size                   string
		class                  *v1beta1.AKSNodeClass
		driver, version, image string
	}{
		{"Standard_NC24ads_A100_v4", &v1beta1.AKSNodeClass{}, "cuda-lts", "580.159.04", "20260629214430"},
		{"Standard_NV36ads_A10_v5", &v1beta1.AKSNodeClass{}, "grid", "570.211.01", "20260522192315"},
		{"Standard_NC6", &v1beta1.AKSNodeClass{}, "cuda", "470.82.01", "20260629214430"},
		{"Standard_NC24ads_A100_v4", none, "", "", ""},
		{"Standard_D4s_v3", &v1beta1.AKSNodeClass{}, "", "", ""},
	} {
		n := node("1.33.4")
		if gpu, ok := gpus.Of(c.size); ok {
			n.Driver = bootstrap.DriverOf(&gpu, c.class)
		}
		script, err := cluster().Script(n)
		must(t, err)
		v := variables(t, script)
		on := "false"
		if c.driver != "" {
			on = "true"
		}
		got := []string{v["GPU_NODE"], v["CONFIG_GPU_DRIVER_IF_NEEDED"], v["GPU_DRIVER_TYPE"], v["GPU_DRIVER_VERSION"], v["GPU_IMAGE_SHA"]}
		if !slices.Equal(got, []string{on, on, c.driver, c.version, c.image}) {
			t.Errorf("%s: %q", c.size, got)
		}
		runtime, err := base64.StdEncoding.DecodeString(v["CONTAINERD_CONFIG_CONTENT"])
		if err != nil || strings.Contains(string(runtime), "nvidia-container-runtime") != (c.driver != "") {
			t.Errorf("%s: containerd\n%s", c.size, runtime)
		}
	}
}

// TestKubelet: what the class says of the kubelet is in its flags.
func TestKubelet(t *testing.T) {
	n := node("1.33.4")
	n.Kubelet = &v1beta1.KubeletConfiguration{
		CPUManagerPolicy: new("static"), CPUCFSQuota: new(false), CPUCFSQuotaPeriod: metav1.Duration{Duration: 100 * time.Millisecond},
		ImageGCHighThresholdPercent: new(int32(90)), ImageGCLowThresholdPercent: new(int32(70)), TopologyManagerPolicy: new("best-effort"),
		AllowedUnsafeSysctls: []string{"kernel.msg*", "net.core.somaxconn"}, ContainerLogMaxSize: new("64K"), ContainerLogMaxFiles: new(int32(3)), PodPidsLimit: new(int64(99)), FailSwapOn: new(false),
	}
	base, got := flags(t, node("1.33.4")), flags(t, n)
	maps.DeleteFunc(got, func(key, value string) bool { return base[key] == value })
	if want := map[string]string{
		"--cpu-manager-policy": "static", "--cpu-cfs-quota": "false", "--image-gc-high-threshold": "90", "--image-gc-low-threshold": "70", "--topology-manager-policy": "best-effort",
		"--allowed-unsafe-sysctls": "kernel.msg*,net.core.somaxconn", "--container-log-max-size": "64k", "--container-log-max-files": "3", "--pod-max-pids": "99", "--fail-swap-on": "false",
	}; !maps.Equal(got, want) {
		t.Errorf("flags %v", got)
	}
}

// TestQuotes covers spec 71/81: no value breaks out of the script.
func TestQuotes(t *testing.T) {
	for _, value := range []string{"a'b", `a"b`, "a\nb", "a\x00b", "a\rb"} {
		n := node("1.33.4")
		n.Labels["team"] = value
		if script, err := cluster().Script(n); err == nil {
			t.Errorf("%q is in the script:\n%s", value, script)
		}
	}
	n := node("1.33.4")
	n.Labels["team"] = "$(touch /tmp/x)`id`$HOME\\"
	script, err := cluster().Script(n)
	must(t, err)
	if got := variables(t, script)["KUBELET_NODE_LABELS"]; !strings.HasSuffix(got, "team=$(touch /tmp/x)`id`$HOME\\") {
		t.Errorf("labels %q", got)
	}
}
