// SPDX-License-Identifier: Apache-2.0

package solvetest_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"karpenter/model"
	"karpenter/solve/solvetest"
)

// undrawn are the fields that no situation sets, and why.
var undrawn = map[string]string{
	"model.Disruption.Counted":   "only decisions about other budgets ask for it",
	"model.Disruption.Consuming": "only decisions about other budgets ask for it",
	"model.Node.Reservation":     "Next sets it",
	"model.Shape.GroupTerms":     "solve sets it for pods of PodGroups",

	"model.Snapshot.Devices":       onlyCases,
	"model.Shape.DeviceTerms":      onlyCases,
	"model.Device.On":              besideScheduler,
	"model.DeviceCapacity.Max":     besideScheduler,
	"model.DeviceCapacity.Values":  besideScheduler,
	"model.DevicePool.Alike":       onlyCases,
	"model.Device.Late":            besideScheduler,
	"model.DevicesAlike.Attribute": onlyCases,
	"model.DevicesAlike.Devices":   onlyCases,
	"model.DeviceSelector.Fails":   onlyCases,
	"model.DeviceSelector.Invalid": onlyCases,
}

const (
	besideScheduler = "random tests of it are beside kube-scheduler's own plugin, in differential/devices"
	onlyCases       = "only cases in testdata have it"
)

// TestEveryFieldIsDrawn looks for fields of a Snapshot that no random situation sets:
// what a decision does with them is not tested then.
func TestEveryFieldIsDrawn(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range []solvetest.Draw{
		solvetest.Everything(),
		{Spread: true, Bound: true, Crowd: true, Workloads: true, Money: true, Refused: true},
		{TypeLimits: true, Groups: true, Devices: true, Flight: true},
		{Devices: true, Served: true},
		{Bound: true, Groups: true},
		{Bound: true, Devices: true, Spread: true},
		{Odd: true, Bound: true, Spread: true, Affinity: true, Reserved: true, Volumes: true},
		{Odd: true, Volumes: true},
	} {
		for seed := range uint64(300) {
			note(seen, reflect.ValueOf(d.Situation(rand.New(rand.NewPCG(seed, 7)))).Elem())
		}
	}
	fields(reflect.TypeFor[model.Snapshot](), map[reflect.Type]bool{}, func(name string) {
		why, known := undrawn[name]
		switch {
		case known && seen[name]:
			t.Errorf("situations have %s, although %s", name, why)
		case !known && !seen[name]:
			t.Errorf("no situation has %s", name)
		}
	})
}

// note marks the fields of structs in v that are not zero.
func note(seen map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			note(seen, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			note(seen, v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			note(seen, v.MapIndex(k))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				seen[v.Type().String()+"."+v.Type().Field(i).Name] = true
				note(seen, v.Field(i))
			}
		}
	}
}

// fields calls f with the name of every field of the model's structs in a type.
func fields(of reflect.Type, done map[reflect.Type]bool, f func(name string)) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		fields(of.Elem(), done, f)
	case reflect.Struct:
		if done[of] || of.PkgPath() != reflect.TypeFor[model.Snapshot]().PkgPath() {
			return
		}
		done[of] = true
		for i := range of.NumField() {
			f(of.String() + "." + of.Field(i).Name)
			fields(of.Field(i).Type, done, f)
		}
	}
}
