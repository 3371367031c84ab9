// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"reflect"
	"testing"
	"time"

	"karpenter/model"
)

// TestAnotherSnapshot changes each field of a Snapshot, and of a pool and the nodes in it, and
// expects that the last decision does not hold any more.
func TestAnotherSnapshot(t *testing.T) {
	s := &model.Snapshot{Now: time.Unix(1e9, 0), Pools: make([]model.Pool, 1), Nodes: make([]model.Node, 1)}
	d := decision{*s, model.Policy{}, &model.Plan{}}
	later := *s
	later.Now = s.Now.Add(time.Hour)
	if !d.holds(s, model.Policy{}) || !d.holds(&later, model.Policy{}) {
		t.Error("the decision does not hold for the same Snapshot")
	}
	if d.holds(s, model.Policy{SpotToSpot: true}) {
		t.Error("the decision holds for another policy")
	}
	for i := range reflect.TypeFor[model.Snapshot]().NumField() {
		other := *s
		if name := changed(reflect.ValueOf(&other).Elem(), i); name != "Now" && d.holds(&other, model.Policy{}) {
			t.Errorf("the decision holds for other %s", name)
		}
	}
	for i := range reflect.TypeFor[model.Pool]().NumField() {
		other := *s
		other.Pools = make([]model.Pool, 1)
		if name := changed(reflect.ValueOf(&other.Pools[0]).Elem(), i); d.holds(&other, model.Policy{}) {
			t.Errorf("the decision holds for a pool with other %s", name)
		}
	}
	s.Nodes[0].Disruption.PodsEnd = s.Now.Add(time.Hour)
	second := *s
	if second.Now = s.Now.Add(time.Second); !d.holds(&second, model.Policy{}) {
		t.Error("the decision does not hold a second later")
	}
	if d.holds(&later, model.Policy{}) {
		t.Error("the decision holds an hour later, although the pods of a node end")
	}
}

// changed gives a field of a struct, which is zero, another value, and returns its name.
func changed(of reflect.Value, i int) string {
	switch v := of.Field(i); v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			break
		}
		changed(v, 0)
	default:
		panic("teach this test about " + v.Type().String())
	}
	return of.Type().Field(i).Name
}
