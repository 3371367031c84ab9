// SPDX-License-Identifier: Apache-2.0

package selectors

import (
	"slices"
	"testing"

	"karpenter/model"
)

// TestSelector: expressions over everything that they can see, with errors told
// from devices that do not match.
func TestSelector(t *testing.T) {
	gpu := &model.DeviceKind{
		Key: "gpu", Driver: "gpu.example.com", Shared: true,
		Attributes: []model.DeviceAttribute{
			{Name: "gpu.example.com/model", Type: model.AttributeString, Text: "a10"},
			{Name: "gpu.example.com/version", Type: model.AttributeVersion, Text: "8.6.0"},
			{Name: "gpu.example.com/cores", Type: model.AttributeInt, Text: "9216"},
			{Name: "gpu.example.com/ecc", Type: model.AttributeBool, Text: "true"},
		},
		Capacity: []model.DeviceCapacity{{Name: "gpu.example.com/memory", Value: 24 << 30 * 1000}},
	}
	nic := &model.DeviceKind{Key: "nic", Driver: "net.example.com"}
	kinds := map[string]*model.DeviceKind{"gpu": gpu, "nic": nic}
	for text, want := range map[string]model.DeviceSelector{
		`device.driver == "gpu.example.com"`:                                                                                 {Matches: []string{"gpu"}},
		`device.attributes["gpu.example.com"].model == "a10"`:                                                                {Matches: []string{"gpu"}, Fails: []string{"nic"}},
		`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].cores > 9000`:                            {Matches: []string{"gpu"}},
		`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].ecc`:                                     {Matches: []string{"gpu"}},
		`device.driver == "net.example.com" || device.attributes["gpu.example.com"].version.major() > 8`:                     {Matches: []string{"nic"}},
		`"gpu.example.com" in device.capacity && device.capacity["gpu.example.com"].memory.compareTo(quantity("24Gi")) == 0`: {Matches: []string{"gpu"}},
		`!device.allowMultipleAllocations`:                                                                                   {Matches: []string{"nic"}},
	} {
		got := NewJudge().Selector(text, kinds)
		if got.Invalid != "" || !slices.Equal(got.Matches, want.Matches) || !slices.Equal(got.Fails, want.Fails) {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	if got := NewJudge().Selector("device.nothing ==", kinds); got.Invalid == "" {
		t.Errorf("an expression that cannot be compiled: %+v", got)
	}
}
