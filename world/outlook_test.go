package world_test

import (
	"testing"
	"time"

	"karpenter/model"
	"karpenter/world"
)

// A claim that is not launched has a value for the labels that all machines it
// may become have: those of them its own requirements leave. Nobody may take
// such a label for missing.
func TestClaimsForeseeTheirLabels(t *testing.T) {
	w := world.New(model.NewAxis(), nil)
	in := func(key string, values ...string) model.Requirement { return model.NewRequirement(key, model.In, values...) }
	kind := func(name string, rs ...model.Requirement) *model.InstanceType {
		return &model.InstanceType{Name: name, Requirements: model.NewRequirements(append(rs, in(model.LabelInstanceType, name))...)}
	}
	w.SetTypes("p", []*model.InstanceType{
		kind("t", in("arch", "amd64"), in(model.LabelZone, "a", "b"), in("gpu", "x")),
		kind("u", in("arch", "arm64"), in(model.LabelZone, "b", "c"), model.NewRequirement("gpu", model.DoesNotExist)),
		kind("v", in("arch", "riscv"), in(model.LabelZone, "d"), in("gpu", "x")),
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
