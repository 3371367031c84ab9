// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"
	"time"

	"karpenter/model"
	"karpenter/world"
)

// A claim that is not launched has a value for the labels that all machines it
// may become have: those of them its own requirements leave. No one may take
// such a label for missing.
func TestClaimsForeseeTheirLabels(t *testing.T) {
	w := world.New(model.NewAxis(), nil)
	in := func(key string, values ...string) model.Requirement {
		return model.NewRequirement(key, model.In, values...)
	}
	kind := func(name string, zones []string, rs ...model.Requirement) *model.InstanceType {
		t := &model.InstanceType{Name: name, Requirements: model.NewRequirements(append(rs, in(model.LabelInstanceType, name), in(model.LabelZone, zones...))...)}
		for _, zone := range zones {
			t.Offerings = append(t.Offerings, model.Offering{Requirements: model.NewRequirements(in(model.LabelZone, zone))})
		}
		return t
	}
	w.SetTypes("p", []*model.InstanceType{
		kind("t", []string{"a", "b", "c"}, in("arch", "amd64"), in("gpu", "x")),
		kind("u", []string{"b", "c"}, in("arch", "arm64"), model.NewRequirement("gpu", model.DoesNotExist)),
		kind("v", []string{"d"}, in("arch", "riscv"), in("gpu", "x")),
	})
	w.SetClaim(world.Claim{
		Name: "c", Labels: map[string]string{model.LabelNodePool: "p"},
		Requirements: model.NewRequirements(in(model.LabelInstanceType, "t", "u"), model.NewRequirement(model.LabelZone, model.NotIn, "c")),
	})
	labels := w.Snapshot(time.Unix(0, 0)).Nodes[0].Labels
	for key, want := range map[string]string{"arch": "arch In [amd64 arm64]", model.LabelZone: model.LabelZone + " In [a b]", model.LabelHostname: model.LabelHostname + " In [c]"} {
		if r, ok := labels.Get(key); !ok || r.String() != want {
			t.Errorf("%s: %v, want %s", key, r, want)
		}
	}
	if r, ok := labels.Get("gpu"); ok {
		t.Errorf("%v, which not all types have", r)
	}
}
