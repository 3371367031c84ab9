// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
)

// config makes a DRAConfig.
func (h *harness) config(name, spec string) {
	h.t.Helper()
	o := &unstructured.Unstructured{}
	text := "apiVersion: test.karpenter.sh/v1alpha1\nkind: DRAConfig\nmetadata: {name: " + name + "}\nspec: " + spec
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		h.t.Fatal(err)
	}
	h.create(o)
}

// TestDRAConfigs: instance types have the devices that the driver will publish on
// Nodes of the pool, and stay what they are as long as nothing changes. spec 46/87.
func TestDRAConfigs(t *testing.T) {
	h := newHarness(t, DefaultEntries())
	pool := &v1.NodePool{}
	pool.Name, pool.Spec.Template.Labels = "default", map[string]string{"team": "ml"}
	show := func() string {
		types, err := h.provider.InstanceTypes(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := h.provider.InstanceTypes(t.Context(), pool)
		if &again[0] != &types[0] {
			t.Error("nothing has changed, and the types have")
		}
		var out []string
		for _, it := range types {
			for _, p := range it.DevicePools {
				text := p.Driver + " " + p.Name + ":"
				for _, d := range p.Devices {
					text += " " + d.Name
				}
				out = append(out, text)
			}
		}
		return strings.Join(out, "; ")
	}
	expect := func(want string) {
		t.Helper()
		if got := show(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	expect("")
	const devices = `resourceSlices: [{devices: [{name: gpu-0, attributes: {model: {string: a10}}}]}, {devices: [{name: gpu-1}]}]`
	h.config("gpus", `{driver: gpu.example.com, pools: [{name: p, nodeSelectorTerms: [{matchExpressions: [
		{key: node.kubernetes.io/instance-type, operator: In, values: [c-4x-amd64-linux, c-8x-amd64-linux]}, {key: team, operator: In, values: [ml]}]}], `+devices+`}]}`)
	h.config("nowhere", `{driver: other.example.com, pools: [{name: p, nodeSelectorTerms: [{}], `+devices+`}, {name: q, nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n]}]}], `+devices+`}]}`)
	h.config("broken", `{driver: [1]}`)
	expect("") // not read yet
	h.clock.SetTime(start().Add(time.Minute))
	expect("gpu.example.com gpu.example.com/c-4x-amd64-linux: gpu-0 gpu-1; gpu.example.com gpu.example.com/c-8x-amd64-linux: gpu-0 gpu-1")

	pool.Spec.Template.Labels = nil
	expect("")
	pool.Spec.Template.Labels = map[string]string{"team": "ml"}
	h.config("more", `{driver: gpu.example.com, pools: [{name: q, nodeSelectorTerms: [{matchExpressions: [{key: node.kubernetes.io/instance-type, operator: In, values: [c-8x-amd64-linux]}]}], `+devices+`}]}`)
	h.clock.SetTime(start().Add(2 * time.Minute))
	expect("gpu.example.com gpu.example.com/c-4x-amd64-linux: gpu-0 gpu-1")
}
