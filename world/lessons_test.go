// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/model"
	"karpenter/world"
)

// TestLessonsAreCopies: what nodes show of their type changes nothing of the type that the
// provider has described, of types without devices or of an empty one. spec 55/24.
func TestLessonsAreCopies(t *testing.T) {
	devices := func() []model.DevicePool {
		kind := &model.DeviceKind{Key: "k", Driver: "d", Attributes: []model.DeviceAttribute{{Name: "d/uuid", Type: model.AttributeString, Text: "u"}}}
		return []model.DevicePool{{
			Driver: "d", Name: "n", Counters: []model.DeviceCount{{Set: "s", Name: "c", Value: 7}},
			Devices: []model.Device{{Name: "a", Kind: kind, Uses: []model.DeviceCount{{Set: "s", Name: "c", Value: 3}}, Taints: []model.Taint{{Key: "sick"}}}},
			Alike:   []model.DevicesAlike{{Attribute: "d/version", Devices: []string{"a"}}},
			InUse:   []model.DeviceUse{{Device: "a", Claim: "default/c"}},
		}}
	}
	types := func() []*model.InstanceType {
		return []*model.InstanceType{{Name: "t", Devices: devices(), VolumeLimits: []model.VolumeLimit{{Driver: "ebs", Most: 9}}}, {Name: "none"}, {}}
	}
	given, published := types(), devices()
	published[0].Devices = append(published[0].Devices, published[0].Devices[0])
	w := world.New(model.NewAxis(), nil)
	w.SetTypes("p", given)
	labels := map[string]string{model.LabelNodePool: "p", model.LabelInstanceType: "t", model.LabelRegistered: "true", model.LabelInitialized: "true"}
	w.SetClaim(world.Claim{Name: "c", ProviderID: "i", Labels: labels})
	w.SetNode(world.Node{Name: "n", ProviderID: "i", Labels: labels})
	w.SetDevices("n", published)
	w.SetVolumeLimits("n", map[string]int{"ebs": 5})
	w.SetPool(world.Pool{Name: "p", Allowed: func(time.Time, int, model.Reason) int { return 0 }})
	got := w.Snapshot(time.Unix(0, 0)).Pools[0].Types
	if d := got[0].Devices; len(d) != 1 || len(d[0].Devices) != 2 || len(d[0].InUse) != 0 || len(d[0].Devices[0].Taints) != 0 || len(d[0].Devices[0].Kind.Attributes) != 0 {
		t.Errorf("learned %+v", d)
	}
	if l := got[0].VolumeLimits; len(l) != 1 || l[0].Most != 5 {
		t.Errorf("learned limits %+v", l)
	}
	got[0].Devices[0].Devices[0].Name, got[0].VolumeLimits[0].Most = "changed", 0
	if diff := cmp.Diff(types(), given); diff != "" {
		t.Errorf("the types of the provider have changed: %s", diff)
	}
	if published[0].Devices[0].Name != "a" || len(published[0].InUse) != 1 || len(published[0].Devices[0].Kind.Attributes) != 1 {
		t.Errorf("the published devices have changed: %+v", published)
	}
	if got[1] != given[1] || got[2] != given[2] {
		t.Error("types of which nothing is learned are others")
	}
}
