// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/machine"
	"karpenter/cloud/azurevm"
)

// TestBody shows the requests that create machines: the first one, and how the
// others differ from it. Input is the spec of an AKSNodeClass, or with the argument
// claim what is said of a NodeClaim.
func TestBody(t *testing.T) {
	sizes, err := azurevm.Sizes()
	if err != nil {
		t.Fatal(err)
	}
	var base []string // the first request
	datadriven.RunTest(t, "testdata/body", func(t *testing.T, d *datadriven.TestData) string {
		options := map[string]string{"size": "Standard_D4s_v3", "zone": "eastus-1", "capacity-type": "on-demand", "kubernetes": "1.33.4"}
		for key, value := range options {
			if d.HasArg(key) {
				d.ScanArgs(t, key, &value)
			}
			options[key] = value
		}
		class := &v1beta1.AKSNodeClass{}
		class.Spec.ImageFamily, class.Spec.OSDiskSizeGB = new("Ubuntu"), new(int32(128))
		claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "default-a1b2c"}}
		claim.Labels = map[string]string{v1.NodePoolLabelKey: "default"}
		var into any = &class.Spec
		extra := &struct {
			Labels                map[string]string
			Taints, StartupTaints []v1.Taint
		}{}
		if d.HasArg("claim") {
			into = extra
		}
		if err := yaml.UnmarshalStrict([]byte(d.Input), into); err != nil {
			d.Fatalf(t, "%v", err)
		}
		for key, value := range extra.Labels {
			claim.Labels[key] = value
		}
		claim.Spec.Taints, claim.Spec.StartupTaints = extra.Taints, extra.StartupTaints
		want := wanted(t, sizes, class, options)
		want.Claim = claim
		body, err := want.Body()
		if err != nil {
			return err.Error() + "\n"
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		// By way of a value, as the SDK's types order their fields on their own.
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

// flatten returns a line for each value of an object, by its path.
func flatten(lines []string, path string, value any) []string {
	object, ok := value.(map[string]any)
	if !ok {
		text, _ := json.Marshal(value) // of what was JSON
		return append(lines, path+" = "+string(text))
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		lines = flatten(lines, strings.TrimPrefix(path+" "+key, " "), object[key])
	}
	return lines
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

// wanted is the machine of an offering.
func wanted(t *testing.T, sizes []azurevm.Size, class *v1beta1.AKSNodeClass, options map[string]string) *machine.Want {
	t.Helper()
	i := slices.IndexFunc(sizes, func(s azurevm.Size) bool { return s.Name == options["size"] })
	sku, _ := sizes[i].In("eastus")
	facts, err := instancetype.NewFacts(sku, azurevm.Registry(sizes))
	if err != nil {
		t.Fatal(err)
	}
	of := instancetype.NewClass(class, options["kubernetes"])
	cluster := &instancetype.Cluster{Region: "eastus", NodeResourceGroup: "group", NetworkPlugin: "azure", NetworkPluginMode: "overlay"}
	out := &machine.Want{
		Class: class, Kubernetes: options["kubernetes"], SKU: facts.SKU, GPU: facts.GPU,
		Choice: cloud.Choice{Type: instancetype.New(facts, &of, cluster, &instancetype.Market{})},
		Tags:   map[string]string{"karpenter.sh_nodepool": "default"},
	}
	var images []v1beta1.NodeImage
	for _, d := range of.Image.Definitions() {
		images = append(images, d.Node(d.SharedID("sig", "202607.10.0")))
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
