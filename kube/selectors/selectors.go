// SPDX-License-Identifier: Apache-2.0

// Package selectors evaluates the CEL expressions of ResourceClaims and
// DeviceClasses on devices, with the library that kube-scheduler uses.
// Decisions read the answers in the Snapshot: the core has no CEL.
package selectors

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	resource "k8s.io/api/resource/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"

	"karpenter/model"
)

// Limits on the cost of answers, in cost units of CEL. About ten million units take
// a second. kube-scheduler allows a million units for one answer.
const (
	costOfProgram = 20_000     // to compile an expression
	costOfAnswer  = 200        // besides what CEL counts
	costOfFill    = 20_000_000 // of all answers of one Fill
	costOfText    = 2_000_000  // of one expression,
	costPerKind   = 2_000      // and so much for each kind it was asked about
)

// Judge evaluates selectors on kinds of devices, and remembers the answers. It
// is safe for concurrent use.
type Judge struct {
	mu    sync.Mutex
	texts map[string]*expression
}

// expression is a CEL expression with its answers so far.
type expression struct {
	program cel.CompilationResult
	answers map[string]answer // by kind
	cost    int64             // of answers
}

type answer struct {
	holds  bool
	failed bool
	cost   int64
}

// NewJudge returns a Judge without answers.
func NewJudge() *Judge { return &Judge{texts: map[string]*expression{}} }

// Fill returns the Snapshot with Selectors: the answers of every selector that its
// pods use, for every kind of device that it has. It is s itself if no pod needs
// a device.
//
// A selector whose answers take too long has no answers, and its DeviceSelector
// reports that. The next Fill continues where this one ended. Namespaces have
// equal shares of the work of one Fill, so the selectors of one namespace cannot
// delay those of another.
func (j *Judge) Fill(s *model.Snapshot) *model.Snapshot {
	by := used(s)
	if by == nil {
		return s
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	kinds := kindsOf(s)
	keys := slices.Sorted(maps.Keys(kinds))
	filled := map[string]model.DeviceSelector{}
	for _, namespace := range slices.Sorted(maps.Keys(by)) {
		left := int64(costOfFill / len(by))
		for _, text := range slices.Sorted(maps.Keys(by[namespace])) {
			if found, tried := filled[text]; !tried || found.Invalid != "" {
				filled[text] = j.selector(text, kinds, keys, &left)
			}
		}
	}
	j.forget(filled, kinds)
	out := *s
	out.Selectors = []model.DeviceSelector{}
	for _, text := range slices.Sorted(maps.Keys(filled)) {
		out.Selectors = append(out.Selectors, filled[text])
	}
	return &out
}

// forget drops answers that are no longer needed.
func (j *Judge) forget(texts map[string]model.DeviceSelector, kinds map[string]*model.DeviceKind) {
	maps.DeleteFunc(j.texts, func(text string, _ *expression) bool {
		_, used := texts[text]
		return !used
	})
	for _, e := range j.texts {
		if len(e.answers) > 2*len(kinds) {
			maps.DeleteFunc(e.answers, func(key string, a answer) bool {
				gone := kinds[key] == nil
				if gone {
					e.cost -= a.cost
				}
				return gone
			})
		}
	}
}

// Selector evaluates the expression on the kinds, without a limit on the cost.
func (j *Judge) Selector(text string, kinds map[string]*model.DeviceKind) model.DeviceSelector {
	j.mu.Lock()
	defer j.mu.Unlock()
	left := int64(math.MaxInt64)
	return j.selector(text, kinds, slices.Sorted(maps.Keys(kinds)), &left)
}

// selector evaluates the expression on the kinds, and subtracts the cost from
// left.
func (j *Judge) selector(text string, kinds map[string]*model.DeviceKind, keys []string, left *int64) model.DeviceSelector {
	out := model.DeviceSelector{Text: text}
	e := j.texts[text]
	if e == nil {
		if *left <= 0 {
			out.Invalid = "is being evaluated: it is not compiled yet"
			return out
		}
		*left -= costOfProgram
		e = &expression{program: cel.GetCompiler(features).CompileCELExpression(text, cel.Options{DisableCostEstimation: true}), answers: map[string]answer{}}
		j.texts[text] = e
	}
	if e.program.Error != nil {
		out.Invalid = "cannot be compiled: " + e.program.Error.Error()
		return out
	}
	for i, key := range keys {
		a, known := e.answers[key]
		if !known {
			switch {
			case e.cost > costOfText+costPerKind*int64(len(e.answers)):
				return model.DeviceSelector{Text: text, Invalid: fmt.Sprintf("takes too long: it was evaluated for %d of %d kinds of devices; make it simpler", i, len(keys))}
			case *left <= 0:
				return model.DeviceSelector{Text: text, Invalid: fmt.Sprintf("is being evaluated: %d of %d kinds of devices so far", i, len(keys))}
			}
			a = e.ask(kinds[key])
			e.cost += a.cost
			*left -= a.cost
			e.answers[key] = a
		}
		switch {
		case a.failed:
			out.Fails = append(out.Fails, key)
		case a.holds:
			out.Matches = append(out.Matches, key)
		}
	}
	return out
}

var features = cel.Features{EnableConsumableCapacity: true}

// ask evaluates the expression.
func (e *expression) ask(kind *model.DeviceKind) answer {
	holds, details, err := e.program.DeviceMatches(context.Background(), device(kind))
	cost := int64(costOfAnswer)
	if details != nil && details.ActualCost() != nil {
		cost += int64(min(*details.ActualCost(), math.MaxInt32))
	}
	return answer{holds: holds, failed: err != nil, cost: cost}
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

// used returns the selectors of all pods of the Snapshot by namespace; nil if no pod but
// those of DaemonSets has claims.
func used(s *model.Snapshot) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	use := func(namespace string, texts []string) {
		if out[namespace] == nil {
			out[namespace] = map[string]bool{}
		}
		for _, text := range texts {
			out[namespace][text] = true
		}
	}
	claimed := func(namespace string, claims []model.DeviceClaim) {
		for _, c := range claims {
			for _, r := range c.Requests {
				for _, w := range r.Ways {
					use(namespace, w.Selectors)
				}
			}
		}
	}
	add := func(all []model.Pending) {
		for i := range all {
			for _, p := range all[i].Pods {
				claimed(p.Namespace, all[i].Shape.Claims)
			}
		}
	}
	add(s.Pending)
	for i := range s.Nodes {
		add(s.Nodes[i].Movable)
	}
	if len(out) == 0 {
		return nil
	}
	for _, d := range s.Daemons {
		namespace, _, _ := strings.Cut(d.Name, "/")
		claimed(namespace, d.Shape.Claims)
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
