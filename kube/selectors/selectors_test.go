// SPDX-License-Identifier: Apache-2.0

package selectors

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// many returns a Snapshot of pods that claim by these selectors, by namespace, and of
// one node with so many kinds of devices.
func many(kinds int, by map[string][]string) *model.Snapshot {
	pool := model.DevicePool{Driver: "gpu.example.com", Name: "a"}
	for i := range kinds {
		k := &model.DeviceKind{Driver: pool.Driver, Attributes: []model.DeviceAttribute{{Name: "gpu.example.com/uuid", Type: model.AttributeString, Text: strconv.Itoa(i)}}}
		k.Key = k.Identity()
		pool.Devices = append(pool.Devices, model.Device{Name: "gpu-" + strconv.Itoa(i), Kind: k})
	}
	s := &model.Snapshot{Nodes: []model.Node{{Devices: []model.DevicePool{pool}}}}
	for namespace, texts := range by {
		request := model.DeviceRequest{Ways: []model.DeviceWay{{Selectors: texts}}}
		s.Pending = append(s.Pending, model.Pending{
			Shape: &model.Shape{Claims: []model.DeviceClaim{{Requests: []model.DeviceRequest{request}}}},
			Pods:  []model.Pod{{Namespace: namespace}},
		})
	}
	return s
}

// costly is an expression that costs more than kube-scheduler allows for one device.
func costly(i int) string {
	const ten = "[1,2,3,4,5,6,7,8,9,10]"
	return fmt.Sprintf("%[1]s.all(a, %[1]s.all(b, %[1]s.all(c, %[1]s.all(d, %[1]s.all(e, a+b+c+d+e > %[2]d)))))", ten, -i)
}

// TestBudget: what one Fill finds out is bounded, selectors that take too long are
// abandoned, and those of other namespaces have their answers meanwhile.
func TestBudget(t *testing.T) {
	const plain = `device.driver == "gpu.example.com"`
	s := many(500, map[string][]string{"a": {costly(1), costly(2), costly(3), costly(4), plain}, "b": {plain}})
	j, started := NewJudge(), false
	for range 2 {
		before := j.spent()
		got := j.Fill(s).Selectors
		if cost := j.spent() - before; cost > costOfFill+2*1_100_000 {
			t.Errorf("one Fill cost %d", cost)
		}
		if len(got) != 5 || len(got[4].Matches) != 500 {
			t.Fatalf("%d selectors; of the plain one: %s", len(got), got[4].Invalid)
		}
		started = started || strings.HasPrefix(got[3].Invalid, "is being evaluated: ")
	}
	if !started {
		t.Error("nothing was left for the next Fill")
	}
	for range 5 {
		s = j.Fill(s)
	}
	for _, selector := range s.Selectors[:4] {
		if !strings.HasPrefix(selector.Invalid, "takes too long: ") {
			t.Error(selector.Text, selector.Invalid)
		}
	}
	before := j.spent()
	if j.Fill(s); j.spent() != before {
		t.Error("selectors that were given up, or answered, are asked again")
	}
}

// TestManyTexts: expressions beyond what one Fill can compile wait for the next one.
func TestManyTexts(t *testing.T) {
	var texts []string
	for i := range 3 * costOfFill / costOfProgram {
		texts = append(texts, fmt.Sprintf("%d < 0", i))
	}
	s := many(1, map[string][]string{"a": texts})
	j := NewJudge()
	j.Fill(s)
	if n := len(j.texts); n == 0 || n > costOfFill/costOfProgram {
		t.Errorf("one Fill compiled %d of %d expressions", n, len(texts))
	}
	for range 3 {
		s = j.Fill(s)
	}
	for _, selector := range s.Selectors {
		if selector.Invalid != "" {
			t.Fatal(selector.Text, selector.Invalid)
		}
	}
}

// TestChurn: a selector stays cheap however many devices have come and gone.
func TestChurn(t *testing.T) {
	j := NewJudge()
	for i := range 300 {
		s := many(100, map[string][]string{"a": {`device.driver == "gpu.example.com"`}})
		pool := &s.Nodes[0].Devices[0]
		for d := range pool.Devices {
			kind := *pool.Devices[d].Kind
			kind.Key += strconv.Itoa(i)
			pool.Devices[d].Kind = &kind
		}
		if got := j.Fill(s).Selectors[0]; got.Invalid != "" {
			t.Fatalf("after %d devices: %s", 100*i, got.Invalid)
		}
	}
}

// TestForget: what no pod asks for any more, and devices that are gone, are forgotten.
func TestForget(t *testing.T) {
	j := NewJudge()
	j.Fill(many(300, map[string][]string{"a": {"true", "false"}}))
	j.Fill(many(3, map[string][]string{"a": {"true"}}))
	if len(j.texts) != 1 || len(j.texts["true"].answers) != 3 {
		t.Errorf("%d expressions are known, one with %d answers", len(j.texts), len(j.texts["true"].answers))
	}
}

// spent returns what all answers have cost.
func (j *Judge) spent() int64 {
	out := int64(0)
	for _, e := range j.texts {
		out += e.cost
	}
	return out
}
