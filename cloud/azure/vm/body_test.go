// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/bootstrap"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/machine"
	"karpenter/cloud/azurevm"
)

// TestBody covers spec 71/66, spec 71/67, the network interfaces of spec 71/68, and
// spec 71/72: the requests that create a network interface and a virtual machine: the first ones, and how
// the others differ. Input is the spec of an AKSNodeClass.
func TestBody(t *testing.T) {
	sizes, err := azurevm.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	var base []string
	datadriven.RunTest(t, "testdata/body", func(t *testing.T, d *datadriven.TestData) string {
		options := map[string]string{
			"size": "Standard_D4s_v3", "zone": "eastus-1", "capacity-type": "on-demand", "plugin-mode": "overlay", "encryption": "", "ultra": "",
			"subnet": "/subscriptions/sub/resourceGroups/MC_shop/providers/Microsoft.Network/virtualNetworks/aks-vnet-12345678/subnets/aks-subnet",
		}
		for key, value := range options {
			if d.HasArg(key) {
				d.ScanArgs(t, key, &value)
			}
			options[key] = value
		}
		if options["plugin-mode"] == "none" {
			options["plugin-mode"] = ""
		}
		class := &v1beta1.AKSNodeClass{}
		class.Spec.ImageFamily, class.Spec.OSDiskSizeGB = new("Ubuntu"), new(int32(128))
		if err := yaml.UnmarshalStrict([]byte(d.Input), &class.Spec); err != nil {
			d.Fatalf(t, "%v", err)
		}
		config := &Config{
			Subscription: "sub", NodeResourceGroup: "MC_shop", Region: "eastus", Subnet: options["subnet"], SSHKey: "ssh-rsa AAAA", DiskEncryptionSet: options["encryption"],
			Cluster: bootstrap.Cluster{AdminUser: "me", NetworkPlugin: "azure", NetworkPluginMode: options["plugin-mode"]},
		}
		if d.HasArg("identities") {
			config.Identities = []string{"/id/a", "/id/b"}
		}
		o := &order{
			Want: wanted(t, sizes, class, options), config: config, name: "aks-default-a1b2c", token: "abcdef.0123456789abcdef",
			joins: joins{pools: []string{"/pool/a", "/pool/b"}, group: "aks-agentpool-12345678-nsg"},
		}
		machine, err := o.virtualMachine()
		if err != nil {
			return err.Error() + "\n"
		}
		script, err := base64.StdEncoding.DecodeString(*machine.Properties.OSProfile.CustomData)
		if err != nil || !strings.HasPrefix(string(script), "#!/bin/bash\n") {
			t.Errorf("the data is no script: %v", err)
		}
		machine.Properties.OSProfile.CustomData = new("the script")
		text, err := json.Marshal(map[string]any{"interface": o.networkInterface(), "machine": machine})
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		lines := flatten(nil, "", plain)
		if base == nil {
			base = lines
			return strings.Join(lines, "\n") + "\n"
		}
		return difference(base, lines)
	})
}

// flatten returns a line for each value of an object, by its path. Of many items of a list
// it shows the first two and their number.
func flatten(lines []string, path string, value any) []string {
	switch of := value.(type) {
	case map[string]any:
		if len(of) == 0 {
			return append(lines, path+" = {}")
		}
		for _, key := range slices.Sorted(maps.Keys(of)) {
			lines = flatten(lines, strings.TrimPrefix(path+" "+key, " "), of[key])
		}
		return lines
	case []any:
		if len(of) > 2 {
			more, _ := json.Marshal(len(of) - 2)
			of = append(of[:2:2], "and "+string(more)+" more")
		}
		value = of
	}
	text, _ := json.Marshal(value) // of what was JSON
	return append(lines, path+" = "+string(text))
}

// difference returns the lines that are only in one of the two.
func difference(before, after []string) string {
	out := ""
	for _, line := range before {
		if !slices.Contains(after, line) {
			out += "- " + line + "\n"
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			out += "+ " + line + "\n"
		}
	}
	return out
}

// wanted is the virtual machine of an offering.
func wanted(t *testing.T, sizes []azurevm.Size, class *v1beta1.AKSNodeClass, options map[string]string) *machine.Want {
	t.Helper()
	i := slices.IndexFunc(sizes, func(s azurevm.Size) bool { return s.Name == options["size"] })
	sku, _ := sizes[i].In("eastus")
	facts, err := instancetype.NewFacts(sku, azurevm.Registry(sizes))
	if err != nil {
		t.Fatal(err)
	}
	const kubernetes = "1.33.4"
	of := instancetype.NewClass(class, kubernetes)
	cluster := &instancetype.Cluster{Region: "eastus", NodeResourceGroup: "MC_shop", NetworkPlugin: "azure", NetworkPluginMode: options["plugin-mode"], UltraSSD: true}
	out := &machine.Want{
		Claim: &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "default-a1b2c", Labels: map[string]string{v1.NodePoolLabelKey: "default"}}},
		Class: class, Kubernetes: kubernetes, SKU: facts.SKU, GPU: facts.GPU,
		Choice: cloud.Choice{Type: instancetype.New(facts, &of, cluster, &instancetype.Market{})},
		Tags:   map[string]string{"karpenter.sh_nodepool": "default"},
	}
	if options["ultra"] != "" {
		out.Claim.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: v1beta1.SKUUltraSSDLabelKey, Operator: "In", Values: []string{options["ultra"]}}}
	}
	var images []v1beta1.NodeImage
	for _, d := range of.Image.Definitions() {
		images = append(images, d.Node(d.CommunityID("202607.10.0")))
	}
	if out.Image, err = image.Choose(images, out.Choice.Type.Name, out.Choice.Type.Requirements); err != nil {
		t.Fatal(err)
	}
	for i := range out.Choice.Type.Offerings {
		if o := &out.Choice.Type.Offerings[i]; o.Zone() == options["zone"] && o.CapacityType() == options["capacity-type"] {
			out.Choice.Offering = o
			return out
		}
	}
	t.Fatalf("%s is not offered in %s", options["size"], options["zone"])
	return nil
}

// TestPools covers spec 71/69 in what network interfaces may join.
func TestPools(t *testing.T) {
	for name, want := range map[string]bool{
		"kubernetes": true, "aksOutboundBackendPool": true, "aksOutboundBackendPool-IPv6": false, "kubernetes-ipv6": false,
	} {
		if got := joinablePool(pool(name, "")); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if joinablePool(pool("kubernetes", "10.0.0.4")) {
		t.Error("a pool of addresses is joined")
	}
}

// pool is a backend pool, with an address if there is one.
func pool(name, address string) *armnetwork.BackendAddressPool {
	out := &armnetwork.BackendAddressPool{Name: &name, Properties: &armnetwork.BackendAddressPoolPropertiesFormat{}}
	if address != "" {
		out.Properties.LoadBalancerBackendAddresses = []*armnetwork.LoadBalancerBackendAddress{
			{Properties: &armnetwork.LoadBalancerBackendAddressPropertiesFormat{IPAddress: &address}},
		}
	}
	return out
}
