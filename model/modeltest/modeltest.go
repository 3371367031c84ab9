// SPDX-License-Identifier: Apache-2.0

// Package modeltest changes values field by field, for tests that hold a
// function of a value against every field that the value has.
package modeltest

import (
	"fmt"
	"reflect"
	"strconv"
)

// Leaf is a place in a value that holds a scalar, or that is a slice.
type Leaf struct {
	// Path is the fields that lead to the place, each with the type it belongs
	// to: "Shape.Selector", "Requirement.Key".
	Path []string
	// Change gives the place another value; a slice loses its last element.
	Change func()
	// Undo gives the place the value it had when the Leaf was made.
	Undo func()
}

// Fill sets every field that can be reached from the pointer: booleans to true,
// numbers and strings to values of their own, and slices to two elements. It
// panics for kinds of fields that the package doesn't know.
func Fill(pointer any) {
	count := 0
	walk(reflect.ValueOf(pointer).Elem(), nil, func(v reflect.Value, _ []string) {
		count++
		switch v.Kind() {
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		case reflect.String:
			v.SetString("v" + strconv.Itoa(count))
		case reflect.Bool:
			v.SetBool(true)
		default:
			v.SetInt(int64(count))
		}
	})
}

// Leaves returns every place that can be reached from the pointer.
func Leaves(pointer any) []Leaf {
	var out []Leaf
	walk(reflect.ValueOf(pointer).Elem(), nil, func(v reflect.Value, path []string) {
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		out = append(out, Leaf{Path: path, Change: func() { change(v) }, Undo: func() { v.Set(was) }})
	})
	return out
}

// walk calls visit for every leaf of v, for slices before their elements.
func walk(v reflect.Value, path []string, visit func(reflect.Value, []string)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			step := v.Type().Name() + "." + v.Type().Field(i).Name
			walk(v.Field(i), append(path[:len(path):len(path)], step), visit)
		}
	case reflect.Slice:
		visit(v, path)
		for i := range v.Len() {
			walk(v.Index(i), path, visit)
		}
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
		visit(v, path)
	default:
		panic(fmt.Sprintf("teach modeltest about %s at %v", v.Type(), path))
	}
}

func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		v.Set(v.Slice(0, v.Len()-1))
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(v.Int() + 1)
	}
}
