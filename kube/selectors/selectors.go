// SPDX-License-Identifier: Apache-2.0

// Package selectors works out what CEL expressions of ResourceClaims and
// DeviceClasses say of devices, with the library that kube-scheduler uses. Decisions
// read the answers in the Snapshot: the core has no CEL.
package selectors

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	resource "k8s.io/api/resource/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"

	"karpenter/model"
)

// Judge answers what selectors say of kinds of devices, and remembers it. It is
// safe for concurrent use.
type Judge struct {
	mu      sync.Mutex
	cache   *cel.Cache
	answers map[question]answer
}

type question struct{ text, kind string }

type answer struct {
	holds  bool
	failed bool
}

// most is how many answers a Judge remembers before it starts again.
const most = 100_000

// NewJudge returns a Judge that knows nothing yet.
func NewJudge() *Judge {
	return &Judge{cache: cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true}), answers: map[question]answer{}}
}

// Fill returns the Snapshot with Selectors: the answers of every selector that its
// pods use, for every kind of device that it has. It is s itself if no pod needs
// a device.
func (j *Judge) Fill(s *model.Snapshot) *model.Snapshot {
	texts := used(s)
	if texts == nil {
		return s
	}
	kinds := kindsOf(s)
	out := *s
	out.Selectors = []model.DeviceSelector{}
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		out.Selectors = append(out.Selectors, j.Selector(text, kinds))
	}
	return &out
}

// Selector returns what the expression says of the kinds.
func (j *Judge) Selector(text string, kinds map[string]*model.DeviceKind) model.DeviceSelector {
	out := model.DeviceSelector{Text: text}
	program := j.cache.GetOrCompile(text)
	if program.Error != nil {
		out.Invalid = program.Error.Error()
		return out
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		switch a := j.answer(program, question{text, key}, kinds[key]); {
		case a.failed:
			out.Fails = append(out.Fails, key)
		case a.holds:
			out.Matches = append(out.Matches, key)
		}
	}
	return out
}

func (j *Judge) answer(program cel.CompilationResult, q question, kind *model.DeviceKind) answer {
	j.mu.Lock()
	known, ok := j.answers[q]
	j.mu.Unlock()
	if ok {
		return known
	}
	holds, _, err := program.DeviceMatches(context.Background(), device(kind))
	a := answer{holds: holds, failed: err != nil}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.answers) >= most {
		clear(j.answers)
	}
	j.answers[q] = a
	return a
}

// device is the kind as expressions see it.
func device(kind *model.DeviceKind) cel.Device {
	out := cel.Device{
		Driver: kind.Driver, AllowMultipleAllocations: &kind.Shared,
		Attributes: map[resource.QualifiedName]resource.DeviceAttribute{}, Capacity: map[resource.QualifiedName]resource.DeviceCapacity{},
	}
	for _, a := range kind.Attributes {
		if v, ok := attribute(a); ok {
			out.Attributes[resource.QualifiedName(a.Name)] = v
		}
	}
	for _, c := range kind.Capacity {
		out.Capacity[resource.QualifiedName(c.Name)] = resource.DeviceCapacity{Value: *amount(c.Value)}
	}
	return out
}

// amount is the amount, which is in thousandths. Selectors can ask whether it is whole.
func amount(thousandths int64) *quantity.Quantity {
	if thousandths%1000 == 0 {
		return quantity.NewQuantity(thousandths/1000, quantity.BinarySI)
	}
	return quantity.NewMilliQuantity(thousandths, quantity.DecimalSI)
}

// attribute is the attribute as the API has it. Lists are left out, as by
// a scheduler without the feature.
func attribute(a model.DeviceAttribute) (resource.DeviceAttribute, bool) {
	switch a.Type {
	case model.AttributeInt:
		n, err := strconv.ParseInt(a.Text, 10, 64)
		return resource.DeviceAttribute{IntValue: &n}, err == nil
	case model.AttributeBool:
		yes := a.Text == "true"
		return resource.DeviceAttribute{BoolValue: &yes}, true
	case model.AttributeString:
		return resource.DeviceAttribute{StringValue: &a.Text}, true
	case model.AttributeVersion:
		return resource.DeviceAttribute{VersionValue: &a.Text}, true
	}
	return resource.DeviceAttribute{}, false
}

// used returns the selectors of all pods of the Snapshot; nil if none has claims.
func used(s *model.Snapshot) map[string]bool {
	var out map[string]bool
	add := func(all []model.Pending) {
		for i := range all {
			for _, c := range all[i].Shape.Claims {
				if out == nil {
					out = map[string]bool{}
				}
				for _, r := range c.Requests {
					for _, w := range r.Ways {
						for _, text := range w.Selectors {
							out[text] = true
						}
					}
				}
			}
		}
	}
	add(s.Pending)
	for i := range s.Nodes {
		add(s.Nodes[i].Movable)
	}
	return out
}

// kindsOf returns every kind of device of the Snapshot, by key.
func kindsOf(s *model.Snapshot) map[string]*model.DeviceKind {
	out := map[string]*model.DeviceKind{}
	add := func(pools []model.DevicePool) {
		for i := range pools {
			for _, d := range pools[i].Devices {
				out[d.Kind.Key] = d.Kind
			}
		}
	}
	add(s.Devices)
	for i := range s.Nodes {
		add(s.Nodes[i].Devices)
	}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			add(t.Devices)
		}
	}
	return out
}
